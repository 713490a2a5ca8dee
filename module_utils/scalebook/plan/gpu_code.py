# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which stack has code for which GPUs: the stacks' `gpus`, compared with what nvidia-smi says.

A stack says it once for all its workloads (`default`), and for a workload whose software differs:

    gpus: {default: {software: CUDA 10.2, oldest: "3.5", newest: "7.5"}}

`oldest` and `newest` are compute capabilities (https://developer.nvidia.com/cuda-gpus).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.plan.declared import StackError
from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads

Stacks = Mapping[str, Mapping[str, Any]]
# The oldest compute capability whose tensor cores multiply this dtype: CUDA C++ Programming Guide, table of
# the input types of tensor cores; torch._scaled_mm refuses older ones.
DTYPES = {"fp8": "8.9"}


class Choice(TypedDict):
    """The stack for all workloads, "" for the one that each declares; and what to tell the user."""

    stack_name: str
    said: str


def capabilities(answers: Mapping[str, str]) -> dict[str, list[str]]:
    """Return {host: the compute capabilities of its GPUs, each once}, of hosts whose driver tells them.

    `answers` are what `nvidia-smi --query-gpu=compute_cap --format=csv,noheader` printed. A driver before
    510 does not know the question, and a GPU's number is then unknown.
    """
    capability_of = {}
    for host, text in answers.items():
        # The tool warns of a damaged infoROM behind its answer.
        numbers = [line.strip() for line in text.splitlines() if not line.startswith("WARNING: ")]
        if numbers and all(re.fullmatch(r"\d+\.\d+", number) for number in numbers):
            capability_of[host] = sorted(set(numbers), key=_number)
    return capability_of


def choose(
    answers: Mapping[str, str],
    names: Sequence[str],
    workloads: Workloads,
    stacks: Stacks,
    stack_name: str = "",
    variables: Mapping[str, Any] | None = None,
) -> Choice:
    """Return the stack to take for the workloads `names` on hosts with these GPUs.

    `stack_name` is the user's stack_name; it is kept, or refused. Without it the stacks that the workloads
    declare are kept where they have code for all GPUs, else one stack that has. A stack says nothing of a
    workload that `variables` give an environment of the user's own, or install for CPUs.
    Raises StackError with the reason, and the stack to use where there is one.
    """
    hosts = capabilities(answers)
    values = variables or {}
    judged = [
        name
        for name in names
        if not values.get(_own(workloads, name)) and values.get(f"{name}_device") != "cpu"
    ]
    declared = {name: stack_name or workloads.get(name, UNKNOWN).stack for name in judged}
    reasons = {
        name: lack
        for name, stack in declared.items()
        if (lack := _lacks(stacks.get(stack, {}), stack, name, hosts))
    }
    if not reasons:
        return {"stack_name": stack_name, "said": ""}
    reason = next(iter(reasons.values()))[0]
    others = [
        stack
        for stack, versions in stacks.items()
        if stack not in declared.values()
        and all(name in versions and not list(_lacks(versions, stack, name, hosts)) for name in judged)
    ]
    if stack_name and others:
        raise StackError(f"stack_name={stack_name}: {reason}. Fix: -e stack_name={others[0]}")
    if not others:
        own = [_own(workloads, name) for name in reasons]
        names_own = f"an environment of your own, {' and '.join(f'{name}=…' for name in own)}, or device=cpu"
        fix = names_own if all(own) else "device=cpu, or other GPUs"
        raise StackError(f"{reason}, and no other stack has. Fix: {fix}")
    return {"stack_name": others[0], "said": f"stack_name={others[0]} is used: {reason}."}


def dtype_refusal(answers: Mapping[str, str], dtypes: Sequence[str]) -> str:
    """Return why GPUs of these hosts cannot compute in one of `dtypes`, "" where all can."""
    for dtype, oldest in DTYPES.items():
        for host, numbers in capabilities(answers).items() if dtype in dtypes else ():
            older = [number for number in numbers if _number(number) < _number(oldest)]
            if older:
                return (
                    f"dtype={dtype} needs GPUs of compute capability {oldest} or newer, a GPU of {host} has "
                    f"{older[0]}. Fix: dtype=bf16 or fp16, or other GPUs"
                )
    return ""


def _own(workloads: Workloads, name: str) -> str:
    """Return the variable with an environment of the user's own, "" where the workload takes none."""
    return workloads.get(name, UNKNOWN).own_environment


def _lacks(
    versions: Mapping[str, Any], stack: str, name: str, hosts: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return why the stack cannot serve the workload, a sentence for each GPU that it has no code for."""
    table = versions.get("gpus") or {}
    code = table.get(name) or table.get("default")
    if not code:
        return []
    oldest, newest = _number(code["oldest"]), _number(code["newest"])
    return [
        f"{code['software']} of stack {stack} has code for compute capability {code['oldest']} to "
        f"{code['newest']}, a GPU of {host} has {number}"
        for host, numbers in hosts.items()
        for number in numbers
        if not oldest <= _number(number) <= newest
    ]


def _number(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in str(capability).split("."))
