#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Result records -> report; see DOCUMENTATION."""

from __future__ import annotations  # runs on the controller only

DOCUMENTATION = r"""
module: speedup_report
short_description: Turn the result records of a campaign into tables, curves and files
description:
  - Reads every C(runs/<case>/<repeat>/result.json) below O(path), and C(plan.json) and C(provenance.json)
    beside C(runs) if they exist.
  - Writes C(results.json), C(results.csv), DLPerf's C(*_result.json), C(*.svg), C(report.md) and
    C(report.html) to O(out).
  - Only runs of status C(ok) count. Every other run, planned runs without a record and unreadable records
    are listed with their reason.
  - Runs on the controller; needs pandas and Jinja2 there.
options:
  path:
    description: Directory of one campaign or import, holding C(runs).
    type: path
    required: true
  out:
    description: Directory to write to; by default C(report) below O(path).
    type: path
  templates:
    description: Directory that holds C(report.md.j2) and C(report.html.j2).
    type: path
    required: true
  name:
    description:
      - Name of an import. Its result file is C(<name>_result.json), as DLPerf's own.
      - By default what the plan says it was imported from; a campaign has none and gets one result file
        for each group.
    type: str
    default: ""
  workloads:
    description:
      - The workloads' declarations by name of the framework. C(title) heads the tables.
      - C(dlperf) says what DLPerf calls it, C({framework, models}), for O(compare).
    type: dict
    default: {}
  compare:
    description: Published results to set beside the measured ones.
    type: str
    choices: ["", dlperf]
    default: ""
  published:
    description: The CSV of published results; required with O(compare=dlperf).
    type: path
  baseline:
    description:
      - What to hold every row against, a C(results.json) or the directory of a campaign or import.
      - A row is faster, slower or the same. What scatter alone could do is the same.
    type: path
  max_regression:
    description: From which slowdown on a row that is slower counts as a regression, such as V(3%) or V(0.03).
    type: str
    default: 3%
  verify:
    description:
      - Write nothing and report on nothing. Compare the files below O(path) with C(manifest.json), which the
        first report wrote there.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Computes everything and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Report on a campaign
  speedup_report:
    path: "{{ ansible_config_file | dirname }}/results/tf2_bert-base-b64-fp32-1a2b3c4d"
    templates: "{{ ansible_config_file | dirname }}/templates"
"""

RETURN = r"""
rows:
  description: One row for each case, ordered by group and number of devices, without the single runs.
  returned: success
  type: list
  elements: dict
  sample:
    - {case: tf2_bert-base-4n8g-b64-fp32-1a2b3c4d, label: 4n8g, devices: 32, good: 5, planned: 5, status: ok,
       median: 2244.38, speedup: 19.863, efficiency: 0.621, marks: []}
table:
  description: DLPerf's tables as aligned text.
  returned: success
  type: str
display:
  description: What the terminal shows; the tables, what did not count and why, and where the page is.
  returned: success
  type: str
report:
  description: Path of C(report.html).
  returned: success
  type: str
files:
  description: Paths of all files of the report.
  returned: success
  type: list
  elements: str
uncounted:
  description: Number of runs that did not count.
  returned: success
  type: int
regressions:
  description: Number of rows that are slower than O(baseline) by more than O(max_regression).
  returned: success
  type: int
problems:
  description:
    - The files that are not what was reported, each with C(file), C(what) (changed, missing or added)
      and C(run). Of a report only those of runs that counted.
  returned: success
  type: list
  elements: dict
"""

import functools
import io
import json
import platform
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook import baseline, manifest, plot, published, report, runs, scaling
from ansible.module_utils.scalebook.files import write_json, write_whole
from ansible.module_utils.scalebook.throughput import measure

try:
    import jinja2
    import markupsafe
    import pandas

    MISSING = None
except ImportError as exc:
    MISSING = str(exc)

# A record of 120 steps on 125 nodes has about 1 MB.
LARGEST = 64 * 1024 * 1024
MARKDOWN = str.maketrans(
    {
        **{char: "\\" + char for char in "\\`*[]|"},
        "<": "&lt;",
        ">": "&gt;",
        "&": "&amp;",
        "\n": " ",
        "\r": " ",
    }
)
ROW = (
    "case",
    "group",
    "label",
    "devices",
    "status",
    "good",
    "planned",
    "median",
    "interval",
    "speedup",
    "speedup_interval",
    "efficiency",
    "spread",
    "marks",
)


def argument_spec():
    return {
        "path": {"type": "path", "required": True},
        "out": {"type": "path"},
        "templates": {"type": "path", "required": True},
        "name": {"type": "str", "default": ""},
        "workloads": {"type": "dict", "default": {}},
        "compare": {"type": "str", "choices": ["", "dlperf"], "default": ""},
        "published": {"type": "path"},
        "baseline": {"type": "path"},
        "max_regression": {"type": "str", "default": "3%"},
        "verify": {"type": "bool", "default": False},
    }


