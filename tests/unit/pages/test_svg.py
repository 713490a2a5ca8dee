"""Charts: well formed, inert, and true to the figures."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from ansible.module_utils.scalebook.pages import line_chart, svg
from ansible.module_utils.scalebook.pages.bar_chart import Bar, bar_chart, ticks_to
from ansible.module_utils.scalebook.pages.line_chart import Axes

SVG = "{http://www.w3.org/2000/svg}"


def series(points, label="fp32"):
    return {"label": label, "points": [{"x": x, "y": y, "note": f"{x}: {y}"} for x, y in points]}


def draw(*each, **other):
    options = {
        "title": "Speedup",
        "description": "of devices",
        "axes": Axes("x"),
        "key": "k",
        "ideal": "own",
        **other,
    }
    return line_chart.line_chart(list(each), **options)


def dots(svg):
    return [
        (float(e.get("cx")), float(e.get("cy"))) for e in ElementTree.fromstring(svg).iter(SVG + "circle")
    ][:-1]


def texts(svg):
    return [e.text for e in ElementTree.fromstring(svg).iter(SVG + "text")]


def test_powers_of_two_stand_at_equal_distances():
    xs = [x for x, _ in dots(draw(series([(1, 1), (2, 2), (4, 3), (8, 5)])))]
    gaps = {round(b - a, 1) for a, b in zip(xs, xs[1:], strict=False)}
    assert max(gaps) - min(gaps) <= 0.11
    assert "devices, log scale" in texts(draw(series([(1, 1), (2, 2)])))


def test_other_device_counts_stand_on_a_linear_axis():
    xs = [x for x, _ in dots(draw(series([(1, 1), (3, 2), (5, 3)])))]
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.11)
    assert "devices" in texts(draw(series([(1, 1), (3, 2)])))


def test_linear_scaling_lies_on_the_ideal_line():
    svg = draw(series([(1, 1), (2, 2), (4, 4)]))
    ideal = next(
        e.get("d") for e in ElementTree.fromstring(svg).iter(SVG + "path") if e.get("class") == "own ideal p0"
    )
    ends = [tuple(map(float, pair.split())) for pair in ideal[1:].split("L")]
    assert [dots(svg)[0], dots(svg)[-1]] == ends


def test_the_interval_is_a_bar_through_the_point():
    each = series([(1, 100.0), (2, 180.0)])
    each["points"][1].update(low=170.0, high=190.0)
    assert len(re.findall('class="bar"', draw(each, ideal=""))) == 1


def test_a_provisional_point_is_hollow():
    each = series([(1, 1.0), (2, 1.5)])
    each["points"][1]["hollow"] = True
    drawn = draw(each)
    assert drawn.count('class="dot hollow"') == 1
    assert "provisional" in texts(drawn)


def test_the_last_value_of_each_series_is_written_out():
    assert "19.86" in texts(draw(series([(1, 1), (32, 19.86)])))


def test_markup_in_a_label_stays_text():
    svg = draw(series([(1, 1), (2, 2)], label="<script>alert(1)</script>"), title="</title><script>")
    assert "<script" not in svg
    assert "<script>alert(1)</script>" in texts(svg)


def test_a_chart_says_what_it_is_to_those_who_do_not_see_it():
    root = ElementTree.fromstring(draw(series([(1, 1), (2, 2)])))
    ids = root.get("aria-labelledby").split()
    assert root.get("role") == "img"
    assert [root.find(SVG + "title").get("id"), root.find(SVG + "desc").get("id")] == ids


def test_a_file_of_its_own_carries_its_style_and_asks_for_nothing():
    file = svg.as_file(draw(series([(1, 1), (2, 2)])))
    assert "<style>" in file
    assert "prefers-color-scheme:dark" in file
    assert re.findall(r"(?:href|url\(|@import|http)", file.replace("http://www.w3.org/2000/svg", "")) == []


def test_no_point_no_chart():
    assert draw(series([])) == ""


def test_one_point_alone_is_a_chart():
    assert len(dots(draw(series([(1, 42.0)])))) == 1


@pytest.mark.parametrize("rate", [0.0003, 0.5, 7, 2244.38, 5e6])
def test_any_rate_stays_inside_the_frame(rate):
    for _, y in dots(draw(series([(1, rate), (2, rate * 1.7), (4, rate * 2)]), ideal="own")):
        assert svg.TOP <= y <= svg.TOP + line_chart.PLOT_HEIGHT


def test_a_slowdown_below_1_is_drawn():
    points = dots(draw(series([(1, 1), (2, 0.44)])))
    assert points[1][1] > points[0][1]


@pytest.mark.parametrize("devices", [range(1, 126), (1, 8, 24, 56, 160, 480, 1000)])
def test_figures_below_the_axis_do_not_run_into_each_other(devices):
    svg = draw(series([(n, n * 0.9) for n in devices]))
    texts = [e for e in ElementTree.fromstring(svg).iter(SVG + "text") if e.get("text-anchor") == "middle"]
    xs = [float(e.get("x")) for e in texts[:-1]]
    assert min(after - before for before, after in zip(xs, xs[1:], strict=False)) >= 30
    assert texts[len(xs) - 1].text == str(devices[-1])


def test_four_series_do_not_each_have_a_line_of_their_own_ideal():
    each = [series([(1, 10.0 + i), (2, 15.0)]) for i in range(4)]
    assert "own ideal" in draw(*each[:3], ideal="own")
    assert "own ideal" not in draw(*each, ideal="own")


def test_too_many_series_are_refused_rather_than_painted_alike():
    with pytest.raises(ValueError, match="9 series"):
        draw(*(series([(1, 1)]) for _ in range(9)))


def test_values_at_the_same_height_are_moved_apart():
    svg = draw(series([(1, 1), (2, 1.50)]), series([(1, 1), (2, 1.51)], "fp16"))
    ys = [
        float(e.get("y"))
        for e in ElementTree.fromstring(svg).iter(SVG + "text")
        if "value" in e.get("class", "")
    ]
    assert abs(ys[0] - ys[1]) >= 12


# Efficiency, on a linear axis


def heights(drawn):
    """Return {number on the axis: its height}."""
    labels = [e for e in ElementTree.fromstring(drawn).iter(SVG + "text") if e.get("text-anchor") == "end"]
    return {float(e.text): float(e.get("y")) for e in labels}


CUT = "; not from 0"


def efficiency(*values):
    points = [(2**index, value) for index, value in enumerate(values)]
    return draw(series(points), ideal="full", axes=Axes("per cent", unit=" %", cut=CUT))


def test_efficiency_has_a_linear_axis_and_a_line_at_100_per_cent():
    drawn = efficiency(100.0, 95.0, 90.0)
    at = heights(drawn)
    assert at[90] - at[92] == pytest.approx(at[96] - at[98], abs=0.11)
    ideal = next(
        e.get("d") for e in ElementTree.fromstring(drawn).iter(SVG + "path") if e.get("class") == "ideal"
    )
    assert {float(pair.split()[1]) for pair in ideal[1:].split("L")} == {at[100] - 4}
    assert "90.0 %" in texts(drawn)


@pytest.mark.parametrize(("least", "begin"), [(90.0, 88.0), (99.9, 99.0), (20.0, 0.0)])
def test_the_axis_of_efficiency_is_that_of_the_data_and_says_if_it_does_not_begin_at_0(least, begin):
    drawn = efficiency(100.0, least)
    assert min(heights(drawn)) == begin
    assert (CUT in "".join(filter(None, texts(drawn)))) == (begin > 0)


def test_an_efficiency_above_100_per_cent_stays_inside_the_frame():
    assert all(y >= svg.TOP for _, y in dots(efficiency(100.0, 260.0)))


@pytest.mark.parametrize("rates", [(188.0, 785.0), (5653.0, 11189.0), (0.5, 0.61), (100.0, 101.0)])
def test_a_logarithmic_axis_has_at_least_four_numbers(rates):
    drawn = draw(series(list(zip((1, 4), rates, strict=True))), ideal="")
    assert drawn.count('class="grid"') >= 4


# Labels


def test_a_label_is_wrapped_never_cut():
    label = "torch_resnet50 resnet50 bf16 torch.compile b256 accumulation 4 " + "x" * 100
    lines = svg.wrapped(label, 200)
    assert "".join(lines) == label
    assert max(map(svg.width_of, map(str.rstrip, lines))) <= 200


def test_entries_of_a_legend_do_not_run_into_each_other():
    entries = [(0, "b32 bucket_mb=2000"), (1, "b32 bucket_mb=25"), (2, "b64 bucket_mb=2000")]
    root = ElementTree.fromstring(f"<svg>{''.join(svg.legend(entries, 20)[0])}</svg>")
    places = [(float(e.get("x")), e.get("y"), svg.width_of(e.text)) for e in root.iter("text")]
    for (x, y, width), (other, lower, _) in zip(places, places[1:], strict=False):
        assert y != lower or x + width <= other - svg.SWATCH


def test_a_second_point_at_one_place_is_beside_the_line_and_is_explained():
    drawn = draw(series([(1, 1), (4, 3.9), (4, 3.8)]))
    assert drawn.count('class="aside"') == 1
    assert "another case of as many devices" in texts(drawn)


# Eight series


def test_series_differ_in_dashes_and_in_markers_not_in_colour_alone():
    drawn = draw(*(series([(1, 1), (2, 1.5)], str(index)) for index in range(8)))
    root = ElementTree.fromstring(drawn)
    markers = [
        group.find(f"{SVG}g")[1] for group in root.iter(SVG + "g") if group.find(f"{SVG}g") is not None
    ]
    shapes = {re.sub(r"M[\d.]+ [\d.]+", "M", each.get("d") or "circle") for each in markers}
    assert len(shapes) == len(set(svg.DASHES)) == svg.SERIES == 8
    assert all(
        f".p{index} .line{{stroke-dasharray:{dash}}}" in svg.style()
        for index, dash in enumerate(svg.DASHES)
        if dash
    )


# Bars


def bars(**other):
    rows = [("fp32", [Bar(0, 100.0, "100", "note", 90.0, 110.0)]), ("bf16", [Bar(0, 50.0, "50", "note")])]
    ticks = [(tick, str(tick)) for tick in ticks_to(110.0)]
    options = {
        "rows": rows,
        "names": [],
        "title": "t",
        "description": "d",
        "axis": "a",
        "key": "k",
        "ticks": ticks,
    }
    return ElementTree.fromstring(bar_chart(**{**options, **other}))


def test_bars_are_as_long_as_their_values():
    long, short = [float(e.get("width")) for e in bars().iter(SVG + "rect") if e.get("class") == "fill"]
    assert long == pytest.approx(2 * short, abs=0.11)


def test_a_bar_has_the_range_of_its_runs():
    assert len([e for e in bars().iter(SVG + "path") if e.get("class") == "limits"]) == 1


def test_bars_of_several_series_end_in_the_marker_of_their_series():
    rows = [("product", [Bar(0, 50.0, "50", "n"), Bar(1, 60.0, "60", "n")])]
    kinds = [e.tag for e in bars(rows=rows, names=["H100", "A100"]).iter() if e.get("class") == "dot"]
    assert len(kinds) == 4  # two in the legend, two in the chart


@pytest.mark.parametrize(
    ("highest", "last"), [(100.0, 100.0), (101.0, 150.0), (0.37, 0.4), (23097.0, 25000.0)]
)
def test_the_axis_of_bars_ends_at_or_above_the_highest(highest, last):
    ticks = ticks_to(highest)
    assert ticks[0] == 0 and ticks[-1] == pytest.approx(last) and len(ticks) <= 6


def test_the_numbers_of_bars_stay_inside_the_chart_beyond_its_axis_too():
    root = bars(rows=[("vector", [Bar(0, 150.0, "107 % · 0.642 of 0.600", "n")])])
    (text,) = [e for e in root.iter(SVG + "text") if e.text.startswith("107 %")]
    assert float(text.get("x")) + svg.width_of(text.text) <= svg.WIDTH


def test_without_a_row_there_are_no_bars():
    assert bar_chart([], [], "t", "d", "a", "k", [(1.0, "1")]) == ""
