# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Pretrain BERT for a number of steps and print the throughput: one process per device, under torchrun.

The lines for the reader begin with TORCH_BERT. Rank 0 prints a `step=` line for each step, with the time at
which the device finished the step. That time comes from events of the device, and the next step is queued by
then, so nothing waits. The first process of every node prints what the reader compares with the case: world
size, backend, dtype.
"""

import argparse
import os
import sys
from typing import List, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds.
trainer_kit.die_with_parent()

import bert_attention  # noqa: E402
import bert_optim  # noqa: E402
import bert_sizes  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402
from bert_batches import Loader, shape  # noqa: E402
from bert_model import Bert  # noqa: E402

say = trainer_kit.Say("TORCH_BERT")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(bert_sizes.MODELS, torch_run.DTYPES)
    boolean = trainer_kit.boolean
    parser.add_argument("--data", required=True, help="directory of the arrays, one per vocabulary below it")
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--compile-mode", default="default")
    parser.add_argument("--attention", choices=["auto", "sdpa", "short"], default="auto")
    parser.add_argument("--layer", choices=["auto", "plain", "fused"], default="auto")
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument(
        "--checkpointing", type=boolean, default=False, help="compute layers again in the backward pass"
    )
    parser.add_argument("--optimizer", choices=["adamw", "lamb"], default="adamw")
    parser.add_argument("--fused", type=boolean, default=True)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--rate-warmup", type=int, default=100, help="steps until the full learning rate")
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0, help="norm of the gradients; 0: as they are")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--parallel", choices=["ddp", "fsdp"], default="ddp")
    parser.add_argument("--bucket-mb", type=int, default=25)
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument(
        "--profile", default="", help="file for the kernels' times of ten steps after the last"
    )
    return parser.parse_args()


class Trainer:
    """The model, its optimizer and one step of training."""

    def __init__(self, args: argparse.Namespace, device: torch.device, world: int) -> None:
        self.args, self.world = args, world
        size = bert_sizes.MODELS[args.model]
        dtype = torch_run.DTYPES[args.dtype]
        head = size["hidden"] // size["heads"]
        attend = bert_attention.choose(args.attention, args.device, dtype, args.seq, head)
        layer = bert_attention.layer(args.layer, attend, args.batch * args.seq)
        torch.manual_seed(args.seed)  # the same weights everywhere
        self.model = Bert(size, dtype, attend, args.dropout, layer, args.checkpointing).to(device)
        self.sites = self.model.sites
        self.attention, self.layer = attend.__name__, layer.__name__
        if args.compile:
            self.model.compile_parts(mode=args.compile_mode, dynamic=False)
        torch.manual_seed(args.seed + dist.get_rank())  # dropout differs between ranks
        self.sharded, self.check = world > 1 and args.parallel == "fsdp", torch_end.agree
        if self.sharded:
            import sharding  # needs a newer torch than the rest does

            sharding.shard(self.model, dtype, args.bucket_mb)
            self.check = sharding.once
        self.optimizer = bert_optim.make(
            args.optimizer, self.model, args.learning_rate, args.decay, args.fused
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")
        self.runner = self.model
        if world > 1 and not self.sharded:
            self.runner = torch.nn.parallel.DistributedDataParallel(
                self.model,
                gradient_as_bucket_view=True,
                static_graph=args.accumulation == 1,
                bucket_cap_mb=args.bucket_mb,
            )

    def step(self, number: int, loader: Loader) -> torch.Tensor:
        """Take one step of the optimizer; return the loss of its last micro-step, a tensor on the device."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.args.learning_rate * min(1.0, number / self.args.rate_warmup)
        for micro in range(self.args.accumulation):
            batch, keys = next(loader)
            last = micro + 1 == self.args.accumulation
            if self.sharded:
                self.model.set_requires_gradient_sync(last)
            elif self.world > 1:
                self.runner.require_backward_grad_sync = last
            loss = self.runner(batch, keys)
            self.scaler.scale(loss / self.args.accumulation).backward()
        if self.args.clip:
            self.scaler.unscale_(self.optimizer)
            bert_optim.clip(self.model, self.args.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def agree(self, device: torch.device) -> bool:
        """Return whether all ranks hold the same weights, or each its share of them."""
        return self.check(self.model, device)


def summary(args: argparse.Namespace, stamps: List[float], world: int) -> None:
    """Print the closing lines: the rate over the steps after the warm-up, and the times of steps."""
    steps, times = torch_run.rate(stamps, args.warmup)
    say(samples_per_second="%.2f" % (args.batch * args.accumulation * world * steps))
    say(**times)


def profile(trainer: Trainer, loader: Loader, path: str) -> None:
    """Write the kernels of ten more steps, most time first."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as watch

    with watch(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for number in range(10):
            trainer.step(10**6 + number, loader)
        torch.cuda.synchronize()
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(
            profiler.key_averages().table(
                sort_by="self_cuda_time_total", row_limit=60, max_name_column_width=110
            )
        )


def train(args: argparse.Namespace, device: torch.device) -> Tuple[Trainer, Loader, List[float]]:
    """Take all steps; return trainer, loader and time stamps. Exit where a loss is not a number."""
    rank, world = dist.get_rank(), dist.get_world_size()
    size = bert_sizes.MODELS[args.model]
    directory = bert_sizes.data_of(args.data, args.model)
    args.seq, args.predictions = shape(directory)
    trainer = Trainer(args, device, world)
    loader = Loader(directory, args.batch, trainer.sites, rank, world, args.seed, device)
    if os.environ.get("LOCAL_RANK") == "0":
        say(
            parameters=bert_sizes.parameters(size),
            attention=trainer.attention,
            layer=trainer.layer,
            padded=str(not loader.full).lower(),
        )
    stamps = torch_run.take_steps(
        say, args.steps, args.warmup, device, lambda number: trainer.step(number, loader)
    )
    return trainer, loader, stamps


def main() -> None:
    """Form the process group, train, and print the results."""
    args = arguments()
    device = torch_run.join(args.device, args.tf32)
    first = os.environ["LOCAL_RANK"] == "0"
    nodes = torch_run.nodes()
    if first:
        checkpointing = str(args.checkpointing).lower()
        parallel = args.parallel if dist.get_world_size() > 1 else "none"
        choices = {"checkpointing": checkpointing, "optimizer": args.optimizer, "parallel": parallel}
        # Without autocast: what the model casts to has this dtype, or there is an error.
        torch_run.announce(say, args, nodes, args.dtype, **choices)
        for line in torch_run.software(device):
            say(**line)
    trainer, loader, stamps = train(args, device)
    same = trainer.agree(device)
    if args.device == "gpu" and first:
        say(
            peak_memory_mib=torch.cuda.max_memory_allocated() >> 20,
            reserved_mib=torch.cuda.max_memory_reserved() >> 20,
        )
    if dist.get_rank() == 0:
        summary(args, stamps, dist.get_world_size())
    if args.profile and dist.get_rank() == 0 and dist.get_world_size() == 1:
        profile(trainer, loader, args.profile)
    torch_end.finish(say, same, len(stamps))


if __name__ == "__main__":
    main()
