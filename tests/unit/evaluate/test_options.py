# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the options of a setting are called where they stand side by side."""

import pytest
from ansible.module_utils.scalebook.evaluate import options


def option(source, group, workload="torch_gpt2"):
    words = {"workload": workload, "compiler": "torch.compile", "variant": "", "differing": ""}
    return {**words, "source": source, "group": group}


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ([option("a", "g", "torch_bert")], "torch_gpt2, torch.compile"),
        ([option("b", "g")], "torch_gpt2, torch.compile, a"),
        ([option("a", "bucket_mb=25")], "torch_gpt2, torch.compile, g"),
        ([option("a", "bucket_mb=25"), option("b", "g")], "torch_gpt2, torch.compile, a, g"),
        # What tells the groups of another campaign apart says nothing about this one.
        ([option("b", "fp16"), option("b", "bf16")], "torch_gpt2, torch.compile, a"),
    ],
)
def test_a_column_has_the_shortest_name_that_tells_it_from_the_others(others, name):
    first = option("a", "g")
    assert next(iter(options.columns([first, *others]).items())) == (name, [first])


def test_a_campaign_and_a_group_of_one_name_are_told_apart():
    alike = [option("fp32", "all"), option("a", "fp32"), option("a", "fp16")]
    assert list(options.columns(alike).values()) == [[each] for each in alike]


def test_options_that_differ_in_nothing_shown_share_a_column():
    assert list(options.columns([option("a", "g"), option("a", "g")]).values()) == [[option("a", "g")] * 2]
