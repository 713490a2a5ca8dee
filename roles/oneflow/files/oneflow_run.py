# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the workloads with trainers of Oneflow-Inc/models have in common: who takes part, and equal weights.

The trainers print neither. Import it after trainer_kit.die_with_parent(): OneFlow takes seconds to import.
"""

import argparse
import os
from typing import Any, Iterable, List

import oneflow as flow
import trainer_kit

BELOW_FP16 = 2.0**-26  # a quarter of the smallest number of fp16, where it becomes 0


def parser(models: Iterable[str], dtypes: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser of the arguments that all these workloads have."""
    case = trainer_kit.parser(models, dtypes)
    case.add_argument("--trainer", required=True, help="directory of the trainer")
    case.add_argument("--devices-per-node", type=int, required=True)
    case.add_argument("--mode", choices=["eager", "graph"], required=True)
    case.add_argument("--learning-rate", type=float, required=True)
    return case


def gathered(values: List[float]) -> List[List[float]]:
    """Return a list of every rank's `values`, in the order of the ranks."""
    world = flow.env.get_world_size()
    if world == 1:
        return [values]
    rows = flow.zeros(world, len(values), dtype=flow.float64)
    rows[flow.env.get_rank()] = flow.tensor(values, dtype=flow.float64)
    everywhere = flow.placement.all("cpu")
    total = rows.to_global(placement=everywhere, sbp=flow.sbp.partial_sum)
    of_ranks: List[List[float]] = total.to_global(sbp=flow.sbp.broadcast).to_local().numpy().tolist()
    return of_ranks


def is_whole(parameter: Any) -> bool:
    """Return whether every rank holds the whole of a parameter, as opposed to a share of it."""
    if not parameter.is_global:
        return True
    return all(bool(each == flow.sbp.broadcast) for each in parameter.sbp)


def sums(model: Any) -> List[float]:
    """Return the sum and the sum of squares of the weights, without the statistics of BatchNorm."""
    whole = filter(is_whole, model.parameters())
    local = (parameter.to_local() if parameter.is_global else parameter for parameter in whole)
    return trainer_kit.sums(each.detach().numpy().astype("float64") for each in local)


def kind_of_device(model: Any) -> str:
    """Return the kind of device that holds the weights, cuda or cpu."""
    parameter = next(iter(model.parameters()))
    return str(parameter.placement.type if parameter.is_global else parameter.device.type)


class Product(flow.nn.Graph):
    """A product of two matrices, with or without automatic mixed precision."""

    def __init__(self, mixed: bool) -> None:
        super().__init__()
        self.config.enable_amp(mixed)

    def build(self, a: Any, b: Any) -> Any:
        """Return the product."""
        return flow.matmul(a, b)


def product_dtype(graph: Any, device: str) -> str:
    """Return the dtype that products have in `graph`, by the name that a case has for it.

    What leaves a graph is fp32 in any case, so a number tells it that fp16 does not have. On CPUs OneFlow
    computes in fp32 whatever it is asked for.
    """
    where = {"placement": flow.placement.all("cuda" if device == "gpu" else "cpu"), "sbp": flow.sbp.broadcast}
    numbers = [flow.full([8, 8], value, dtype=flow.float32, **where) for value in (BELOW_FP16, 1.0)]
    product = Product(graph.config.proto.enable_auto_mixed_precision)(*numbers)
    return "fp32" if product.to_local().numpy().max() > 0 else "fp16"


def begin(say: trainer_kit.Say, args: argparse.Namespace, dtype: str, **about: Any) -> bool:
    """Print who takes part and `about` the run; return whether this is the first rank of its node."""
    rank = flow.env.get_rank()
    # Each rank counts for its node: a group that lacks a node's ranks has fewer.
    ranks = gathered([float(os.environ["TASK_INDEX"])])
    first: bool = rank % args.devices_per_node == 0
    if first:
        nodes = len({row[0] for row in ranks})
        node_rank = rank // args.devices_per_node
        say(world_size=len(ranks), nodes=nodes, node_rank=node_rank, oneflow=flow.__version__)
        say(dtype=dtype, mode=args.mode, device=args.device, **about)
    return first


def end(say: trainer_kit.Say, first: bool, model: Any, steps: int) -> None:
    """Compare the weights of all ranks and print that they agree; exit where they do not."""
    ranks = gathered(sums(model))
    if first:
        on_gpu = kind_of_device(model) == "cuda"
        # On CPUs OneFlow's own collectives sum the gradients.
        say(weights_on="gpu" if on_gpu else "cpu", backend="nccl" if on_gpu else "oneflow")
    trainer_kit.finish(say, first, ranks, steps)
