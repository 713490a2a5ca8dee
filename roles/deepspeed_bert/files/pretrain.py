# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Pretrain role torch_bert's BERT with DeepSpeed: one process per device, under DeepSpeed's launcher.

DeepSpeed itself prints the steps: its engine's throughput timer prints every optimizer step from the third
on. The lines of this program begin with DEEPSPEED_BERT. Rank 0 prints what the sanity checks read: world
size, nodes, backend, batch, dtype, and at the end that the losses were finite and the ranks have the same
weights. Model, data and optimizer are those of role torch_bert, whose files are in the same directory.
"""

import argparse
import gc
import math
import os
import socket
import sys
import time
from typing import Any, Dict, List, Tuple

import trainer_kit

trainer_kit.die_with_parent()

import bert_attention  # noqa: E402
import bert_optim  # noqa: E402
import bert_sizes  # noqa: E402
import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402
from bert_batches import Loader, shape  # noqa: E402
from bert_model import Bert  # noqa: E402

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


say = trainer_kit.Say("DEEPSPEED_BERT")


def arguments() -> argparse.Namespace:
    """Return the command line; every value that affects a measurement has an option."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--local_rank", type=int, default=0, help="given by DeepSpeed's launcher")
    parser.add_argument("--port", type=int, required=True, help="port of the rendezvous on the first node")
    parser.add_argument("--device", choices=["cpu", "gpu"], required=True)
    parser.add_argument("--model", choices=sorted(bert_sizes.MODELS), required=True)
    parser.add_argument("--dtype", choices=sorted(DTYPES), required=True)
    parser.add_argument("--data", required=True, help="directory with one directory of arrays per vocabulary")
    parser.add_argument("--batch", type=int, required=True, help="samples per device and micro-step")
    parser.add_argument("--accumulation", type=int, required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warmup", type=int, required=True, help="steps before the window")
    parser.add_argument("--zero-stage", type=int, choices=[0, 1, 2], default=0)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--rate-warmup", type=int, default=100, help="steps until the full learning rate")
    parser.add_argument("--decay", type=float, default=0.01)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


def settings(args: argparse.Namespace) -> Dict[str, Any]:
    """Return DeepSpeed's configuration. Its default log level would hide the throughput."""
    return {
        "train_micro_batch_size_per_gpu": args.batch,
        "gradient_accumulation_steps": args.accumulation,
        "steps_per_print": 1,
        "log_level": "info",
        "gradient_clipping": args.clip,
        "zero_optimization": {"stage": args.zero_stage},
        "fp16": {"enabled": args.dtype == "fp16", "loss_scale": 0},
        "bf16": {"enabled": args.dtype == "bf16"},
        "scheduler": {
            "type": "WarmupLR",
            "params": {
                "warmup_min_lr": 0.0,
                "warmup_max_lr": args.learning_rate,
                "warmup_num_steps": args.rate_warmup,
                "warmup_type": "linear",
            },
        },
    }


def set_rank(args: argparse.Namespace) -> None:
    """Set the variables that torchrun sets and `versions` reads.

    DeepSpeed's launcher sets CROSS_RANK and gives the local rank as an argument. Under mpirun there are only
    Open MPI's variables until the process group is formed.
    """
    mpi: Dict[str, Any] = {
        name: os.environ.get("OMPI_COMM_WORLD_" + name) for name in ("RANK", "LOCAL_RANK", "LOCAL_SIZE")
    }
    if "CROSS_RANK" in os.environ:
        os.environ["GROUP_RANK"] = os.environ["CROSS_RANK"]
    elif mpi["RANK"] is not None:
        args.local_rank = int(mpi["LOCAL_RANK"])
        os.environ["GROUP_RANK"] = str(int(mpi["RANK"]) // int(mpi["LOCAL_SIZE"]))
    os.environ.setdefault("GROUP_RANK", "0")


def join(args: argparse.Namespace) -> torch.device:
    """Form the process group; return the device of this process."""
    set_rank(args)
    if args.device == "gpu":
        device = torch.device("cuda", args.local_rank)
        torch.cuda.set_device(device)
        torch.set_float32_matmul_precision("high")
        deepspeed.init_distributed("nccl", distributed_port=args.port)
        return device
    # Otherwise DeepSpeed compiles a library for minutes, and hangs after an interrupted compilation.
    deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed("gloo", distributed_port=args.port)
    return torch.device("cpu")


def print_setup(args: argparse.Namespace, device: torch.device) -> None:
    """Print what takes part: rank 0 what the sanity checks read, each node's first process its place."""
    nodes = torch_run.nodes()
    if dist.get_rank() == 0:
        world = dist.get_world_size()
        say(world_size=world, nodes=nodes, backend=dist.get_backend(), zero_stage=args.zero_stage)
        say(
            batch=args.batch,
            accumulation=args.accumulation,
            global_batch=args.batch * args.accumulation * world,
        )
        say(dtype=args.dtype, model=args.model)
        say(deepspeed=deepspeed.__version__)
    if args.local_rank == 0:
        say(node_rank=os.environ["GROUP_RANK"], host=socket.gethostname())
        for line in torch_run.software(device):
            say(**line)


def train(args: argparse.Namespace, engine: Any, loader: Loader) -> Tuple[float, float, List[float]]:
    """Run all optimizer steps; return the first and the last loss, and the end of each step."""
    gc.collect()
    gc.freeze()
    gc.disable()
    first: Any = None
    loss: Any = None
    stamps = []
    for _ in range(args.steps):
        for _ in range(args.accumulation):
            batch, keys = next(loader)
            loss = engine(batch, keys)
            if first is None:
                first = loss.item()
            engine.backward(loss)
            engine.step()
        stamps.append(time.monotonic())  # the engine's own timer has waited for the device
    return first, loss.item(), stamps


def print_rate(args: argparse.Namespace, stamps: List[float]) -> None:
    """Print the rate over the window."""
    first = min(args.warmup, len(stamps) - 1)
    samples = args.batch * args.accumulation * (len(stamps) - first)
    rate = samples / (stamps[-1] - stamps[first - 1])
    say(samples_per_second="%.2f" % (rate * dist.get_world_size()))


def main() -> None:
    """Form the process group, train, check, and print the results."""
    args = arguments()
    device = join(args)
    print_setup(args, device)
    rank, world = dist.get_rank(), dist.get_world_size()
    size = bert_sizes.MODELS[args.model]
    dtype = DTYPES[args.dtype]
    directory = bert_sizes.data_of(args.data, args.model)
    seq, predictions = shape(directory)
    attend = bert_attention.choose("auto", args.device, dtype, seq, size["hidden"] // size["heads"])
    torch.manual_seed(args.seed)  # the same weights everywhere
    model = Bert(size, dtype, attend, args.dropout)
    torch.manual_seed(args.seed + rank)  # dropout differs
    sites = model.sites
    model = model.to(device)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=bert_optim.make("adamw", model, args.learning_rate, args.decay, True),
        config=settings(args),
    )
    loader = Loader(directory, args.batch, sites, rank, world, args.seed, device)
    first, last, stamps = train(args, engine, loader)
    if not (math.isfinite(first) and math.isfinite(last)):
        sys.exit("the loss on rank %d went from %s to %s" % (rank, first, last))
    if not torch_end.agree(engine.module, device):
        sys.exit("the ranks have different weights: the gradients were not summed")
    if rank == 0:
        if args.device == "gpu":
            say(peak_memory_mib=torch.cuda.max_memory_allocated() >> 20)
        print_rate(args, stamps)
        say(loss_first="%.4f" % first, loss_last="%.4f" % last, loss="finite")
        say(steps_done=engine.global_steps, skipped=engine.skipped_steps)
        say(weights="agree", end="true")
    mpi = sys.modules.get("mpi4py.MPI")  # DeepSpeed imported it under mpirun
    if mpi:
        mpi.Finalize()  # otherwise mpirun reports a failure: torch_end.leave does not call it
    torch_end.leave()


if __name__ == "__main__":
    main()
