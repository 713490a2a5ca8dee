# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The first screen of a report: what was measured on what, how good it is, how far to trust it, what next."""

from __future__ import annotations

import statistics
from collections.abc import Iterable

from ansible.module_utils.scalebook import hardware
from ansible.module_utils.scalebook.contracts import Group, Mfu, Row
from ansible.module_utils.scalebook.judge import flags
from ansible.module_utils.scalebook.pages.blocks import Block, Code, Fold, Item, Items, Paragraph, Tag
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import environment
from ansible.module_utils.scalebook.report.view import View, noun_of
from ansible.module_utils.scalebook.text import clean

FEW = 3
"""Names of a kind that a title has, and best results that the first screen has."""


def title(view: View) -> str:
    """Return what was measured in words: `PyTorch GPT-2 345M, bf16, torch.compile; 4 × NVIDIA H200`."""
    _, groups = view.wording, view.document["groups"]
    workloads = {
        group["workload"]: _.tell(group["workload_title"]) or clean(group["workload"]) for group in groups
    }
    if len(workloads) > 1:
        # Many names say less than what they have in common.
        families = _few((_.name("family", group["family"]) for group in groups), _)
        models = [_("report.workloads-of", families=families, count=len(workloads))]
    else:
        models = [" ".join(filter(None, [workloads[group["workload"]], _model(group)])) for group in groups]
    dtypes = [clean(group["dtype"]) for group in groups]
    compilers = [clean(group["compiler"] or _("family.compiled")) for group in groups if group["xla"]]
    what = _.join([_few(models, _), *filter(None, (_few(dtypes, _), _few(compilers, _)))])
    what = what or clean(view.document["campaign"]) or _("title.measurements")
    return _.join([what, hardware.models(view.document["hardware"], _)], "list")


def _model(group: Group) -> str:
    """Return the model where the name of its workload does not end with it."""
    model = clean(group["model"])
    return "" if model.replace("-", "") in clean(group["workload"]).replace("_", "") else model


def _few(names: Iterable[str], wording: Wording) -> str:
    """Return names, each once, the first few of many."""
    each = list(dict.fromkeys(filter(None, names)))
    more = [wording("report.more-names", count=len(each) - FEW)] if len(each) > FEW else []
    *others, last = [*each[:FEW], *more] or [""]
    return wording.join([wording.join(others), last], "and") if others else last


def blocks(view: View) -> list[Block]:
    """Return the first screen below its title."""
    return [
        *(Paragraph(line, "lead") for line in _system(view)),
        *_best(view),
        *_conclusions(view),
        _trust(view),
        *_slower(view),
        *_commands(view),
    ]


def _system(view: View) -> list[str]:
    """Return when and on what was measured, in short; the section of the environment has the rest."""
    document, _ = view.document, view.wording
    campaign = _.join([clean(document["campaign"]), _.moment(document["started"] or "")])
    return [_.about(campaign, each) for each in _hosts(view)[:1]] + _hosts(view)[1:FEW]


def _hosts(view: View) -> list[str]:
    """Return a short line for each kind of node, with how many machines nodes shared."""
    _, shared = view.wording, environment.shared(view.document["simulated"], view.wording)
    kinds = hardware.hosts(view.document["hardware"])
    sharing = [kind for kind in kinds if len(kind["nodes"]) > 1] or kinds[:1]
    lines = [(hardware.brief(kind, _), shared if kind in sharing else "") for kind in kinds]
    lines = lines or [(_("report.no-hardware"), shared)]
    return [clean(_.join(parts, "list")) for parts in lines]


def shares(view: View) -> dict[str, tuple[float | None, str]]:
    """Return the MFU of each case and the peak that it is a share of, as far as they are known."""
    entries = {entry["case"]: entry for entry in view.document["mfu"]}
    by_case: dict[str, tuple[float | None, str]] = {}
    for row in view.document["rows"]:
        entry = entries.get(row["case"])
        if entry and entry["mfu"] is not None:
            by_case[row["case"]] = entry["mfu"], peak(entry, view.wording)
        else:
            by_case[row["case"]] = reported_mfu(row), view.wording("page.reported")
    return by_case


def peak(entry: Mfu, wording: Wording) -> str:
    """Return such as `989.4 TFLOP/s, NVIDIA H200, dense bf16`, what an MFU is a share of."""
    return wording.join(
        [wording("report.peak", tflops=entry["peak_tflops"]), wording.tell(entry["peak_of"] or "")]
    )


def reported_mfu(row: Row) -> float | None:
    """Return the median of the MFU that the runs of a row report, None where one reports none."""
    try:
        values = [float(run["self_reported"]["mfu"]) for run in row["runs"]]
    except (KeyError, TypeError, ValueError):
        return None
    return statistics.median(values) if values and all(0 < value < 10 for value in values) else None