def read_json(path):
    """Return the content of a JSON file that has to be an object, or raise ValueError."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"has {path.stat().st_size} bytes, at most {LARGEST} are read")
    content = json.loads(path.read_bytes(), parse_constant=no_number)
    if not isinstance(content, dict):
        raise ValueError("is not a JSON object")
    return content


def no_number(text):
    """Refuse the constants that Python reads and JSON does not have."""
    raise ValueError(f"holds {text}, which is no number")


def read_optional(path):
    """Return the object in `path`, {} where there is no such file; raise ValueError naming it."""
    if not path.exists():
        return {}
    try:
        return read_json(path)
    except (OSError, ValueError) as exc:
        raise ValueError(f"{path}: {exc}") from exc


def read_runs(top, cases):
    """Return (runs, unreadable, statuses) of every record below `top`/runs; adds cases of theirs to `cases`.

    Each record is reduced as it is read: thousands of them with every step would not fit.
    """
    made, unreadable, seen, places = [], [], {}, {}
    for path in sorted(top.glob("runs/*/*/result.json"), key=lambda p: (p.parts[-3], len(p.parts[-2]), p)):
        shown = path.relative_to(top)
        try:
            record = read_json(path)
            runs.check_record(record)
            key = record["case"]["name"], record["repeat"]
            if seen.setdefault(key, shown) != shown:
                raise ValueError(f"repeats {seen[key]}")
            cases.setdefault(record["case"]["name"], record["case"])
            made.append(runs.digest(record, measure))
            places[path.parts[-3], path.parts[-2]] = record["status"]
        except (OSError, ValueError) as exc:
            unreadable.append(f"{shown}: {exc}")
        except Exception as exc:  # a record nobody has thought of must not cost the others their report
            unreadable.append(f"{shown}: {type(exc).__name__}: {exc}")
    return made, unreadable, places


def read_campaign(top):
    """Return (plan, cases, runs, unreadable, statuses) of the directory `top`, or raise ValueError.

    `statuses` maps (directory of the case, that of the repeat) to the status of the record there.
    """
    plan = read_optional(top / "plan.json")
    try:
        cases = {case["name"]: case for case in map(runs.check_case, plan.get("cases") or [])}
    except ValueError as exc:
        raise ValueError(f"{top / 'plan.json'}: {exc}") from exc
    made, unreadable, places = read_runs(top, cases)
    return plan, cases, made, unreadable, places


def read_baseline(params):
    """Return `{"name", "rows", "limit"}` of what `baseline` names, None without it; raise ValueError."""
    limit = baseline.read_limit(params["max_regression"])
    if not params["baseline"]:
        return None
    path = Path(params["baseline"])
    try:
        if path.is_dir():
            if not (path / "runs").is_dir():
                raise ValueError("has no directory runs, so it is no campaign or import")
            plan, cases, made, _, _ = read_campaign(path)
            rows = scaling.tabulate(list(cases.values()), made, plan.get("runs") or ())["rows"]
            return {"name": plan.get("campaign") or path.name, "rows": rows, "limit": limit}
        document = read_json(path)
        rows = baseline.check(document)
        return {"name": str(document.get("campaign") or path), "rows": rows, "limit": limit}
    except FileNotFoundError:
        raise ValueError(f"baseline={path}: is not there") from None
    except (OSError, ValueError) as exc:
        raise ValueError(f"baseline={path}: {exc}") from exc


def make_document(params, signed=None):
    """Return the document of the directory at `path`, or raise ValueError.

    `signed` is `{"old": manifest or None}`; the new manifest goes to its key `new`, files of counted runs
    that are not what they were to `wrong`.
    """
    top = Path(params["path"])
    if not (top / "runs").is_dir():
        raise ValueError(f"path={top}: there is no directory runs below it, so it is no campaign or import")
    before = read_baseline(params)
    plan, cases, made, unreadable, places = read_campaign(top)
    # What an import found that is no log of a case.
    unreadable += [f"{entry['path']} {entry['reason']}" for entry in plan.get("unread") or []]
    wrong, said = [], []
    if signed is not None:
        statuses = {"/".join(("runs", *each)): status for each, status in places.items()}
        signed["new"], wrong, said = manifest.extend(signed["old"], manifest.files_of(top), statuses)
        signed["wrong"] = wrong
    damage = {}
    for problem in wrong:
        _, folder, repeat = problem["run"].split("/")
        case = next((name for name in cases if name == folder), None)
        damage.setdefault((case, repeat), []).append(manifest.sentence(problem))
        unsound = f"{manifest.sentence(problem)}; {manifest.NAME} keeps what it was"
        said.append(unsound)
    table = None
    if params["compare"]:
        with Path(params["published"]).open(encoding="utf-8", newline="") as lines:
            table = published.read(lines)
    return report.build(
        plan,
        list(cases.values()),
        made,
        unreadable,
        provenance=read_optional(top / "provenance.json"),
        workloads=params["workloads"],
        name=params["name"] or str(plan.get("source") or ""),
        table=table,
        before=before,
        damage=damage,
        changes=said,
    )


def markdown(text):
    """Return `text` as one table cell that Markdown takes for nothing but text."""
    return str(text).translate(MARKDOWN)


def to_csv(document):
    """Return results.csv; text cells are made harmless, numeric columns stay numeric."""
    frame = pandas.DataFrame(report.sheet(document))
    for column in frame.columns:
        if not pandas.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].map(
                lambda cell: report.harmless(cell) if isinstance(cell, str) else cell
            )
    text = io.StringIO()
    frame.to_csv(text, index=False, lineterminator="\n")
    return text.getvalue()


@functools.lru_cache(maxsize=2)
def environment(templates, markup):
    """Return what renders the templates in `templates`: as HTML if `markup`, else through the filter `md`."""
    made = jinja2.Environment(
        # Markdown is not HTML: every value goes through the filter `md` instead.
        autoescape=markup,  # noqa: S701
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=jinja2.FileSystemLoader(templates),
    )
    made.filters["md"] = markdown
    return made


def render(document, templates):
    """Return file name -> text of everything the report consists of."""
    tools = f"Python {platform.python_version()}, pandas {pandas.__version__}, Jinja2 {jinja2.__version__}"
    shown = dict(report.page(document), made_with=tools)
    html, plain = environment(templates, True), environment(templates, False)
    # The charts escape their own text; they are the only markup that goes in as it is.
    drawn = report.charts(document)
    svgs = [markupsafe.Markup(chart["svg"]) for chart in drawn]  # noqa: S704
    style = markupsafe.Markup(plot.style())  # noqa: S704
    files = {
        # One line, no newline at the end, as DLPerf's json.dump writes it.
        name: json.dumps(content)
        for name, content in report.results(document).items()
    }
    files.update({chart["name"] + ".svg": chart["svg"] for chart in report.charts(document, standalone=True)})
    files["results.csv"] = to_csv(document)
    files["report.md"] = plain.get_template("report.md.j2").render(
        shown, charts=[chart["name"] for chart in drawn]
    )
    files["report.html"] = html.get_template("report.html.j2").render(shown, charts=svgs, chart_style=style)
    listed = sorted([*files, "results.json"])
    files["results.json"] = json.dumps(dict(document, files=listed), indent=1) + "\n"
    return files


def stale(out, files):
    """Return the files of the report that was in `out` before which the new one no longer has."""
    try:
        before = read_json(out / "results.json").get("files")
    except (OSError, ValueError):
        return []
    names = [name for name in before or [] if isinstance(name, str) and name == Path(name).name]
    return [out / name for name in names if name not in files and (out / name).is_file()]


def encoded(text):
    """Return `text` as UTF-8; what a file name or log line held that is none becomes `?`."""
    return text.encode("utf-8", "replace")


def verify(top):
    """Return the module's result for the question whether all files are what was reported."""
    signed = manifest.read(top)
    if signed is None:
        raise ValueError(
            f"path={top}: there is no {manifest.NAME} to verify with; the first report writes it"
        )
    problems = manifest.differences(signed, manifest.files_of(top))
    for problem in problems:
        folder, _, repeat = problem["run"].removeprefix("runs/").partition("/")
        problem["row"] = f"case {folder}, repeat {repeat}" if folder else "the whole campaign"
    lines = [report.clean(f"{manifest.sentence(each)} ({each['row']})") for each in problems]
    count = len(signed["files"])
    return {
        "changed": False,
        "problems": problems,
        "display": "\n".join(lines) or f"All {count} files are what was reported.",
    }


