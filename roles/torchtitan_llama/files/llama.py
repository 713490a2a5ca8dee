# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A plug-in of torchtitan 0.2.2: the train spec `llama`.

The model, the parallelism, the optimizer, FP8 and the loop are torchtitan's. Added are the sizes of the
declaration (torchtitan cannot tie the embeddings of 1B and 3B), FSDP2 on a single device too, invented
tokens, and the lines for the reader: what was built, not what was asked for; each step; and a checksum of all
weights.
"""

import argparse
import contextlib
import dataclasses
import os
import time
from typing import Any, Dict, Iterator, List, Set

import own_text
import torch
import torch.distributed as dist
import torch_run
import trainer_kit
from torch._dynamo.eval_frame import OptimizedModule
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torchtitan.components.dataloader import BaseDataLoader
from torchtitan.components.metrics import MetricsProcessor
from torchtitan.config import TORCH_DTYPE_MAP
from torchtitan.distributed import utils as dist_utils
from torchtitan.models.llama3 import get_train_spec
from torchtitan.models.llama3.infra.parallelize import apply_fsdp, parallelize_llama
from torchtitan.models.llama3.model.args import TransformerModelArgs
from torchtitan.protocols.train_spec import register_train_spec
from torchtitan.tools import utils

say = trainer_kit.Say("TORCHTITAN_LLAMA")

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16"}


def model_args(size: Dict[str, int]) -> TransformerModelArgs:
    """Return the size of a model as torchtitan takes it.

    It derives the feed-forward width: a small one, rounded up to a multiple of the one that is asked for.
    """
    return TransformerModelArgs(
        dim=size["hidden"],
        n_layers=size["layers"],
        n_heads=size["heads"],
        n_kv_heads=size["kv_heads"],
        vocab_size=size["vocabulary"],
        ffn_dim_multiplier=0.01,
        multiple_of=size["intermediate"],
        rope_theta=500000,
    )


class Batches(BaseDataLoader):
    """An endless stream of batches, drawn on the CPU one at a time; the same for the same seed and rank.

    An invented token k has a probability of about 1/k (Zipf's law): a loss that stays at ln(vocabulary)
    trained nothing. Sequences of the user's `own` tokens begin at random ones.
    """

    def __init__(self, batch: int, seq: int, vocabulary: int, seed: int, own: Any) -> None:
        self.shape, self.vocabulary, self.own = (batch, seq + 1), vocabulary, own
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[Any]:
        while True:
            shape = self.shape[:1] if self.own else self.shape
            draws = torch.rand(shape, generator=self.generator, dtype=torch.float64)
            if self.own:
                tokens = torch.from_numpy(self.own.rows(draws.numpy(), self.shape[1]))
            else:
                tokens = (self.vocabulary**draws).long().clamp_(max=self.vocabulary) - 1
            yield {"input": tokens[:, :-1].contiguous()}, tokens[:, 1:].contiguous()

    def state_dict(self) -> Dict[str, Any]:
        """Return the place in the stream, for checkpoints."""
        return {"generator": self.generator.get_state()}

    def load_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Go on from a place in the stream."""
        if state_dict:
            self.generator.set_state(state_dict["generator"])


def parallelize(model: Any, parallel_dims: Any, job_config: Any) -> Any:
    """Apply torchtitan's parallelism, and FSDP2 on a single device too.

    There torchtitan 0.2.2 uses autocast: weights are cast in each step, and the residual stream stays in
    fp32, so that one device and two would compare two programs. torchtitan 0.3.0 does as this function.
    """
    model = parallelize_llama(model, parallel_dims, job_config)
    if parallel_dims.world_size > 1:
        return model
    training = job_config.training
    apply_fsdp(
        model,
        init_device_mesh(utils.device_type, (1,), mesh_dim_names=("fsdp",)),
        param_dtype=TORCH_DTYPE_MAP[training.mixed_precision_param],
        reduce_dtype=TORCH_DTYPE_MAP[training.mixed_precision_reduce],
        pp_enabled=False,
        reshard_after_forward_policy="never",
    )
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # NCCL's AVG, which the divide factor 1 becomes on one device, may be wrong there.
            module.set_force_sum_reduction_for_comms(True)
    dist_utils.maybe_enable_amp = lambda *args: contextlib.nullcontext()
    return model


def local(tensor: Any) -> Any:
    """Return this rank's part of a tensor."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def one_of(values: Set[str]) -> str:
    """Return the one word that holds for all parts of a model, or all that do."""
    return "+".join(sorted(values)) or "none"


def float8_kind(linears: List[Any]) -> str:
    """Return how float8 scales weights and whether it gathers them in FP8, read off the layers."""
    kinds = set()
    for layer in linears:
        scaling = layer.config.cast_config_weight.scaling_granularity.name.lower()
        gather = "_gather" if layer.config.enable_fsdp_float8_all_gather else ""
        kinds.add({"axiswise": "rowwise"}.get(scaling, scaling) + gather)
    return one_of(kinds)


def checkpointing(wrappers: List[Any], blocks: int) -> str:
    """Return which activations of the blocks are computed again: none, selective or full."""
    kinds = {"selective" if "context_fn" in each.checkpoint_fn.keywords else "full" for each in wrappers}
    return one_of(kinds) if len(wrappers) in (0, blocks) else "some"


@torch.no_grad()
def checksum(parts: List[Any]) -> int:
    """Return the sum of the bit patterns of all ranks' weights, modulo 2**64: two equal runs have one."""
    total = torch.zeros((), dtype=torch.int64, device=local(next(parts[0].parameters())).device)
    for parameter in (parameter for part in parts for parameter in part.parameters()):
        mine = local(parameter.detach())
        mine = getattr(mine, "_tensor", mine)  # the weight within torchao's wrapper
        bits = mine.contiguous().view(torch.int32 if mine.element_size() == 4 else torch.int16)
        total += bits.sum(dtype=torch.int64)
    dist.all_reduce(total)
    return int(total.item()) % 2**64


def describe_model(parts: List[Any], dims: Any) -> Dict[str, Any]:
    """Return what the built model is, as the words of a line."""
    modules = [module for part in parts for module in part.modules()]
    parameters = [parameter for part in parts for parameter in part.parameters()]
    sharded = [module for module in modules if isinstance(module, FSDPModule)]
    policies = {module._get_fsdp_state()._mp_policy for module in sharded}
    linears = [module for module in modules if isinstance(module, torch.nn.Linear)]
    float8 = [module for module in linears if type(module).__name__ == "Float8Linear"]
    blocks = sum(len(part.layers) for part in parts)
    compiled = sum(isinstance(module, OptimizedModule) for module in modules)
    dtype = one_of({NAMES[policy.param_dtype] for policy in policies})
    # All layers but the projection to the vocabulary.
    in_float8 = dtype == "bf16" and len(float8) == len(linears) - 1
    return {
        "dtype": "fp8" if in_float8 else dtype + "+fp8" if float8 else dtype,
        "compile": str(compiled == blocks).lower() if compiled in (0, blocks) else "some",
        "checkpointing": checkpointing([m for m in modules if isinstance(m, CheckpointWrapper)], blocks),
        "float8": float8_kind(float8),
        "float8_layers": len(float8),
        "weights": one_of({NAMES[parameter.dtype] for parameter in parameters}),
        "sums": one_of({NAMES[policy.reduce_dtype] for policy in policies}),
        "sharded_modules": len(sharded),
        "replicas": dims.dp_replicate,
        "shards": dims.dp_shard,
        "tensor_parallel": dims.tp,
        "deterministic": str(torch.are_deterministic_algorithms_enabled()).lower(),
        "parameters": sum(parameter.numel() for parameter in parameters),
        "local_parameters": sum(local(parameter).numel() for parameter in parameters),
    }


class Lines(MetricsProcessor):
    """torchtitan's metrics, and the lines for the reader."""

    args: Any = None
    own: Any = None
    memory = 0

    def log(self, step: int, global_avg_loss: float, *others: Any, **more: Any) -> None:
        """Print a line with the exact loss after torchtitan's own; before the first, what was built."""
        stamp, first, leader = time.time(), not self.stamps, os.environ["LOCAL_RANK"] == "0"
        self.stamps.append(stamp)
        if self.args.device == "gpu":  # torchtitan resets it after each line
            self.memory = max(self.memory, torch.cuda.max_memory_allocated())
        if first:
            nodes = torch_run.nodes()
            if leader:
                self.describe(nodes)
        super().log(step, global_avg_loss, *others, **more)
        if dist.get_rank() == 0:
            say(
                step="%d/%d" % (step, self.args.steps), loss=repr(float(global_avg_loss)), time="%.6f" % stamp
            )
        if not trainer_kit.is_number(global_avg_loss):
            raise ValueError("the loss of step %d is %s" % (step, global_avg_loss))
        if step == self.args.steps:
            self.summarize()

    def describe(self, nodes: int) -> None:
        """Print what takes part, the batch, and what was built."""
        args, device = self.args, torch.device(utils.device_type)
        say(world_size=dist.get_world_size(), backend=dist.get_backend(), nodes=nodes, **torch_run.where())
        whole = args.batch * args.accumulation * dist.get_world_size()
        say(batch=args.batch, accumulation=args.accumulation, global_batch=whole)
        say(**describe_model(self.model_parts, self.parallel_dims))
        say(
            model=args.model,
            seq_length=args.seq_length,
            flops_per_token=self.num_flops_per_token,
            data=self.own.own if self.own else "synthetic",
        )
        for line in torch_run.software(device):
            say(**line)

    def summarize(self) -> None:
        """Print the rate over the steps after the warm-up, and that all steps were taken."""
        args, world = self.args, dist.get_world_size()
        steps, times = torch_run.rate(self.stamps, args.warmup)
        memory = self.memory >> 20 if args.device == "gpu" else "none"
        rate = steps * args.batch * args.accumulation * world
        value = checksum(self.model_parts)
        if dist.get_rank() == 0:
            say(
                sequences_per_second="%.4f" % rate,
                tokens_per_second_per_device="%.0f" % (rate * args.seq_length / world),
                peak_memory_mib=memory,
                **times,
            )
        if os.environ["LOCAL_RANK"] == "0":
            say(steps_done=len(self.stamps))
            say(weights_checksum="%016x" % value, end="true")


def begin(args: argparse.Namespace) -> None:
    """Register the train spec `llama` for a run with these arguments."""
    size = trainer_kit.model_size()
    own = own_text.Tokens("torchtitan_llama", args.data, size["vocabulary"]) if args.data else None

    def lines(job_config: Any, parallel_dims: Any, model_args: Any = None, tag: Any = None) -> Lines:
        reporter = Lines(job_config, parallel_dims, tag)
        reporter.args, reporter.own, reporter.stamps = args, own, []
        return reporter

    def loader(dp_world_size: int, dp_rank: int, tokenizer: Any, job_config: Any) -> Batches:
        """Return the loader of a data-parallel rank."""
        training, seed = job_config.training, args.seed * 1_000_003 + dp_rank
        return Batches(training.local_batch_size, training.seq_len, size["vocabulary"], seed, own)

    spec = dataclasses.replace(
        get_train_spec(),
        model_args={args.model: model_args(size)},
        parallelize_fn=parallelize,
        build_tokenizer_fn=None,
        build_dataloader_fn=loader,
        build_metrics_processor_fn=lines,
        build_validator_fn=None,
        state_dict_adapter=None,
    )
    register_train_spec("llama", spec)