def _best(view: View) -> list[Block]:
    """Return the fastest usable rows, the one at the most devices first."""
    groups = {group["id"]: group for group in view.document["groups"]}
    best = [view.rows[case] for case in view.document["best"]]
    mfu_of = shares(view)
    peaks = [mfu_of[row["case"]][1] for row in best]
    several = len(best) > 1
    # A peak that results share is said once.
    return [
        _result(view, row, groups[row["group"]], several, peaks[index] not in peaks[:index])
        for index, row in enumerate(best[:FEW])
    ]


def _result(view: View, row: Row, group: Group, several: bool, with_peak: bool) -> Paragraph:
    """Return a result: the rate of a device, at what scale, and what else tells how good it is."""
    _, median = view.wording, row["median"] or 0.0
    devices = row["devices"]
    unit, per = _.name("unit", row["unit"]), _("report.per-device", device=_.name("noun", noun_of([group])))
    share, peak_text = shares(view)[row["case"]]
    lead = _("report.rate-of-one", rate=_.number(median / devices), unit=unit, per=per)
    facts = []
    if devices > 1:
        count = _.count(devices, noun_of([group]))
        facts.append(_("report.on-devices", devices=count, total=_.number(median), unit=unit))
    if devices > 1 and row["efficiency"] is not None:
        facts.append(_("report.of-linear", percent=_.percent(row["efficiency"])))
    if share is not None:
        percent = _.percent(share)
        facts.append(_("report.mfu", percent=percent, peak=peak_text) if with_peak else f"MFU {percent}")
    facts.append(_.count(row["good"], "run"))
    if row["good"] > 1:
        facts.append(_("report.spread", percent=_.percent(row["spread"])))
    about = _.tell(group["workload_title"]) or clean(row["workload"]) if several else ""
    text = _.about(about, _.join(facts)) if about else _.join(facts)
    return Paragraph(text, "best", lead=lead, parts=[" ", _link(view, row)])


def _link(view: View, row: Row) -> Tag:
    """Return a link to a row of the table of results."""
    return Tag(view.named([row["case"]]), "row", f"#{view.anchors[row['case']]}")


def _conclusions(view: View) -> list[Block]:
    """Return the sentences of conclusion, each with a link to the row that it is about."""
    items = []
    for each in view.document["conclusions"]:
        see = _link(view, view.rows[each["case"]]) if each["case"] else None
        items.append(Item(view.wording.tell(each["message"]), see=see))
    return [Items(items, "conclusions")]


def _trust(view: View) -> Paragraph:
    """Return how far to trust the rows, why, and how many runs count."""
    document, _ = view.document, view.wording
    trust, counts = document["trust"], document["counts"]
    kinds = {flag["code"] for row in document["rows"] for flag in row["flags"]}
    parts: list[str | Tag | Item] = []
    for reason in trust["reasons"]:
        code = reason["values"].get("kind", {"code": ""})["code"].partition(".")[2]
        parts += [
            Tag(_.tell(reason), flags.LEVELS.get(code, "care"), f"#flag-{code}" if code in kinds else ""),
            " ",
        ]
    cases = _.count(counts["cases"], "case")
    valid = _("page.valid", cases=cases, good=counts["good"], planned=counts["planned"])
    parts.append(Tag(valid, "row", "#uncounted") if document["uncounted"] else valid + _("join.stop"))
    lead = _("report.trust", word=_(f"trust.{trust['level']}"))
    return Paragraph("", f"trust {trust['level']}", lead=lead, parts=parts)


def _slower(view: View) -> list[Block]:
    """Return how many cases are slower than in an earlier campaign."""
    compared, _ = view.document["baseline"], view.wording
    if not compared or not compared["regressions"]:
        return []
    values = {
        "count": compared["regressions"],
        "name": clean(compared["name"]),
        "limit": _.percent(compared["limit"]),
    }
    return [Paragraph("", parts=[Tag(_("report.slower", **values), "stop", "#baseline")])]


def _commands(view: View) -> list[Block]:
    """Return the commands that measure the campaign again, each with its cases in words."""
    _, commands = view.wording, view.document.get("commands") or []
    if not commands:
        return []
    lines: list[Block] = []
    for each in commands:
        cases = view.named(each["cases"]) or _("report.search")
        lines.append(Code(cases if len(commands) > 1 else "", each["command"]))
    several = len(commands) > 1
    summary = _("page.repeat-each", count=len(commands)) if several else _("page.repeat-one")
    return [Paragraph("", only="md", lead=summary), Fold(summary, lines)]
