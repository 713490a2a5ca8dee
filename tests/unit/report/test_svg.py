"""Charts: well formed, inert, and true to the figures."""

import re
import xml.etree.ElementTree as ElementTree

import pytest
from ansible.module_utils.scalebook.report import svg

SVG = "{http://www.w3.org/2000/svg}"


def series(points, label="fp32"):
    return {"label": label, "points": [{"x": x, "y": y, "note": f"{x}: {y}"} for x, y in points]}


def draw(*each, **other):
    options = {
        "title": "Speedup",
        "description": "of devices",
        "y_label": "x",
        "key": "k",
        "ideal": "common",
        **other,
    }
    return svg.chart(list(each), **options)


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
        e.get("d") for e in ElementTree.fromstring(svg).iter(SVG + "path") if e.get("class") == "ideal"
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
    assert draw(each).count('class="dot hollow"') == 1


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
    svg = draw(series([(1, 1), (2, 2)]), standalone=True)
    assert "<style>" in svg
    assert "prefers-color-scheme:dark" in svg
    assert re.findall(r"(?:href|url\(|@import|http)", svg.replace("http://www.w3.org/2000/svg", "")) == []


def test_no_point_no_chart():
    assert draw(series([])) == ""


def test_one_point_alone_is_a_chart():
    assert len(dots(draw(series([(1, 42.0)])))) == 1


@pytest.mark.parametrize("rate", [0.0003, 0.5, 7, 2244.38, 5e6])
def test_any_rate_stays_inside_the_frame(rate):
    for _, y in dots(draw(series([(1, rate), (2, rate * 1.7), (4, rate * 2)]), ideal="own")):
        assert svg.TOP <= y <= svg.TOP + svg.PLOT_HEIGHT


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
