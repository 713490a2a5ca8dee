# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Damaged JSON files of a campaign, and what must hold of every report on them.

A report may refuse a file, or leave a run out, and then names the file.  It never ends with an exception that
does not, and no number of it changes without a note while the logs of the runs are there.
"""

import copy
import json
import random
import shutil
from collections import Counter
from pathlib import Path

import results_verify
from ansible.module_utils.scalebook import workloads
from ansible.module_utils.scalebook.evaluate import write
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import index, index_page, render, terminal
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import load_baseline, load_campaign, read_source
from ansible.module_utils.scalebook.store.source import open_source
from report_records import campaign, case, record

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = str(ROOT / "templates")
WORKLOADS = workloads.load_workloads([str(ROOT / "roles")])
DECLARED = {name: each.as_data() for name, each in WORKLOADS.items()}
HOSTILE = (
    None, True, -1, 0, 1, 0.5, 7, 1e308, 10**18, "", "x", "../../x", "<b>", "{{ 7*7 }}", "\x1b[2J", "\ud800",
    [], {}, [None], [[]], {"a": []}, {"": {}}, [1, "x"], "1n1g", "ok",
)  # fmt: skip
TEXTS = ("NaN", "Infinity", "1e999", "9" * 400, "[" * 100_000, '{"a":' * 50_000, "\x00", "\ufeff")

EVALUATION = {
    "title": "T", "language": "en", "platform": "", "texts": {}, "published": [], "prices": None,
    "electricity": None, "deadline_hours": 40.0, "budget": None, "out": "out",
    "task": {"name": "", "samples": 1_000_000, "epochs": 1.0},
    "criteria": {"efficiency": 80.0, "machines": 20, "utilisation": 80.0, "ahead": ""},
}  # fmt: skip


def _slots(value, found):
    """Add (object or list, key) of every value below `value` to `found`."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(each, (dict, list)):
            _slots(each, found)


def _replace(value, rng):
    found = []
    _slots(value, found)
    holder, key = rng.choice(found)
    holder[key] = copy.deepcopy(rng.choice(HOSTILE))


def _remove(value, rng):
    found = []
    _slots(value, found)
    holder, key = rng.choice(found)
    del holder[key]


def _swap(value, rng):
    found = []
    _slots(value, found)
    (one, first), (other, second) = rng.choice(found), rng.choice(found)
    one[first], other[second] = copy.deepcopy(other[second]), copy.deepcopy(one[first])


def _double(value, rng):
    found = []
    _slots(value, found)
    lists = [holder for holder, _ in found if isinstance(holder, list)]
    if lists:
        chosen = rng.choice(lists)
        chosen.append(copy.deepcopy(rng.choice(chosen)))


def _scale(value, rng):
    found = []
    _slots(value, found)
    numbers = [(holder, key) for holder, key in found if type(holder[key]) in (int, float)]
    if numbers:
        holder, key = rng.choice(numbers)
        holder[key] = holder[key] * rng.choice((2, 4, 0.5, -1, 1000))


def _rename(value, rng):
    found = []
    _slots(value, found)
    named = [(holder, key) for holder, key in found if isinstance(holder, dict)]
    if named:
        holder, key = rng.choice(named)
        holder[rng.choice(("x", "name", "case", "runs", ""))] = holder.pop(key)


CHANGES = (_replace, _replace, _replace, _remove, _remove, _swap, _double, _scale, _rename)


def mutated(content, rng):
    """Return the text of a JSON file after one to three changes of its values, or of its bytes."""
    if rng.random() < 0.15:
        text = content.decode()
        at = rng.randrange(len(text))
        kind = rng.randrange(4)
        if kind == 0:
            return text[:at].encode()
        if kind == 1:
            return (text[:at] + rng.choice(TEXTS) + text[at + rng.randrange(9) :]).encode("utf-8", "replace")
        if kind == 2:
            return text.replace(": 0", f": {rng.choice(TEXTS[:4])}", 1).encode()
        return bytes(rng.randrange(256) for _ in range(50))
    value = json.loads(content)
    for _ in range(rng.randint(1, 3)):
        if value:
            rng.choice(CHANGES)(value, rng)
    return json.dumps(value).encode()


