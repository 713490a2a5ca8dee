# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What roles declare, read from their files."""

from ansible.module_utils.scalebook.plan import declared


def test_roles_with_a_file_are_found_by_name(tmp_path):
    for name in ("node/tasks/mirror.yml", "nccl/tasks/main.yml", "cuda/tasks/mirror.yml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert declared.roles_with([str(tmp_path)], "tasks/mirror.yml") == ["cuda", "node"]


def test_the_allowed_values_of_a_roles_variable_are_those_of_its_argument_specs(tmp_path):
    meta = tmp_path / "trainer/meta"
    meta.mkdir(parents=True)
    (meta / "argument_specs.yml").write_text(
        "argument_specs: {main: {options: {trainer_kind: {type: str, choices: [plain, fused]},"
        " trainer_list: {type: list, choices: [a]}, trainer_name: {type: str}}}}"
    )
    assert declared.role_choices([str(tmp_path)]) == {"trainer_kind": ["plain", "fused"]}
