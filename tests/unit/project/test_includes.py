# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every file of tasks and every internal variable that a role or playbook names exists.

Ansible looks for most only when it runs. And no task gives a role what its users give it.
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
VARIABLES += sorted((ROOT / "playbooks/vars").glob("*.yml"))


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


def is_for_users(option):
    """Say whether a user may set an option of a role; a required one is given by what includes the role."""
    return not option.get("required") and "Not for users" not in str(option["description"])


def variables_of_users():
    """Return every variable that users may set for a role, by its entry point `main`."""
    specs = [yaml.safe_load(path.read_text()) for path in (ROOT / "roles").glob("*/meta/argument_specs.yml")]
    options = [spec["argument_specs"].get("main", {}).get("options") or {} for spec in specs]
    return {name for each in options for name, option in each.items() if is_for_users(option)}


def given(path):
    """Return the variables that the tasks of a file give each other and the roles that they include."""
    tasks = [task for task in tasks_of(yaml.safe_load(path.read_text())) if "hosts" not in task]
    return {name for task in tasks for name in task.get("vars") or ()}


def test_no_task_gives_a_role_a_variable_that_users_set_with_e():
    """With -e the user's value would win: meant for one workload, it would reach all that share the role."""
    users = variables_of_users()
    wrong = {path: given(path) & users for path in FILES if "molecule" not in path.parts}
    assert {f"{path.relative_to(ROOT)}: {name}" for path, names in wrong.items() for name in names} == set()


def test_what_users_set_is_told_from_what_including_roles_give():
    users = variables_of_users()
    assert {"torch_bert_python", "horovod_home", "node_packages", "python_index_url"} <= users
    assert not {"torch_bert_instance", "python_versions", "python_venv_path", "workload_device"} & users
