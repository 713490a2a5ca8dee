# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What roles declare, read from their files."""

from ansible.module_utils.scalebook.plan import declared


def test_roles_with_a_file_are_found_by_name(tmp_path):
    for name in ("node/tasks/mirror.yml", "nccl/tasks/main.yml", "cuda/tasks/mirror.yml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert declared.roles_with([str(tmp_path)], "tasks/mirror.yml") == ["cuda", "node"]
