# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every file of tasks that a role or playbook names exists: Ansible looks for most only when it runs."""

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
