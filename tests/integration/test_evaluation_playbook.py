# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.yml from the command to the document, with the example that is part of the project."""

import pytest
import yaml
from local_nodes import ROOT, play

EXAMPLE = yaml.safe_load((ROOT / "playbooks/vars/evaluation.yml").read_text())["evaluation"]
# Relative paths count from where pytest was started.
EXAMPLE["campaigns"] = [str(ROOT / path) for path in EXAMPLE["campaigns"]]
EXAMPLE["prices"] = str(ROOT / EXAMPLE["prices"])


def test_the_conclusion_and_the_path_of_the_document_are_shown(tmp_path):
    shown = play("evaluation.yml", evaluation={**EXAMPLE, "out": str(tmp_path)})
    assert "The lowest cost of two epochs of 1,994,187 samples, tf2_bert base: 1.11" in shown
    assert f"evaluation: {tmp_path}/evaluation.md" in shown
    assert (tmp_path / "evaluation.md").read_text().startswith(f"# {EXAMPLE['title']}\n")


@pytest.mark.parametrize(
    ("variables", "refusal"),
    [
        ({}, "evaluation is not set: ansible-playbook evaluation.yml -e @FILE"),
        (
            {"evaluation": "my.yml"},
            "evaluation=my.yml: it must have fields; give them in a file, as -e @FILE",
        ),
        ({"evaluatoin": EXAMPLE}, "evaluatoin: there is no parameter of this name; did you mean evaluation?"),
        ({"evaluation": {**EXAMPLE, "langauge": "zh"}}, "Unsupported parameters"),
    ],
)
def test_what_is_not_understood_is_refused(variables, refusal):
    with pytest.raises(AssertionError) as error:
        play("evaluation.yml", **variables)
    assert refusal in str(error.value)
