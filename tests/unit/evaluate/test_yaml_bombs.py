# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A small YAML file that stands for much, or that is nested deeply, is refused by its name."""

import pytest
from ansible.module_utils.scalebook.yaml_file import read_yaml


def aliases(steps):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    return lines + [f"a{step}: &a{step} [{', '.join([f'*a{step - 1}'] * 9)}]" for step in range(1, steps)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n".join(aliases(10)), "has more than 100000 values, its aliases written out"),
        ("a: &a [*a]", "has more than 100000 values, its aliases written out"),
        ("[" * 200_000, "is nested too deeply"),
        ("{a: " * 50_000, "is nested too deeply"),
        ("- " * 100_000 + "x", "is nested too deeply"),
        ("? " * 100_000 + "x", "is nested too deeply"),
        ("".join(" " * step + "a:\n" for step in range(1200)), "is nested too deeply"),
    ],
    ids=["aliases", "itself", "lists", "objects", "dashes", "keys", "blocks"],
)
def test_a_small_file_that_becomes_large_is_refused(tmp_path, text, said):
    (tmp_path / "prices.yml").write_text(text)
    with pytest.raises(ValueError, match=f"prices.yml: .*{said}"):
        read_yaml(tmp_path / "prices.yml")


def test_aliases_that_stand_for_little_are_read(tmp_path):
    (tmp_path / "prices.yml").write_text("\n".join(aliases(3)))
    assert len(read_yaml(tmp_path / "prices.yml")["a2"]) == 9
