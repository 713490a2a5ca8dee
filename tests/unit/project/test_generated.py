# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files that are made from other files are current; made again by: .venv/bin/python scripts/pages."""

import json
import re
import sys
from dataclasses import fields
from pathlib import Path

import measured
import pytest
from ansible.module_utils.scalebook import limits
from ansible.module_utils.scalebook import workload as reading
from ansible.module_utils.scalebook.contracts import STATUSES, Plan
from ansible.module_utils.scalebook.flops import Flops
from ansible.module_utils.scalebook.judge.flags import FLAGS, HELD_DOWN
from ansible.module_utils.scalebook.pages import messages_en
from ansible.module_utils.scalebook.pages.heads import HEADS
from ansible.module_utils.scalebook.report.csv_sheet import sheet

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from generated import architecture, everything, report, schemas, text, workload  # noqa: E402

FILES = everything.files()


@pytest.mark.parametrize("name", FILES)
def test_a_generated_file_is_current(name):
    path = ROOT / name
    assert path.exists() and path.read_text() == FILES[name], "run: .venv/bin/python scripts/pages"


def test_every_role_has_a_readme():
    roles = {path.name for path in (ROOT / "roles").iterdir() if path.is_dir()}
    assert {name.split("/")[1] for name in FILES if name.endswith("/README.md")} == roles


@pytest.mark.parametrize(
    ("ansible", "markdown"),
    [
        ("Default is C(data) below O(torch_bert_home).", "Default is `data` below `torch_bert_home`."),
        ("with O(main:torch_bert_for=x)", "with `torch_bert_for=x`"),
        ("as role P(openmpi#role) installs it", "as role `openmpi` installs it"),
        ("C(openmpi-<version>) below <home>", "`openmpi-<version>` below &lt;home>"),
    ],
)
def test_the_markup_of_ansible_becomes_markdown(ansible, markdown):
    assert text.markdown(ansible) == markdown


def test_a_bar_does_not_end_a_cell():
    assert text.table(("a",), [("x | y",)]) == "| a |\n|---|\n| x \\| y |\n"


def test_a_schema_of_a_contract_is_json_and_names_its_keys():
    schema = json.loads(json.dumps(schemas.json_schema(Plan, "plan.json")))
    assert set(schema["properties"]) == set(Plan.__annotations__)
    assert schema["properties"]["cases"]["items"]["properties"]["bsz"] == {"type": "integer"}


def test_every_column_of_the_sheet_is_described_in_its_order():
    (row, *_) = sheet(measured.results("h200-2026-11-23/tf2_plain")).rows
    assert list(report.CSV_COLUMNS) == list(row)


def test_every_flag_that_is_made_is_described():
    source = (ROOT / "module_utils/scalebook/judge/flags.py").read_text()
    steady = {"slowing-down", "warm-up-not-over"}
    made = set(re.findall(r'\bflag\("([a-z-]+)"', source)) | {code for code, _ in HELD_DOWN.values()}
    assert made | steady == set(FLAGS)


def test_every_flag_has_a_word_for_a_cell_in_every_language():
    words = {code.removeprefix("short.") for code in messages_en.MESSAGES if code.startswith("short.")}
    assert words == set(FLAGS)


def test_every_status_is_described():
    assert set(report.RUN_STATUSES) == set(STATUSES)


def test_every_key_of_a_declaration_is_described():
    assert {part: set(keys) for part, keys in workload.PARTS.items()} == {
        "log": reading._LOG_KEYS,
        "log.rate": reading._RATE_KEYS,
        "log.own": reading._RATE_KEYS,
        "log.unread": reading._UNREAD_KEYS,
        "limits": limits.KEYS,
        "self_reported": {"literal", "rate"},
        "install": reading._INSTALL_KEYS,
        "sanity": reading._SANITY_KEYS,
        "failures": reading._FAILURE_KEYS,
        "refuses": {"when", "why"},
        "flops": {each.name for each in fields(Flops)} | {"model", "with"},
        "containers": reading._CONTAINER_KEYS,
        "dlperf": reading._DLPERF_KEYS,
    }


def test_every_heading_of_the_table_is_described():
    heads = {texts[0] for code, texts in HEADS.items() if code.startswith("head.")}
    assert set(report.TABLE_COLUMNS) - heads == {"node_num", "gpu_num", "samples/s"}


@pytest.fixture(scope="module")
def commands():
    return {command.file: command for command in architecture.commands()}


def test_the_drawing_has_the_commands_of_users(commands):
    assert [name.removesuffix(".yml") for name in commands] == [
        *("provision", "acceptance", "bench", "report", "import", "verify", "index", "share"),
        *("claim", "evaluation", "microbench", "remove"),
    ]


def test_the_drawing_follows_what_a_playbook_includes(commands):
    assert {"node", "openmpi", "cuda", "nccl"} <= set(commands["provision.yml"].roles)
    assert {"campaign", "preflight"} <= set(commands["bench.yml"].roles)
    assert commands["report.yml"].roles == []
    assert commands["report.yml"].packages == ["plan", "store", "judge", "report", "pages"]


def test_workloads_are_installed_and_measured_but_not_needed_for_a_report(commands):
    assert commands["provision.yml"].of_workloads and commands["bench.yml"].of_workloads
    assert not commands["report.yml"].of_workloads
