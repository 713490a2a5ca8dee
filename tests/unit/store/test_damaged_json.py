# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A damaged file never ends a report without its name, and changes no number without a note.

tests/fuzz/run_json does the same with as many examples as asked for.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "fuzz"))

import json_files  # noqa: E402


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory):
    return json_files.Campaigns(tmp_path_factory.mktemp("damaged"))


@pytest.mark.parametrize("kind", json_files.KINDS)
def test_a_damaged_file_is_named_or_changes_nothing(campaigns, kind):
    said = Counter()
    for seed in range(12):
        campaigns.example(kind, seed, said)
    assert sum(said.values()) == 12


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("plan", "cases", 5),
        ("plan", "cases.0.label", "1n2g"),
        ("plan", "runs.0.repeat", "\x1b[31m"),
        ("plan", "skipped.0.case", "x"),
        ("plan", "searches.0.trials", None),
        ("plan", "unread.0", "x"),
        ("record", "hardware.0", {"gpus": 3}),
        ("record", "self_reported", ["x"]),
        ("record", "job.started", 7),
        ("provenance", "nodes", "x"),
        ("provenance", "workloads.tf2_bert", ["NODE1"]),
        ("provenance", "scalebook", "x"),
        ("manifest", "files", []),
        ("manifest", "runs", {"": "ok"}),
        ("baseline", "rows.0.settings", 3),
        ("index", "hardware", ["x"]),
        ("evaluation", "rows.0.group", "g9"),
        ("evaluation", "groups", {}),
        ("evaluation", "rows.0.runs.0.rate", -1.0),
    ],
)
def test_a_value_of_another_kind_is_named_or_changes_nothing(campaigns, kind, path, value):
    def change(content, _rng):
        document = json.loads(content)
        *way, last = [int(word) if word.isdigit() else word for word in path.split(".")]
        place = document
        for word in way:
            place = place[word]
        place[last] = value
        return json.dumps(document).encode()

    said = Counter()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_files, "mutated", change)
        campaigns.example(kind, 0, said)
    assert said
