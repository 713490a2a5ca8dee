# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What DeepSpeed 1afca8f imports and an environment may lack: apex, and torch._six, which went with torch 2.

Python imports a module of this name when it starts, if PYTHONPATH has its directory: so the launcher's own
processes, which import DeepSpeed too, get it as well. Only what is not installed is supplied. Python 3.6 or
newer.
"""

import importlib.abc
import importlib.machinery
import sys

NAMES = ("torch._six", "apex", "apex.amp", "apex.optimizers", "apex.optimizers.fused_adam")


def fill_six(module):
    """The one name that DeepSpeed takes from torch._six."""
    module.inf = float("inf")


def fill_adam(module):
    """apex's fused Adam is torch's AdamW, fused on GPUs where torch can: with bias correction, always."""
    import torch

    class FusedAdam(torch.optim.AdamW):
        """AdamW in apex' place."""

        def __init__(self, params, bias_correction=True, **options):
            params = list(params)
            tensors = [t for p in params for t in (p["params"] if isinstance(p, dict) else [p])]
            # torch before 2.0 has no fused AdamW.
            if all(t.is_cuda for t in tensors) and hasattr(torch, "compile"):
                options["fused"] = True
            super().__init__(params, **options)

    module.FusedAdam = FusedAdam


def fill_optimizers(module):
    """DeepSpeed asks whether an optimizer is apex.optimizers.FusedAdam."""
    from apex.optimizers.fused_adam import FusedAdam

    module.FusedAdam = FusedAdam


def fill_apex(module):
    """DeepSpeed asks for no more than apex itself before it uses apex.optimizers."""
    import apex.optimizers  # noqa: F401 - becomes an attribute of apex


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last, for what no other has found."""

    def find_spec(self, name, path, target=None):
        """Say that this makes the modules of NAMES."""
        if name not in NAMES:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=__file__)
        if name in ("apex", "apex.optimizers"):
            spec.submodule_search_locations = []
        return spec

    def create_module(self, spec):
        """Leave it to Python: an empty module."""

    def exec_module(self, module):
        """Fill it."""
        filled = {
            "torch._six": fill_six,
            "apex": fill_apex,
            "apex.optimizers": fill_optimizers,
            "apex.optimizers.fused_adam": fill_adam,
        }.get(module.__name__)
        if filled:
            filled(module)


sys.meta_path.append(Finder())