def main():
    module = AnsibleModule(
        argument_spec=argument_spec(),
        required_if=[("compare", "dlperf", ["published"])],
        supports_check_mode=True,
    )
    if MISSING:
        module.fail_json(msg=f"speedup_report needs pandas and Jinja2 on the controller: {MISSING}")
    top = Path(module.params["path"])
    out = Path(module.params["out"] or top / "report")
    wanted = not module.check_mode
    try:
        if module.params["verify"]:
            module.exit_json(**verify(top))
        signed = {"old": manifest.read(top)}
        document = make_document(module.params, signed)
        files = render(document, module.params["templates"])
        obsolete = stale(out, files)
        changed = [write_whole(out / name, encoded(text), wanted) for name, text in files.items()]
        if out == top / "report":
            # Last, and only beside a report of its own: results that lie elsewhere may be read only.
            changed.append(write_json(top / manifest.NAME, signed["new"], wanted, sync=True))
        for path in obsolete if wanted else ():
            path.unlink()
    except (OSError, ValueError, jinja2.TemplateError) as exc:
        module.fail_json(msg=str(exc))
    page = str(out / "report.html")
    module.exit_json(
        changed=any(changed) or bool(obsolete),
        rows=[{key: row[key] for key in ROW} for row in document["rows"]],
        table=report.table(document),
        display=report.display(
            document, page if not module.check_mode else f"{page} (check mode: not written)"
        ),
        report=page,
        files=[str(out / name) for name in sorted(files)],
        uncounted=len(document["uncounted"]),
        regressions=(document["baseline"] or {"regressions": 0})["regressions"],
        problems=signed["wrong"],
    )


if __name__ == "__main__":
    main()
