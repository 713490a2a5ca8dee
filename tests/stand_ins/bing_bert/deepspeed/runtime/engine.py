# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the engine: it forms the group, sums gradients and prints a line a step, as that of 2020."""

import time

import apex
import torch
import torch.distributed as dist
from torch._six import inf


def split_half_float_double_csr(tensors):
    """Those of a GPU only."""
    found = [t for t in tensors if t.type() == "torch.cuda.FloatTensor"]
    return [("torch.cuda.FloatTensor", found)] if found else []


class DeepSpeedEngine(torch.nn.Module):
    """The module with its optimizer."""

    def __init__(self, args, model, parameters):
        super().__init__()
        if not dist.is_initialized():
            dist.init_process_group("nccl")
        self.local_rank = args.local_rank
        self._init_distributed(False)
        self.module = model.to(self.device)
        self.optimizer = apex.optimizers.FusedAdam(parameters, lr=1e-4, bias_correction=False)
        self.global_steps = self.skipped_steps = 0
        self.largest = -inf

    def _init_distributed(self, dist_init_required):
        self.device = torch.device("cuda", self.local_rank)

    def forward(self, batch):
        """The loss."""
        self.samples = len(batch) * dist.get_world_size()
        return self.module(batch.to(self.device)).square().mean()

    def backward(self, loss):
        """Gradients, summed."""
        loss.backward()
        for _, tensors in split_half_float_double_csr([p.grad for p in self.module.parameters()]):
            for tensor in tensors:
                dist.all_reduce(tensor)

    def step(self):
        """One of the optimizer, and its line."""
        self.optimizer.step()
        self.optimizer.zero_grad()
        torch.cuda.synchronize()
        self.global_steps += 1
        now = time.time()
        if self.global_steps == 2:
            self.began = now
        if self.global_steps > 2 and dist.get_rank() == 0:
            mean = self.samples * (self.global_steps - 2) / (now - self.began)
            stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now)) + ",%03d" % (now % 1 * 1000)
            line = "[%s] [INFO] [timer.py:157:stop] 0/%d, SamplesPerSec=%r"
            print(line % (stamp, self.global_steps, mean), flush=True)
