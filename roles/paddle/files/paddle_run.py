# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A run with paddle.distributed under mpirun: its group, lines about it, its loop of steps and its end.

Runs on the nodes, with Paddle; paddle_group.sh has set its place among the processes.
"""

import argparse
import gc
import os
import sys
import time
from typing import Any, Callable, List

import paddle
import paddle.distributed as dist
import paddle_weights
import trainer_kit

DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def precision(dtype: str) -> Any:
    """Return the context that computes a loss in `dtype`: automatic mixed precision, but for fp32."""
    return paddle.amp.auto_cast(enable=dtype != "fp32", dtype=DTYPES[dtype].replace("32", "16"))


def product_dtype(dtype: str) -> str:
    """Return the dtype that a product has in this context, by the name that a case has for it.

    Where a device lacks a dtype, Paddle warns and computes in another.
    """
    with precision(dtype):
        product = paddle.matmul(paddle.ones([8, 8]), paddle.ones([8, 8]))
    return {getattr(paddle, each): name for name, each in DTYPES.items()}[product.dtype]


def computes() -> bool:
    """Return whether the device computes.

    A build of Paddle without code for a GPU warns, leaves zeros and ends with status 0 (2.6.2 on an H100).
    """
    numbers = paddle.to_tensor([1.0, 2.0, 3.0])
    return bool((numbers + numbers).tolist() == [2.0, 4.0, 6.0])


class Group:
    """All processes of a run, as one of them sees them; `say` prints its lines."""

    def __init__(self, say: Callable[..., None], device: str, devices_per_node: int) -> None:
        self.say = say
        place = int(os.environ["PADDLE_TRAINER_ID"])
        paddle.set_device("cpu" if device == "cpu" else "gpu:%d" % (place % devices_per_node))
        if not computes():
            sys.exit("Paddle %s has no code for this device: 1 + 1 is not 2 on it" % paddle.__version__)
        if int(os.environ["PADDLE_TRAINERS_NUM"]) > 1:
            dist.init_parallel_env()
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.node = self.rank // devices_per_node
        # The first process of every node prints what the reader compares with the case.
        self.first = self.rank % devices_per_node == 0

    def gathered(self, value: List[Any]) -> List[Any]:
        """Return a list of every rank's `value`, in the order of the ranks."""
        if self.world == 1:
            return [value]
        of_ranks: List[Any] = []
        dist.all_gather_object(of_ranks, value)
        return of_ranks

    def announce(self, args: argparse.Namespace, **options: Any) -> None:
        """Print what takes part, the batch and the precision; `options` are the workload's own choices."""
        dtype = product_dtype(args.dtype)
        backend = dist.get_backend().lower() if self.world > 1 else "none"
        nodes = len({place[0] for place in self.gathered([os.environ["NODE"]])})
        if self.first:
            self.say(
                world_size=self.world,
                backend=backend,
                nodes=nodes,
                node_rank=self.node,
                paddle=paddle.__version__,
            )
            self.say(batch=args.batch, global_batch=args.batch * self.world)
            self.say(dtype=dtype, **options)

    def take_steps(self, steps: int, step: Callable[[], float]) -> None:
        """Take all steps; rank 0 prints each. Exit where a loss is not a number.

        `step` returns the loss: who reads it waits for the device.
        """
        # The garbage collector would run in the middle of a step and be measured with it.
        gc.collect()
        gc.disable()
        for number in range(1, steps + 1):
            loss = step()
            if self.rank == 0:
                self.say(step="%d/%d" % (number, steps), loss="%.5f" % loss, time="%.6f" % time.time())
            if not trainer_kit.is_number(loss):
                sys.exit("the loss of step %d on rank %d is %s" % (number, self.rank, loss))

    def finish(self, parameters: List[Any], steps: int) -> None:
        """Compare the weights of all ranks and print the results."""
        trainer_kit.finish(self.say, self.first, self.gathered(paddle_weights.sums(parameters)), steps)
