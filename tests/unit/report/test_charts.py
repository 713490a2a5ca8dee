# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The charts of all recorded campaigns: what is said on them differs, is whole, and stays inside."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import measured
import pytest
from ansible.module_utils.scalebook.pages import svg
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import charts, timeline

SVG = "{http://www.w3.org/2000/svg}"
GPT2, SCALING = "h200x4-2026-11-26/torch_gpt2", "h200x4-2026-11-26/tf2_bert_scaling"


def drawn(name, language="en"):
    document = measured.results(name)
    made = charts.charts(document, wording=Wording(language, for_people=True))
    lines = timeline.charts(document["timelines"], document["groups"])
    return [*made, *({**line, "kind": "timeline"} for line in lines)]


def texts(chart, look=""):
    root = ElementTree.fromstring(chart["svg"])
    return [each for each in root.iter(f"{SVG}text") if look in each.get("class", "")]


def lines_of(element):
    return [element.text, *(line.text for line in element)]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", measured.campaigns())
def test_labels_differ_and_none_is_cut(name, language):
    for chart in drawn(name, language):
        labels = ["".join(each.itertext()) for each in texts(chart, "legend")]
        assert chart["kind"] == "timeline" or len(labels) == len(set(labels)), chart["name"]
        assert all(label and "…" not in label for label in labels), chart["name"]


@pytest.mark.parametrize("name", measured.campaigns())
def test_titles_of_charts_differ(name):
    titles = [chart["title"] for chart in drawn(name)]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", measured.campaigns())
def test_no_text_leaves_its_chart(name, language):
    for chart in drawn(name, language):
        _, _, wide, tall = map(float, ElementTree.fromstring(chart["svg"]).get("viewBox").split())
        assert wide == svg.WIDTH
        for each in texts(chart):
            size = svg.TITLE if each.get("class") == "name" else 1.0
            width = size * max(map(svg.width_of, map(str.rstrip, lines_of(each))))
            left = float(each.get("x")) - {"end": width, "middle": width / 2}.get(each.get("text-anchor"), 0)
            assert left >= -1 and left + width <= wide + 1, (chart["name"], lines_of(each))
            assert float(each.get("y")) + sum(float(line.get("dy")) for line in each) <= tall


def test_the_charts_of_22_cases_leave_room_for_a_report_of_400_kilobytes():
    assert sum(len(chart["svg"]) for chart in drawn("h100x2-2026-11-25/torch")) < 160_000


def kinds(name):
    return [chart["name"] for chart in drawn(name) if chart["kind"] != "timeline"]


def test_the_charts_of_the_first_screen_come_first():
    assert kinds(GPT2) == ["ranked", "efficiency", "losses", "throughput", "strong", "steps"]


def chart_of(name, kind):
    return next(chart for chart in drawn(name) if chart["name"] == kind)


def labels_of(name, kind):
    return ["".join(each.itertext()) for each in texts(chart_of(name, kind), "legend")]


def test_settings_are_ranked_by_the_rate_of_a_device_on_the_most_devices_of_all():
    assert labels_of(GPT2, "ranked") == [
        "b64 bucket_mb=2000",
        "b64 bucket_mb=25",
        "b32 bucket_mb=2000",
        "b32 bucket_mb=25",
    ]
    shown = [each.text for each in texts(chart_of(GPT2, "ranked"))]
    assert "sequences/s per GPU, median and range, on 4 GPUs" in shown and "196.4" in shown


def test_one_result_of_each_workload_of_a_family_is_ranked_beside_the_others():
    assert labels_of("containers-2026-11-25/resnet50", "ranked")[0] == "torch_resnet50"


def test_the_parts_of_a_step_are_those_of_the_table_of_step_times():
    assert "b32 bucket_mb=25, 1n4g" in labels_of(GPT2, "losses")
    assert "1.9 % + 4.7 %" in [each.text for each in texts(chart_of(GPT2, "losses"))]


def test_a_part_of_a_step_that_became_shorter_is_taken_off():
    assert "4.5 % − 0.2 %" in [each.text for each in texts(chart_of("h100x2-2026-11-25/torch", "losses"))]


def test_ticks_of_parts_are_written_as_the_language_writes_per_cents():
    chart = next(each for each in drawn(GPT2, "zh") if each["name"] == "losses")
    assert "75%" in [each.text for each in texts(chart)]


def test_a_row_that_must_not_be_used_has_no_parts_of_a_step():
    """Above linear, its exchange would be −57.5 % of a step."""
    assert not any(
        "57.5" in (each.text or "") for each in texts(chart_of("h100x2-2026-11-25/torch", "losses"))
    )


def test_the_parts_of_a_step_fill_the_whole_of_each_bar():
    root = ElementTree.fromstring(chart_of(SCALING, "losses")["svg"])
    bars = [group for group in root.iter(f"{SVG}g") if len(group.findall(f"{SVG}rect")) == 3]
    widths = [sum(float(part.get("width")) for part in bar.iter(f"{SVG}rect")) for bar in bars]
    assert len(bars) == 4
    assert max(widths) - min(widths) <= 0.3


def test_every_run_with_steps_has_a_strip():
    rows = measured.results(GPT2)["rows"]
    strips = chart_of(GPT2, "steps")["svg"].count('class="strip"')
    assert strips == sum(row["good"] for row in rows) == 37


def test_two_nodes_and_one_on_as_many_devices_are_not_joined():
    root = ElementTree.fromstring(chart_of(GPT2, "efficiency")["svg"])
    lines = [each.get("d") for each in root.iter(f"{SVG}path") if each.get("class") == "line"]
    for line in (each[1:].split("L") for each in lines if "h22" not in each):
        across = [point.split()[0] for point in line]
        assert len(across) == len(set(across))
    assert sum(each.get("class") == "aside" for each in root.iter(f"{SVG}path")) == 2


def test_a_group_without_the_setting_of_the_others_has_a_label_too():
    assert len(labels_of(SCALING, "strong")) == 4  # two groups, the ideal line, and hollow points