def _hardware(node):
    return {
        "nodes": [node], "system": "Linux", "processor": "P", "cores": 8, "memory_gib": 64.0,
        "networks": [{"name": "eth0", "kind": "Ethernet", "speed_gbit": 10.0}],
        "gpus": [{"name": "G", "memory_mib": 9, "power_limit_w": 3, "pcie_generation": 5, "pcie_width": 16}],
        "gpu_links": {"NV18": 1}, "driver": "1", "cuda": "12",
    }  # fmt: skip


def _search(of):
    trial = {"case": "x", "label": "1n1g", "bsz": 64, "status": "failed", "reason": "died"}
    fields = ("workload", "model", "device", "dtype", "xla", "accumulation", "settings")
    return {
        **{key: of[key] for key in fields},
        "points": ["1n1g"], "first": 64, "limit": 9, "trials": [trial], "next": None, "largest": 64,
        "failed": 128, "failed_at": "1n1g", "reason": None,
    }  # fmt: skip


def make(top):
    """Make a campaign of two cases with three runs each, its logs, all its JSON files and a report."""
    cases = [case(), case(1, 2)]
    records = [
        record(
            of, repeat, 100.0 * of["devices"] + repeat, hardware=[_hardware("NODE1")], command="x",
            software=[{"framework": "tensorflow 2"}], scalebook={"commit": "0" * 40},
            self_reported={"mfu": "0.4"},
        )
        for of in cases
        for repeat in (1, 2, 3)
    ]  # fmt: skip
    for each in records:
        log = f"{each['case']['name']}/{each['repeat']}".encode()
        node = each["nodes"][0]
        node.update(
            sha256=manifest.hashlib.sha256(log).hexdigest(), bytes=len(log), exit={"host": "h", "boot": "b"}
        )
    skipped = [{"case": case(2, 2), "reason": "needs 2 nodes"}]
    parameters = {"workload": ["tf2_bert"], "bsz": [64], "xla": False}
    campaign(
        top, records, skipped=skipped, searches=[_search(cases[0])], parameters=parameters,
        variables={"tf2_bert_home": "/x"}, unread=[{"path": "a", "reason": "is not a log"}],
    )  # fmt: skip
    for each in records:
        folder = top / "runs" / each["case"]["name"] / str(each["repeat"])
        (folder / "NODE1.log").write_text(f"{each['case']['name']}/{each['repeat']}")
    facts = {"NODE1": {"framework": "tensorflow 2.3.0", "cuda": "10.2", "machine": "m"}}
    provenance = {
        "scalebook": {"commit": "0" * 40}, "preflight": {"verdict": "pass", "warnings": []},
        "nodes": facts, "workloads": {"tf2_bert": facts},
    }  # fmt: skip
    (top / "provenance.json").write_text(json.dumps(provenance))
    source = open_source(top)
    read = load_campaign(top)
    check = manifest.extend(None, manifest.files_of(source), read.statuses)
    (top / "manifest.json").write_text(json.dumps(check.manifest))
    made = build_results(read, WORKLOADS, check=check)
    (top / "report").mkdir()
    (top / "report" / "results.json").write_text(render.files(made, TEMPLATES)["results.json"])
    return top


