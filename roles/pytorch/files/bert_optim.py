# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Optimizers (PyTorch's fused AdamW, or LAMB), and gradient clipping that does not synchronize the device."""

from typing import Any, Dict, Iterable, List, Tuple

import torch


def groups(model: torch.nn.Module, decay: float) -> List[Dict[str, Any]]:
    """Return the parameter groups: weights with weight decay, biases and norms without it, as BERT does."""
    wide = [p for p in model.parameters() if p.dim() > 1]
    flat = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": wide, "weight_decay": decay}, {"params": flat, "weight_decay": 0.0}]


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962): Adam's step scaled by |weight| / |step| per tensor."""

    def __init__(
        self,
        params: Iterable[Dict[str, Any]],
        lr: float,
        betas: Tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.steps = 0

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter; a few kernels handle all tensors of a group."""
        self.steps += 1
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            if not params:
                continue
            first, second = group["betas"]
            for p in params:
                if not self.state[p]:
                    self.state[p] = {"mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
            grads = [p.grad for p in params]
            means = [self.state[p]["mean"] for p in params]
            squares = [self.state[p]["square"] for p in params]
            torch._foreach_lerp_(means, grads, 1 - first)
            torch._foreach_mul_(squares, second)
            torch._foreach_addcmul_(squares, grads, grads, 1 - second)
            bottom = torch._foreach_sqrt(squares)
            torch._foreach_div_(bottom, (1 - second**self.steps) ** 0.5)
            torch._foreach_add_(bottom, group["eps"])
            update = torch._foreach_div(means, bottom)
            torch._foreach_div_(update, 1 - first**self.steps)
            if group["weight_decay"]:
                torch._foreach_add_(update, params, alpha=group["weight_decay"])
                weights = torch._foreach_norm(params)
                ratios = torch._foreach_div(weights, torch._foreach_norm(update))
                # The ratio of a tensor or an update that is all zeros is undefined: use 1.
                ratios = [r.nan_to_num(nan=1.0, posinf=1.0) + (r == 0) for r in ratios]
                torch._foreach_mul_(update, ratios)
            torch._foreach_add_(params, update, alpha=-group["lr"])


def make(name: str, model: torch.nn.Module, rate: float, decay: float, fused: bool) -> torch.optim.Optimizer:
    """Return the optimizer with this name: adamw or lamb."""
    if name == "lamb":
        return Lamb(groups(model, decay), rate, weight_decay=decay)
    return torch.optim.AdamW(groups(model, decay), rate, eps=1e-6, fused=fused)


def clip(model: torch.nn.Module, limit: float) -> None:
    """Scale the gradients to a norm of at most `limit`; no value is copied to the host."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit, foreach=True)
