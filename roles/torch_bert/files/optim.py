# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Optimizers: torch's fused AdamW, or LAMB; and clipping that waits for nothing."""

import torch


def groups(model, decay):
    """Parameters with weight decay and, as BERT does it, biases and norms without."""
    wide = [p for p in model.parameters() if p.dim() > 1]
    flat = [p for p in model.parameters() if p.dim() <= 1]
    return [{"params": wide, "weight_decay": decay}, {"params": flat, "weight_decay": 0.0}]


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al. 2020, arXiv:1904.00962): Adam's step scaled by |weight| / |step| per tensor."""

    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})
        self.steps = 0

    @torch.no_grad()
    def step(self):
        """Update every parameter; a few kernels for all tensors of a group together."""
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
                # A tensor or a step of zeros has no ratio.
                ratios = [r.nan_to_num(nan=1.0, posinf=1.0) + (r == 0) for r in ratios]
                torch._foreach_mul_(update, ratios)
            torch._foreach_add_(params, update, alpha=-group["lr"])


def make(name, model, rate, decay, fused):
    """The optimizer of a name, adamw or lamb."""
    if name == "lamb":
        return Lamb(groups(model, decay), rate, weight_decay=decay)
    return torch.optim.AdamW(groups(model, decay), rate, eps=1e-6, fused=fused)


def clip(model, limit):
    """Scale the gradients to a norm of at most `limit`; no value goes to the host."""
    torch.nn.utils.clip_grad_norm_(model.parameters(), limit, foreach=True)
