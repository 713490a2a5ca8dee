# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every file of tasks and every internal variable that a role or playbook names exists.

Ansible looks for most only when it runs.
"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FILES = [
    path
    for folder in ("playbooks", "roles", "molecule", "tests/roles")
    for path in sorted((ROOT / folder).rglob("*.yml"))
    if "tasks" in path.parts or path.parent == ROOT / "playbooks" or folder == "molecule"
]
VARIABLES = [path for folder in ("defaults", "vars") for path in (ROOT / "roles").glob(f"*/{folder}/*.yml")]


def tasks_of(content):
    """Yield every task below a play, a block or a list of tasks."""
    for item in content if isinstance(content, list) else ():
        if isinstance(item, dict):
            yield item
            for part in ("tasks", "pre_tasks", "post_tasks", "handlers", "block", "rescue", "always"):
                yield from tasks_of(item.get(part))


def named(task, *modules):
    """Return the arguments of a task that uses one of these modules of Ansible's, else None."""
    return next(
        (task[f"ansible.builtin.{name}"] for name in modules if f"ansible.builtin.{name}" in task), None
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_included_file_exists(path):
    missing = []
    for task in tasks_of(yaml.safe_load(path.read_text())):
        role = named(task, "include_role", "import_role")
        if isinstance(role, dict) and "{{" not in f"{role['name']}{role.get('tasks_from', '')}":
            name = f"{role['name']}/tasks/{role.get('tasks_from', 'main')}.yml"
            if not any((ROOT / roles / name).is_file() for roles in ("roles", "tests/roles")):
                missing.append(name)
        file = named(task, "include_tasks", "import_tasks")
        file = file.get("file") if isinstance(file, dict) else file
        if file and "{{" not in file and not (path.parent / file).is_file():
            missing.append(file)
    assert missing == []


USED = re.compile(r"(?<![\w.])__[a-z]\w*[a-z0-9]\b")
MADE = re.compile(
    r"(?m)^[ -]*(__\w+):|[{,] *(__\w+):|(?:register|loop_var|index_var): (__\w+)"
    r"|{%-? *set (__\w+)|{%-? *for (?:\w+, )?(__\w+)|{%-? *for (__\w+)"
)


def test_every_internal_variable_is_set_somewhere():
    """Ansible finds a name that is not only when it needs its value."""
    templates = [path for path in (ROOT / "roles").rglob("*.j2") if "templates" in path.parts]
    texts = {path: path.read_text() for path in (*FILES, *VARIABLES, *templates)}
    made = {name for text in texts.values() for names in MADE.findall(text) for name in names}
    unknown = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, text in texts.items()
        for name in set(USED.findall(text)) - made
    }
    assert unknown == set()
