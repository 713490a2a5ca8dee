# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Start torchtitan's own trainer with the plug-in llama.py: one process per device, under torchrun.

torchtitan is unmodified. It knows no CPUs: for a run on CPUs it is taught the device `cpu` and gloo first.
"""

import argparse
import collections
import logging
import os
import runpy
import sys
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds.
trainer_kit.die_with_parent()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

# What the converter of torchtitan is asked for; all of them leave the projection to the vocabulary in bf16.
FLOAT8 = {
    "tensorwise": [],
    "tensorwise_gather": [
        "--quantize.linear.float8.enable_fsdp_float8_all_gather",
        "--quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
    ],
    "rowwise": ["--quantize.linear.float8.recipe_name", "rowwise"],
}
DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp8": "bfloat16"}
CAPABILITY = (8, 9)  # of GPUs that multiply in FP8: Ada and Hopper


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser((), DTYPES)
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--seq-length", type=int, default=2048)
    parser.add_argument("--compile", type=trainer_kit.boolean, default=False)
    parser.add_argument(
        "--tensor-parallel", type=int, default=1, help="devices that hold a part of each layer"
    )
    parser.add_argument("--replicas", type=int, default=1, help="groups of devices that hold all weights")
    parser.add_argument("--checkpointing", choices=["none", "selective", "full"], default="selective")
    parser.add_argument("--float8", choices=sorted(FLOAT8), default="tensorwise_gather")
    parser.add_argument("--deterministic", type=trainer_kit.boolean, default=False)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=2020)
    parser.add_argument("--data", default="", help="directory of the user's own tokens; none: invented ones")
    parser.add_argument("--output", required=True, help="directory for what torchtitan writes")
    return parser.parse_args()


def options(args: argparse.Namespace, world: int) -> List[str]:
    """Return the command line of torchtitan for a case."""
    flags = {
        "job.dump_folder": args.output,
        "model.name": "llama",
        "model.flavor": args.model,
        "metrics.log_freq": 1,
        "optimizer.lr": args.learning_rate,
        "lr_scheduler.warmup_steps": min(5, args.steps),
        # The devices that share each layer take the same sequences.
        "training.local_batch_size": args.batch * args.tensor_parallel,
        "training.global_batch_size": args.batch * args.accumulation * world,
        "training.seq_len": args.seq_length,
        "training.steps": args.steps,
        "training.mixed_precision_param": DTYPES[args.dtype],
        # Garbage would be collected in the middle of the window.
        "training.gc_freq": args.steps + 1,
        "parallelism.data_parallel_replicate_degree": args.replicas,
        "parallelism.tensor_parallel_degree": args.tensor_parallel,
        "activation_checkpoint.mode": args.checkpointing,
        "activation_checkpoint.selective_ac_option": "op",
        "debug.seed": args.seed,
    }
    words = ["--metrics.disable_color_printing"]
    for name, value in flags.items():
        words += ["--%s" % name, str(value)]
    words += ["--compile.enable"] if args.compile else []
    words += ["--debug.deterministic"] if args.deterministic else []
    if args.dtype == "fp8":
        words += [
            "--model.converters",
            "quantize.linear.float8",
            "--quantize.linear.float8.filter_fqns",
            "output",
        ]
        words += FLOAT8[args.float8]
        words += ["--quantize.linear.float8.emulate"] if args.device == "cpu" else []
    return words


def refuse(args: argparse.Namespace) -> None:
    """End the run where its devices cannot compute in FP8 as it asks."""
    if args.dtype != "fp8":
        return
    if args.device == "cpu":
        if args.float8 == "rowwise" or args.compile:
            trainer_kit.refuse(
                "fp8 is emulated on a CPU: only with xla=false and another float8 than rowwise"
            )
        return
    capability = torch.cuda.get_device_capability(int(os.environ["LOCAL_RANK"]))
    if capability < CAPABILITY:
        trainer_kit.refuse(
            "dtype=fp8: the GPU has compute capability %d.%d, FP8 needs 8.9 or newer: use dtype=bf16"
            % capability
        )


def on_cpus() -> None:
    """Teach torchtitan 0.2.2 the device `cpu`.

    It takes the device from torch._utils and falls back to `cuda`; torch.cpu lacks what its monitor of memory
    asks for; gloo's barrier knows no device_ids, and gloo has no PREMUL_SUM, which FSDP2 takes for a factor.
    """
    import torch._utils
    from torch.distributed.fsdp import FSDPModule

    properties = collections.namedtuple("properties", "total_memory")  # noqa: PYI024 - Python 3.6
    barrier, divide = dist.barrier, FSDPModule.set_gradient_divide_factor

    def divide_and_sum(module: Any, factor: float) -> None:
        divide(module, factor)
        module.set_force_sum_reduction_for_comms(True)

    torch._utils._get_available_device_type = lambda: "cpu"
    torch.cpu.get_device_name = lambda device=None: "CPU"
    torch.cpu.get_device_properties = lambda device=None: properties(os.sysconf("SC_PHYS_PAGES") << 12)
    torch.cpu.memory_stats = lambda device=None: {}
    torch.cpu.reset_peak_memory_stats = lambda device=None: None
    torch.cpu.empty_cache = lambda: None
    dist.barrier = lambda *args, device_ids=None, **kwargs: barrier(*args, **kwargs)
    FSDPModule.set_gradient_divide_factor = divide_and_sum


def main() -> None:
    """Run torchtitan's trainer; llama.py prints the lines for the reader."""
    args = arguments()
    refuse(args)
    if args.device == "cpu":
        on_cpus()
    if os.environ["LOCAL_RANK"] != "0":
        logging.disable(logging.INFO)
    # torchtitan reads it when it is imported, which the plug-in does.
    sys.argv = ["torchtitan.train", *options(args, int(os.environ["WORLD_SIZE"]))]
    import llama

    llama.begin(args)
    runpy.run_module("torchtitan.train", run_name="__main__", alter_sys=True)
    sys.stdout.flush()
    if args.device == "cpu":
        # Threads of gloo can abort the process while Python ends (pytorch/pytorch#190489).
        os._exit(0)


if __name__ == "__main__":
    main()
