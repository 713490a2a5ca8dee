# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What holds of every log and record whatever happened to its bytes, and how these are mutated.

A reader may refuse a log, or give its number; a number far from the truth without a word is a silent
one.  The truth is known: every log is a mutation of a recording below tests/data.
"""

import contextlib
import copy
import io
import json
import math
import random
import shutil
from collections import Counter
from pathlib import Path

from ansible.module_utils.scalebook.contracts import STATUSES
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import html_page
from ansible.module_utils.scalebook.read.record import log_record, run_record
from ansible.module_utils.scalebook.report import render, terminal
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import load_baseline, read_source
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.throughput import measure
from cases import case
from dlperf_logs import WORKLOAD, exit_record, stamped

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data" / "tf2_bert"
TF2 = WORKLOAD

# Without receive stamps, a stamp that is wrong by less than a tenth of the window looks like a slow step.
TOLERANCE = 0.12


class SilentNumberError(AssertionError):
    """A number far from the truth, and no word about it."""


def recording(name):
    return (DATA / f"{name}.log").read_bytes()


def run_log(name, seconds, task_index=0):
    """Return a recording as run_node writes it: `seconds` is the window, by which lines are received."""
    text = recording(name).decode()
    node = f"NODE{task_index + 1}"
    lines = text.splitlines()
    steps = [index for index, line in enumerate(lines) if "Train Step: " in line]
    pace = seconds / (steps[119] - steps[19])
    return stamped(text, every=pace, exit_record=exit_record(node, task_index), node=node).encode()


WINDOWS = {"1n_mirrored": 6.944191, "2n_w0": 22.428402, "2n_w1": 22.431732}
IMPORTED = {1: recording("1n_mirrored"), 2: recording("2n_w0")}
RUN = {
    1: [run_log("1n_mirrored", WINDOWS["1n_mirrored"])],
    2: [run_log("2n_w0", WINDOWS["2n_w0"]), run_log("2n_w1", WINDOWS["2n_w1"], 1)],
}
TRUTH = {1: 1600 / WINDOWS["1n_mirrored"], 2: 3200 / WINDOWS["2n_w0"]}


# Mutations: bytes and a source of randomness -> bytes


def flip(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]


def digit(data, rng):
    for _ in range(200):
        place = rng.randrange(len(data))
        if 48 <= data[place] <= 57:
            return data[:place] + str(rng.randrange(10)).encode() + data[place + 1 :]
    return data


def cut(data, rng):
    return data[: rng.randrange(len(data))]


def cut_head(data, rng):
    return data[rng.randrange(len(data)) :]


def drop_line(data, rng):
    lines = data.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def drop_bytes(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + data[place + rng.choice((1, 2, 20, 500, 5000)) :]


def repeat_line(data, rng):
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randrange(len(lines)), rng.choice(lines))
    return b"".join(lines)


def swap_lines(data, rng):
    lines = data.splitlines(keepends=True)
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def join_lines(data, rng):
    place = data.find(b"\n", rng.randrange(len(data)))
    return data[:place] + data[place + 1 :] if place >= 0 else data


def splice(data, rng):
    """Put a piece of another run's log in: two runs in one file."""
    other = rng.choice(list(IMPORTED.values()))
    start, place = rng.randrange(len(other)), rng.randrange(len(data))
    return data[:place] + other[start : start + rng.choice((50, 500, 5000))] + data[place:]


JUNK = (
    b"\0" * 50, b"\xff", b"\r\n", b"\r", b"\x1b[31m", b"Train Step: ", b"x" * 20_000, b"nan", b"inf", b"-",
    b"1,285", b"\xe2\x80\xae", b"\x1f\x8b\x08", b"9" * 30, b"\n", b"SCALEBOOK {}", b"\nSCALEBOOK {\"event\":",
)  # fmt: skip


def insert(data, rng):
    place = rng.randrange(len(data))
    return data[:place] + rng.choice(JUNK) + data[place:]


def other_ends(data, rng):
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n")))


def other_number(data, rng):
    """Give every line, or one, another step, loss or total."""
    old, new = rng.choice(
        ((b"/120 ", b"/121 "), (b"loss = ", b"loss = nan "), (b"Step: 1", b"Step: 2"), (b"23:5", b"24:5"))
    )
    return data.replace(old, new, rng.choice((1, -1)))


MUTATIONS = (
    flip, digit, digit, cut, cut_head, drop_line, drop_bytes, repeat_line, swap_lines, join_lines, splice,
    insert, other_ends, other_number,
)  # fmt: skip


def mutated(data, seed):
    """Return `data` after one to four mutations, always the same ones for the same seed."""
    rng = random.Random(seed)
    for kind in rng.choices(MUTATIONS, k=rng.randint(1, 4)):
        data = kind(data, rng) or b"\n"
    return data


# Properties