class Campaigns:
    """A whole campaign, which each example damages and which is repaired afterwards."""

    def __init__(self, folder):
        self.folder = folder
        self.top = make(folder / "night")
        self.other = Path(shutil.copytree(self.top, folder / "other"))
        self.truth = {(run["case"], run["repeat"]): run["rate"] for run in load_campaign(self.top).runs}
        self.files = {
            "plan": self.top / "plan.json",
            "record": min(self.top.glob("runs/*/*/result.json")),
            "provenance": self.top / "provenance.json",
            "manifest": self.top / "manifest.json",
            "baseline": self.other / "report" / "results.json",
            "index": self.other / "report" / "results.json",
            "evaluation": self.other / "report" / "results.json",
        }
        self.contents = {path: path.read_bytes() for path in self.files.values()}

    def example(self, kind, seed, said):
        """Damage the file `kind` and report; raise AssertionError for what must not be."""
        rng = random.Random(f"{kind} {seed}")
        path = self.files[kind]
        content = mutated(self.contents[path], rng)
        if kind == "manifest" and rng.random() < 0.8:
            content = resealed(content)
        path.write_bytes(content)
        try:
            said[kind, self.judge(kind, path)] += 1
        except AssertionError:
            raise
        except Exception as exc:
            raise AssertionError(f"{type(exc).__name__}: {exc}") from exc
        finally:
            path.write_bytes(self.contents[path])

    def judge(self, kind, path):
        """Return what came of a damaged file: refused, excluded, noted or same."""
        try:
            notes, rates, excluded = getattr(self, f"_{kind}" if hasattr(self, f"_{kind}") else "_campaign")()
        except ValueError as exc:
            named = str(path) in str(exc) or path.parents[1].name in str(exc)
            assert named, f"it does not name {path}: {exc}"
            return "refused"
        if excluded:
            return "excluded"
        changed = {run: rate for run, rate in rates.items() if self.truth.get(run, rate) != rate}
        assert not changed or notes, f"{changed} without a note"
        return "noted" if notes else "same"

    def _campaign(self):
        source = open_source(self.top)
        read = read_source(source, files=manifest.files_of(source))
        check = manifest.extend(manifest.read(source), manifest.files_of(source), read.statuses)
        made = build_results(read, WORKLOADS, check=check)
        files = render.files(made, TEMPLATES)
        json.loads(files["results.json"], parse_constant=_no_constant)
        terminal.display(made, "report.html")
        results_verify.run(
            {"path": str(self.top), "workloads": {}, "allowed_signers": None, "report_language": "en"},
            check=False,
        )
        rates = {(row["case"], run["repeat"]): run["rate"] for row in made["rows"] for run in row["runs"]}
        flags = [
            flag["message"] for row in made["rows"] for flag in row["flags"] if flag["code"] == "changed-file"
        ]
        named = json.dumps([made["notes"], [each["reason"] for each in made["uncounted"]]])
        missing = self.truth.keys() - rates.keys()
        assert all(case in named or str(repeat) in named for case, repeat in missing), (
            f"{missing} without a word"
        )
        return flags, rates, bool(missing)

    def _baseline(self):
        earlier = load_baseline(self.files["baseline"], 0.03)
        build_results(load_campaign(self.top), WORKLOADS, earlier=earlier)
        return [], {}, False

    def _index(self):
        reports = index.read(self.folder)
        made = index.build(reports)
        index_page.files(made, reports, TEMPLATES)
        assert any(each["campaign"] == "night" for each in made["campaigns"])
        return made["unread"], {}, False

    def _evaluation(self):
        given = {**EVALUATION, "campaigns": ["other"], "out": "out"}
        params = {
            "evaluation": given, "here": str(self.folder), "templates": TEMPLATES,
            "data": str(ROOT / "data"), "workloads": DECLARED,
        }  # fmt: skip
        write.evaluate(params, write=False)
        return [], {}, False


def resealed(content):
    """Return a manifest with its own checksum computed again, as anybody can."""
    try:
        value = json.loads(content)
        return json.dumps({**value, "sha256": manifest._own_sha256(value)}).encode()
    except (ValueError, TypeError, RecursionError):
        return content


def _no_constant(text):
    raise AssertionError(f"{text} in results.json")


KINDS = ("plan", "record", "provenance", "manifest", "baseline", "index", "evaluation")


def run(folder, examples, begin=0):
    """Judge so many examples; return the counts of what came of them, and the failures."""
    campaigns, said, failures = Campaigns(Path(folder)), Counter(), []
    for number in range(begin, begin + examples):
        kind = KINDS[number % len(KINDS)]
        try:
            campaigns.example(kind, number, said)
        except AssertionError as exc:
            failures.append(f"{kind} {number}: {exc}")
    return said, failures
