# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Replacements for modules that DeepSpeed 1afca8f imports and an environment may lack: apex, and torch._six,
which torch 2 removed.

Python imports a module of this name when it starts, if PYTHONPATH has its directory: so the launcher's own
processes, which import DeepSpeed too, get it as well. A module that is installed is never replaced. Python
3.6 or newer.
"""

import importlib.abc
import importlib.machinery
import sys
from typing import Any, Optional, Sequence

NAMES = ("torch._six", "apex", "apex.amp", "apex.optimizers", "apex.optimizers.fused_adam")


def fill_six(module: Any) -> None:
    """Define the one name that DeepSpeed imports from torch._six."""
    module.inf = float("inf")


def fill_adam(module: Any) -> None:
    """Define apex's fused Adam as torch's AdamW, fused on GPUs where possible; it corrects the bias."""
    import torch

    class FusedAdam(torch.optim.AdamW):
        """AdamW with the signature of apex."""

        def __init__(self, params: Any, bias_correction: bool = True, **options: Any) -> None:
            params = list(params)
            tensors = [t for p in params for t in (p["params"] if isinstance(p, dict) else [p])]
            # torch before 2.0 has no fused AdamW.
            if all(t.is_cuda for t in tensors) and hasattr(torch, "compile"):
                options["fused"] = True
            super().__init__(params, **options)

    module.FusedAdam = FusedAdam


def fill_optimizers(module: Any) -> None:
    """Define apex.optimizers.FusedAdam, with which DeepSpeed compares the type of its optimizer."""
    from apex.optimizers.fused_adam import FusedAdam

    module.FusedAdam = FusedAdam


def fill_apex(module: Any) -> None:
    """Import apex.optimizers: DeepSpeed imports only apex before it uses it."""
    import apex.optimizers  # noqa: F401 - becomes an attribute of apex


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder, for modules that no other finder has found."""

    def find_spec(
        self, name: str, path: Optional[Sequence[str]], target: Any = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """Return a spec for the modules of NAMES."""
        if name not in NAMES:
            return None
        spec = importlib.machinery.ModuleSpec(name, self, origin=__file__)
        if name in ("apex", "apex.optimizers"):
            spec.submodule_search_locations = []
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """Let Python create an empty module."""

    def exec_module(self, module: Any) -> None:
        """Define the names of the module."""
        fill = {
            "torch._six": fill_six,
            "apex": fill_apex,
            "apex.optimizers": fill_optimizers,
            "apex.optimizers.fused_adam": fill_adam,
        }.get(module.__name__)
        if fill:
            fill(module)


sys.meta_path.append(Finder())