def judge(record, nodes, said):
    """Assert that a record is right, or says what is wrong; count its status in `said`."""
    assert record["status"] in STATUSES
    json.dumps(record, allow_nan=False)
    said[record["status"]] += 1
    if record["status"] != "ok":
        assert record["reason"], "no reason"
        return
    rate = measure(record)["rate"]
    assert math.isfinite(rate) and rate > 0, rate
    said["numbers with a note"] += bool(record["notes"])
    if not record["notes"] and abs(rate - TRUTH[nodes]) > TOLERANCE * TRUTH[nodes]:
        raise SilentNumberError(f"{rate} samples/s, the truth is {TRUTH[nodes]}")


def import_log(folder, nodes, seed, said):
    """Return the record of a mutated log without stamps, after judging it."""
    data = mutated(IMPORTED[nodes], seed)
    path = folder / "x.log"
    path.write_bytes(data)
    record = log_record(path, case(nodes), 1, TF2, "x.log")
    judge(record, nodes, said)
    return record, hash(data)


def measured_run(folder, nodes, seed, said):
    """Return the record of a run one of whose logs is mutated, after judging it."""
    hurt = seed % nodes
    for index, data in enumerate(RUN[nodes]):
        changed = mutated(data, seed) if index == hurt else data
        (folder / f"NODE{index + 1}.log").write_bytes(changed)
        if index == hurt:
            content = hash(changed)
    names = [f"NODE{index + 1}" for index in range(nodes)]
    record = run_record(folder, case(nodes), 1, WORKLOAD, names, {"rc": 0, "seconds": 9.0})
    judge(record, nodes, said)
    return record, content


HOSTILE = (
    None, True, -1, 0, 0.5, float("nan"), float("inf"), 1e308, 10**400, "", "x", "<script>alert(1)</script>",
    "=1+1", "\x1b[2J", "{{ 7*7 }}", "../../x", [], {}, [None], {"a": []}, "\ud800",
)  # fmt: skip


def hurt_json(value, rng):
    """Change one leaf or branch of a JSON value in place."""
    while isinstance(value, (dict, list)) and value:
        keys = list(value) if isinstance(value, dict) else range(len(value))
        key = rng.choice(list(keys))
        if not isinstance(value[key], (dict, list)) or not value[key] or rng.random() < 0.2:
            if rng.random() < 0.2:
                del value[key]
            else:
                # A copy: one that two places shared, or that got into itself, would not be JSON.
                value[key] = copy.deepcopy(rng.choice(HOSTILE))
            return
        value = value[key]


def report_of(folder, records, seed, hurts, said):
    """Report on `records`, the JSON of some of them changed, and look at every number that comes out."""
    shutil.rmtree(folder, ignore_errors=True)
    rng = random.Random(seed)
    repeats = Counter()
    for record in records:
        name = record["case"]["name"]
        repeats[name] += 1
        run = folder / "runs" / name / str(repeats[name])
        run.mkdir(parents=True)
        changed = json.loads(json.dumps(dict(record, repeat=repeats[name])))
        for _ in range(hurts):
            hurt_json(changed, rng)
        (run / "result.json").write_text(json.dumps(changed))
    with contextlib.redirect_stdout(io.StringIO()):
        source = open_source(folder)
        campaign = read_source(source)
        # Compared with itself everything is the same.
        earlier = None if hurts else load_baseline(folder, 0.03)
        check = manifest.extend(None, manifest.files_of(source), campaign.statuses)
        document = build_results(campaign, earlier=earlier, check=check)
        files = render.files(document, str(ROOT / "templates"))
        text = terminal.display(document, "report.html")
    said["reports"] += 1
    true = [measure(record)["rate"] for record in records if record["status"] == "ok"]
    for row in document["rows"]:
        assert row["good"] == len(row["runs"])
        for run in row["runs"]:
            assert math.isfinite(run["rate"]) and run["rate"] > 0, run
            assert hurts or run["rate"] in true
    assert not (document["baseline"] or {"regressions": 0})["regressions"]
    assert sum(name.endswith("result.json") for name in check.manifest["files"]) == len(records)
    counted = document["counts"]
    assert counted["good"] + len(document["uncounted"]) + len(document["notes"]) >= len(records), (
        "lost a record"
    )
    for name, content in files.items():
        if isinstance(content, str):  # not the workbook
            content.encode("utf-8", "replace")
        if name.endswith(".json"):
            json.loads(content, parse_constant=_no_constant)
    assert "<script>" not in files["report.md"]
    own = "".join((ROOT / "templates" / name).read_text(encoding="utf-8") for name in html_page.SCRIPTS)
    assert "<script>" not in files["report.html"].replace(f"<script>{own}</script>", "", 1)
    assert all(char.isprintable() or char == "\n" for char in text), "control characters in the terminal"


def _no_constant(text):
    raise AssertionError(f"{text} in a JSON file")
