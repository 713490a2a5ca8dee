# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The workloads of the campaigns: the scripted trainer, started in the three ways in which trainers are.

`scripted` is one process per node, as TensorFlow's strategies have it. The others are made of its role: of
`ranks` mpirun starts a process per device, as of Horovod, and of `launcher` a program on each node does, as
torchrun, where the first node alone prints steps.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .base import CHECKOUT, STATE, write

SCRIPTED = "scripted"
NAMES = (SCRIPTED, "ranks", "launcher")
DEVICES = {SCRIPTED: 1, "ranks": 2, "launcher": 2}
"""Devices per node of their campaigns."""

SOURCE, MADE = CHECKOUT / "tests/roles/scripted", STATE / "roles"
LAUNCHER = Path(__file__).with_name("launcher.py")

# The trainers meet each other as nodes do.
_AS_RANKS = 'export TASK_INDEX="$OMPI_COMM_WORLD_RANK" NNODES="$OMPI_COMM_WORLD_SIZE"\n\nexec {{'
_PYTHON = "{{ launcher_install.python | quote }}"
_CODE = "{{ launcher_install.code | quote }}"
_CHANGES = {
    "ranks": {
        "meta/workload.yml": {"processes_per_node: 1": "processes_per_node: gpus"},
        "templates/run.sh.j2": {"exec {{": _AS_RANKS},
    },
    "launcher": {
        "meta/workload.yml": {"  time: unix\n": "  time: unix\n  nodes: first\n"},
        "templates/run.sh.j2": {_PYTHON: f"{_PYTHON} {_CODE}/launcher.py {_PYTHON}"},
    },
}
_OF_A_NODE = "  - {name: task,"


def make() -> None:
    """Make the roles of the workloads that are not in tests/roles, or what of them has changed."""
    for name, changes in _CHANGES.items():
        for path in filter(Path.is_file, SOURCE.rglob("*")):
            part = str(path.relative_to(SOURCE))
            text = path.read_text().replace(SCRIPTED, name)
            for old, new in changes.get(part, {}).items():
                if old not in text:
                    raise ValueError(f"{path}: there is no {old!r} to be replaced")
                text = text.replace(old, new)
            # A process says its own number.
            lines = [line for line in text.splitlines(keepends=True) if not line.startswith(_OF_A_NODE)]
            _put(MADE / name / part, "".join(lines))
    _put(MADE / "launcher/files/launcher.py", LAUNCHER.read_text())


def _put(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        write(path, text)


def roles_path() -> str:
    """Return Ansible's path of roles with those of all workloads."""
    return f"{CHECKOUT}/roles:{CHECKOUT}/tests/roles:{MADE}"


def variables(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of `scripted` in `given` as those of the workload `name`."""
    own = f"{SCRIPTED}_"
    return {
        f"{name}_{key.removeprefix(own)}" if key.startswith(own) else key: value
        for key, value in given.items()
    }
