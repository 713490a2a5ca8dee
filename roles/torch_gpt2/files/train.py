# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train GPT-2 for a number of steps and print the rate: one process per device, under torchrun.

The lines for the reader begin with TORCH_GPT2. Rank 0 prints a `step=` line for each step, with the time at
which the device finished the step. The first process of every node prints what the reader compares with the
case. With --tensor-parallel N, N neighbouring devices of a node hold one model and train N times the batch
together, so that the batch per device is that of the case.
"""

import argparse
import os
import sys
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds.
trainer_kit.die_with_parent()

import gpt2_sizes  # noqa: E402
import tensor_parallel  # noqa: E402
import tokens  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402
from model import Gpt  # noqa: E402

say = trainer_kit.Say("TORCH_GPT2")

BETAS = (0.9, 0.95)
DECAY = 0.1  # of weights, not of norms and biases (Brown et al. 2020, arXiv:2005.14165, appendix B)


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(gpt2_sizes.MODELS, torch_run.DTYPES)
    boolean = trainer_kit.boolean
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--data", default="", help="file of tokens, two bytes each")
    parser.add_argument("--seq-length", type=int, default=1024)
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--compile-mode", default="default")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="devices that hold one model")
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--rate-warmup", type=int, default=100, help="steps until the full learning rate")
    parser.add_argument("--clip", type=float, default=1.0, help="norm of the gradients; 0: as they are")
    parser.add_argument("--bucket-mb", type=int, default=25)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


def check(args: argparse.Namespace) -> None:
    """Exit where the devices or the model cannot be divided as --tensor-parallel says."""
    share, local = args.tensor_parallel, int(os.environ["LOCAL_WORLD_SIZE"])
    heads = gpt2_sizes.MODELS[args.model]["heads"]
    if local % share:
        sys.exit("torch_gpt2_tensor_parallel=%d: each node of this run has %d devices" % (share, local))
    if heads % share:
        sys.exit("torch_gpt2_tensor_parallel=%d: the model has %d heads" % (share, heads))
    if share > 1 and args.compile:
        sys.exit("torch_gpt2_tensor_parallel=%d does not go with xla=true: use xla=false" % share)


def form_groups(share: int) -> Any:
    """Return (the group that holds one model or None, the group of those that hold the same part)."""
    rank, world = dist.get_rank(), dist.get_world_size()
    if share == 1:
        return None, dist.group.WORLD
    # Every process forms all groups, in the same order.
    models = [dist.new_group(list(range(first, first + share))) for first in range(0, world, share)]
    parts = [dist.new_group(list(range(part, world, share))) for part in range(share)]
    return models[rank // share], parts[rank % share]


class Trainer:
    """The model, its optimizer, its sequences and one step of training."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        size = gpt2_sizes.MODELS[args.model]
        self.group, self.replicas = form_groups(args.tensor_parallel)
        self.number = dist.get_world_size(self.replicas)
        torch.manual_seed(args.seed)  # the same weights everywhere
        self.model = Gpt(size, args.seq_length).to(device)
        if self.group is not None:
            tensor_parallel.split(self.model, self.group, size["heads"])
        if args.compile:
            self.model.compile_parts(mode=args.compile_mode, dynamic=False)
        wide = [p for p in self.model.parameters() if p.dim() > 1]
        flat = [p for p in self.model.parameters() if p.dim() <= 1]
        groups = [{"params": wide, "weight_decay": DECAY}, {"params": flat, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, args.learning_rate, BETAS, fused=True)
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")
        self.runner: Any = self.model
        if self.number > 1:
            self.runner = torch.nn.parallel.DistributedDataParallel(
                self.model,
                process_group=self.replicas,
                gradient_as_bucket_view=True,
                static_graph=args.accumulation == 1,
                bucket_cap_mb=args.bucket_mb,
            )
        vocabulary, seq = size["vocabulary"], args.seq_length
        own = tokens.read(args.data, seq, vocabulary) if args.data else None
        # The devices that hold one model take the same sequences.
        seed = args.seed + dist.get_rank(self.replicas)
        batch = args.batch * args.tensor_parallel
        self.sequences = tokens.Sequences(own, batch, seq, vocabulary, seed, device)

    def step(self, number: int) -> torch.Tensor:
        """Take one step of the optimizer; return the loss of its last micro-step, a tensor on the device."""
        args = self.args
        for group in self.optimizer.param_groups:
            group["lr"] = args.learning_rate * min(1.0, number / args.rate_warmup)
        for micro in range(args.accumulation):
            words, following = next(self.sequences)
            if self.number > 1:
                self.runner.require_backward_grad_sync = micro + 1 == args.accumulation
            with torch_run.precision(self.device, args.dtype):
                loss = self.runner(words, following)
            self.scaler.scale(loss / args.accumulation).backward()
        if self.group is not None and self.scaler.is_enabled():
            tensor_parallel.share_overflow(self.model, self.group)
        if args.clip:
            self.scaler.unscale_(self.optimizer)
            norm = tensor_parallel.norm(self.model, self.group)
            torch.nn.utils.clip_grads_with_norm_(self.model.parameters(), args.clip, norm, foreach=True)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def print_setup(args: argparse.Namespace, device: torch.device, nodes: int) -> None:
    """Print what takes part and what it does."""
    size = gpt2_sizes.MODELS[args.model]
    dtype = torch_run.product_dtype(device, torch_run.precision(device, args.dtype))
    torch_run.announce(say, args, nodes, dtype, tensor_parallel=args.tensor_parallel)
    say(
        model=args.model,
        parameters=gpt2_sizes.parameters(size, args.seq_length),
        seq_length=args.seq_length,
        data="own" if args.data else "synthetic",
    )
    for line in torch_run.software(device):
        say(**line)


def print_summary(args: argparse.Namespace, device: torch.device, stamps: List[float]) -> None:
    """Print the rate over the steps after the warm-up, in sequences and tokens."""
    steps, times = torch_run.rate(stamps, args.warmup)
    if dist.get_rank() == 0:
        memory = torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else "none"
        rate = steps * args.batch * args.accumulation * dist.get_world_size()
        say(
            sequences_per_second="%.2f" % rate,
            tokens_per_second="%.0f" % (rate * args.seq_length),
            peak_memory_mib=memory,
            **times,
        )


def main() -> None:
    """Form the process group, train, and print the results."""
    args = arguments()
    check(args)
    device = torch_run.join(args.device, args.tf32)
    first, nodes = os.environ["LOCAL_RANK"] == "0", torch_run.nodes()
    if first:
        print_setup(args, device, nodes)
    try:
        trainer = Trainer(args, device)
    except tokens.TokenError as error:
        sys.exit(str(error))
    stamps = torch_run.take_steps(say, args.steps, args.warmup, device, trainer.step)
    same = tensor_parallel.agree(trainer.model, device, trainer.replicas, trainer.group)
    print_summary(args, device, stamps)
    torch_end.finish(say, same, len(stamps))


if __name__ == "__main__":
    main()
