# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train GPT-2 for a number of steps and print the rate: one process per device, under torchrun.

The lines for the reader begin with TORCH_GPT2. Rank 0 prints a `step=` line for each step, with the time at
which the device finished the step. The first process of every node prints what the reader compares with the
case. With --tensor-parallel N or --pipeline-parallel N, N neighbouring devices hold one model and train N
times the batch together, so that the batch per device is that of the case. The micro-batches of a pipeline
are the micro-steps of --accumulation.
"""

import argparse
import os
import sys
from typing import Any, Dict

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds.
trainer_kit.die_with_parent()

import gpt2_sizes  # noqa: E402
import layout  # noqa: E402
import pipeline_parallel  # noqa: E402
import sharding  # noqa: E402
import tensor_parallel  # noqa: E402
import tokens  # noqa: E402
import torch  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402
from model import Gpt  # noqa: E402
from torch.distributed.fsdp import FSDPModule  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

say = trainer_kit.Say("TORCH_GPT2")

BETAS = (0.9, 0.95)
GRAPHS = ("reduce-overhead", "max-autotune")  # modes of torch.compile that use CUDA graphs
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
    parser.add_argument("--parallel", choices=["ddp", "fsdp"], default="ddp", help="how samples are shared")
    parser.add_argument("--tensor-parallel", type=int, default=1, help="devices that share each layer")
    parser.add_argument("--pipeline-parallel", type=int, default=1, help="devices that share the layers")
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--rate-warmup", type=int, default=100, help="steps until the full learning rate")
    parser.add_argument("--clip", type=float, default=1.0, help="norm of the gradients; 0: as they are")
    parser.add_argument("--bucket-mb", type=int, default=25)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


def check(args: argparse.Namespace) -> None:
    """Refuse what this trainer was not seen to do right, and devices or models that cannot be divided."""
    world, local = int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_WORLD_SIZE"])
    size, tensor, stages = gpt2_sizes.MODELS[args.model], args.tensor_parallel, args.pipeline_parallel
    sharded, whole = args.parallel == "fsdp", "torch_gpt2_parallel=%s" % args.parallel
    split, piped = "torch_gpt2_tensor_parallel=%d" % tensor, "torch_gpt2_pipeline_parallel=%d" % stages
    graphs, mode = (
        args.compile and args.compile_mode in GRAPHS,
        "torch_gpt2_compile_mode=%s" % args.compile_mode,
    )
    rules = [
        (local % tensor, "%s: each node of this run has %d devices" % (split, local)),
        (size["heads"] % tensor, "%s: the model has %d heads" % (split, size["heads"])),
        (tensor > 1 and args.compile, "%s does not go with xla=true: use xla=false" % split),
        (world % stages, "%s: this run has %d devices" % (piped, world)),
        (size["layers"] < stages, "%s: the model has %d layers" % (piped, size["layers"])),
        (args.accumulation < stages, "%s: accumulation=%d is less" % (piped, args.accumulation)),
        (stages > 1 and tensor > 1, "%s does not go with %s" % (piped, split)),
        (sharded and tensor > 1, "%s does not go with %s" % (whole, split)),
        (sharded and stages > 1, "%s does not go with %s" % (whole, piped)),
        (sharded and graphs, "%s does not go with %s" % (whole, mode)),
        (stages > 1 and graphs, "%s does not go with %s" % (piped, mode)),
        (sharded and args.dtype == "fp16", "%s does not go with dtype=fp16: use bf16" % whole),
        (stages > 1 and args.dtype == "fp16", "%s does not go with dtype=fp16: use bf16" % piped),
    ]
    for wrong, reason in rules:
        if wrong:
            trainer_kit.refuse(reason)


class Trainer:
    """The model, its optimizer, its sequences and one step of training."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        size = gpt2_sizes.MODELS[args.model]
        stages, sharded = args.pipeline_parallel, args.parallel == "fsdp"
        self.layout = layout.Layout(args.tensor_parallel, stages, sharded)
        torch.manual_seed(args.seed)  # the same weights everywhere
        self.model = Gpt(size, args.seq_length).to(device)
        if args.tensor_parallel > 1:
            tensor_parallel.split(self.model, self.layout.group, size["heads"])
        if stages > 1:
            layers = gpt2_sizes.layers_of_stages(size, stages)
            pipeline_parallel.split(self.model, self.layout.stage, layers)
        if args.compile:
            self.model.compile_parts(mode=args.compile_mode, dynamic=False)
        if sharded:
            # It casts the weights when it gathers them.
            sharding.shard(self.model, torch_run.DTYPES[args.dtype], args.bucket_mb, keep=False)
        else:
            # Within the model: the backward pass of a pipeline begins before all forward passes have ended.
            self.model.forward = torch_run.precision(device, args.dtype)(self.model.forward)
        wide = [p for p in self.model.parameters() if p.dim() > 1]
        flat = [p for p in self.model.parameters() if p.dim() <= 1]
        groups = [{"params": wide, "weight_decay": DECAY}, {"params": flat, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, args.learning_rate, BETAS, fused=True)
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")
        self.runner: Any = self.model
        if self.layout.replica_count > 1:
            self.runner = DistributedDataParallel(
                self.model,
                process_group=self.layout.replicas,
                gradient_as_bucket_view=True,
                static_graph=args.accumulation == 1,
                bucket_cap_mb=args.bucket_mb,
            )
        vocabulary, seq = size["vocabulary"], args.seq_length
        own = tokens.read(args.data, seq, vocabulary) if args.data else None
        # The devices that hold one model take the same sequences.
        seed = args.seed + self.layout.replica
        batch = args.batch * args.tensor_parallel * stages
        self.sequences = tokens.Sequences(own, batch, seq, vocabulary, seed, device)
        self.pipeline = None
        if stages > 1:
            shape, (group, tied) = [batch, seq, size["hidden"]], (self.layout.group, self.layout.tied)
            self.pipeline = pipeline_parallel.Pipeline(
                self.runner, group, tied, shape, args.accumulation, device
            )

    def what_was_built(self) -> Dict[str, Any]:
        """Return how the devices share the training, read off what was built."""
        sharded, pipeline = isinstance(self.model, FSDPModule), self.pipeline
        parameters = [layout.local(parameter) for parameter in self.model.parameters()]
        return {
            "parallel": "fsdp" if sharded else "ddp",
            "replicas": self.runner.process_group.size() if self.runner is not self.model else 1,
            "shards": next(self.model.parameters()).device_mesh.size() if sharded else 1,
            "pipeline_parallel": pipeline.stage.num_stages if pipeline else 1,
            "schedule": type(pipeline.schedule).__name__ if pipeline else "none",
            "micro_batches": pipeline.micro_batches if pipeline else self.args.accumulation,
            "layers": len(self.model.layers),
            "local_parameters": sum(parameter.numel() for parameter in parameters),
        }

    def gradients(self) -> torch.Tensor:
        """Compute the gradients of a step; return its loss on this device, a tensor there."""
        count = self.args.accumulation
        batches = [next(self.sequences) for _ in range(count)]
        if self.pipeline:
            return self.pipeline.step(*map(torch.cat, zip(*batches)))  # noqa: B905 - Python 3.6
        losses = []
        for micro, (words, following) in enumerate(batches):
            last = micro + 1 == count
            if isinstance(self.model, FSDPModule):
                self.model.set_requires_gradient_sync(last)
            elif self.runner is not self.model:
                self.runner.require_backward_grad_sync = last
            # A new tensor: CUDA graphs write the next loss where this one is.
            loss = self.runner(words, following) / count
            self.scaler.scale(loss).backward()
            losses.append(loss.detach())
        return losses[0] if count == 1 else torch.stack(losses).sum()

    def step(self, number: int) -> torch.Tensor:
        """Take one step of the optimizer; return its loss on this device, a tensor there."""
        args = self.args
        for group in self.optimizer.param_groups:
            group["lr"] = args.learning_rate * min(1.0, number / args.rate_warmup)
        loss = self.gradients()
        if self.layout.group is not None and self.scaler.is_enabled():
            layout.share_overflow(self.model, self.layout)
        if args.clip:
            self.scaler.unscale_(self.optimizer)
            layout.clip(self.model, layout.norm(self.model, self.layout), args.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss


def print_setup(args: argparse.Namespace, device: torch.device, nodes: int) -> None:
    """Print what takes part and what it does."""
    size = gpt2_sizes.MODELS[args.model]
    if args.parallel == "fsdp":
        # Without autocast, with the weights as they are gathered.
        context, weights = torch_run.precision(device, "fp32"), torch_run.DTYPES[args.dtype]
    else:
        context, weights = torch_run.precision(device, args.dtype), torch.float32
    dtype = torch_run.product_dtype(device, context, weights)
    torch_run.announce(say, args, nodes, dtype, tensor_parallel=args.tensor_parallel)
    say(
        model=args.model,
        parameters=gpt2_sizes.parameters(size, args.seq_length),
        seq_length=args.seq_length,
        data="own" if args.data else "synthetic",
    )
    for line in torch_run.software(device):
        say(**line)


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
    if first:
        say(**trainer.what_was_built())
    stamps = torch_run.take_steps(say, args.steps, args.warmup, device, trainer.step)
    same = layout.agree(trainer.model, trainer.layout, device)
    total, squares = layout.sums(trainer.model, trainer.layout, device)
    sequences = args.batch * args.accumulation
    torch_run.print_rate(say, "sequences", sequences, device, stamps, args.warmup, args.seq_length)
    if first:
        say(weights_sum="%.9e" % total, weights_sum_of_squares="%.9e" % squares)
    torch_end.finish(say, same, len(stamps))


if __name__ == "__main__":
    main()
