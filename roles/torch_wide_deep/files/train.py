# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train Wide & Deep for a number of steps and print rate and latency: one process per device, under torchrun.

The lines for the reader begin with TORCH_WIDE_DEEP. Rank 0 prints a `step=` line for each step, with the loss
of the batch of all devices, and the time at which the device finished the step. The first process of every
node prints what the reader compares with the case. The tables are split over all devices (tables.py), the
layers are the same on each.
"""

import argparse
import os
import sys
from typing import Any, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds.
trainer_kit.die_with_parent()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_gradients  # noqa: E402
import torch_run  # noqa: E402
from model import WideDeep  # noqa: E402
from samples import Samples  # noqa: E402
from tables import BETAS, Request, Table, mebibytes, share  # noqa: E402

say = trainer_kit.Say("TORCH_WIDE_DEEP")

# Keeps the gradients of fp16 above its smallest numbers, as `mixed_precision: 1024` of HugeCTR's samples/wdl.
LOSS_SCALES = {"fp16": 1024.0}


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser([], torch_run.DTYPES)
    boolean = trainer_kit.boolean
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--rows", type=int, default=0, help="of each table; 0: the vocabulary of the model")
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--learning-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


def free_mebibytes(device: torch.device) -> int:
    """Return the memory that is free for the tables of this process, in MiB."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0]) >> 20
    with open("/proc/meminfo", encoding="utf-8") as file:
        [kibibytes] = [line.split()[1] for line in file if line.startswith("MemAvailable:")]
    return (int(kibibytes) >> 10) // int(os.environ["LOCAL_WORLD_SIZE"])


def check_memory(rows: int, vector: int, device: torch.device) -> int:
    """Return the MiB of a device's part of both tables; refuse to start where they do not fit."""
    world = dist.get_world_size()
    need = sum(mebibytes(share(rows, 0, world), width) for width in (vector, 1))
    free = free_mebibytes(device)
    if need > free:
        trainer_kit.refuse(
            "the tables of %d rows take %d MiB of each of %d devices, which have %d MiB free: lower "
            "torch_wide_deep_rows, or take more devices" % (rows, need, world, free)
        )
    return need


class Trainer:
    """The layers, the tables, their optimizers, the samples and one step of training."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        self.world = dist.get_world_size()
        size = trainer_kit.model_size()
        self.rows: int = args.rows or size["vocabulary"]
        self.table_mebibytes = check_memory(self.rows, size["vector"], device)
        torch.manual_seed(args.seed)  # the same layers everywhere
        self.model = WideDeep(size, args.dropout).to(device)
        torch.manual_seed(args.seed + dist.get_rank())  # other units are dropped on each device
        if args.compile:
            self.model.compile(dynamic=False)
        self.deep = Table(self.rows, size["vector"], args.seed, device)
        self.wide = Table(self.rows, 1, args.seed + 1, device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), args.learning_rate, BETAS, fused=True)
        self.gradients = None
        if self.world > 1:
            self.gradients = torch_gradients.Gradients(self.model.parameters())
        self.scale = LOSS_SCALES.get(args.dtype, 1.0)
        self.samples = Samples(args.batch, dist.get_rank(), self.rows, args.seed, device)
        self.following = self._with_requests()

    def _with_requests(self) -> Tuple[Any, Request, Request]:
        """Return the next batch, and the requests for its rows of both tables."""
        batch = next(self.samples)
        return batch, Request(batch[1]), Request(batch[2])

    def parameters(self) -> int:
        """Return the number of weights of the model, the tables of all devices included."""
        layers: int = sum(p.numel() for p in self.model.parameters())
        width: int = self.deep.vectors.shape[1] + self.wide.vectors.shape[1]
        return layers + self.rows * width

    def step(self, number: int) -> torch.Tensor:
        """Take one step; return the loss of the batch of all devices, a tensor on the device."""
        args = self.args
        (numbers, _, _, labels), for_deep, for_wide = self.following
        deep = self.deep.look_up(for_deep, torch_run.DTYPES[args.dtype])
        wide = self.wide.look_up(for_wide, torch_run.DTYPES[args.dtype])
        # How many rows the next step needs of whom is then known before this step ends.
        self.following = self._with_requests()
        with torch_run.precision(self.device, args.dtype):
            loss = self.model(numbers, deep.view(args.batch, -1), wide.view(args.batch, -1), labels)
        # The sum over the devices is the gradient of the mean loss of all samples.
        (loss * (self.scale / self.world)).backward()
        if self.gradients:
            self.gradients.sum()
        if self.scale != 1:
            torch._foreach_div_([p.grad for p in self.model.parameters()], self.scale)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for table, request, vectors in ((self.deep, for_deep, deep), (self.wide, for_wide, wide)):
            table.update(request, vectors.grad, self.scale, args.learning_rate, number)
        loss = loss.detach() / self.world
        if self.world > 1:
            dist.all_reduce(loss)
        return loss


def print_setup(args: argparse.Namespace, device: torch.device, nodes: int) -> None:
    """Print what takes part and what it does."""
    dtype = torch_run.product_dtype(device, torch_run.precision(device, args.dtype))
    torch_run.announce(say, args, nodes, dtype, dropout=args.dropout, rows=args.rows)
    for line in torch_run.software(device):
        say(**line)


def print_model(trainer: Trainer, first: bool) -> None:
    """Print the size of the model, and which part of its tables this device and all of them have."""
    own = trainer.deep.rows
    held = torch.tensor([own, int(own > 0)], device=trainer.device)
    dist.all_reduce(held)
    rows, devices = held.tolist()
    if first:
        say(
            model=trainer.args.model,
            parameters=trainer.parameters(),
            table_rows=rows,
            table_devices=devices,
            own_rows=own,
            own_tables_mib=trainer.table_mebibytes,
            data="synthetic",
        )


def main() -> None:
    """Form the process group, train, and print the results."""
    args = arguments()
    device = torch_run.join(args.device, args.tf32)
    first, nodes = os.environ["LOCAL_RANK"] == "0", torch_run.nodes()
    if first:
        print_setup(args, device, nodes)
    trainer = Trainer(args, device)
    print_model(trainer, first)
    stamps = torch_run.take_steps(say, args.steps, args.warmup, device, trainer.step)
    same = torch_end.agree(trainer.model, device)
    torch_run.print_rate(say, "samples", args.batch, device, stamps, args.warmup)
    tables = trainer.deep.sum() + trainer.wide.sum()
    torch_end.print_sums(say, {"layers": trainer.model}, {"tables": tables})
    torch_end.finish(say, same, len(stamps))


if __name__ == "__main__":
    main()
