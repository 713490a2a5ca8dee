# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The pages in a real browser: readable at every width, by everyone, on paper, and without the network."""

from __future__ import annotations

import json
import re

import chromium
import measured
import pytest
from acceptance_site import Site
from ansible.module_utils.scalebook import published
from ansible.module_utils.scalebook.judge import baseline, mfu
from ansible.module_utils.scalebook.judge import microbench_records as judge
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import svg, wording
from ansible.module_utils.scalebook.report import acceptance, index, index_page, microbench, render
from ansible.module_utils.scalebook.store.load import Baseline, load_campaign
from ansible.module_utils.scalebook.store.source import open_source
from ansible.module_utils.scalebook.workloads import load_workloads
from report_records import campaign, case, dlperf_records, record

pytestmark = pytest.mark.slow

ROOT = chromium.ROOT
RESULTS = ROOT / "docs" / "results"
WIDTHS = (360, 768, 1280)
PICTURES = ROOT / ".scalebook" / "test-logs" / "report"
"""Where the screenshots go that people may look at."""


def workloads():
    return load_workloads([str(ROOT / "roles")])


def everything(folder):
    """Return the document of a campaign that fills every part of the page."""
    shapes = ((1, 1), (1, 2), (2, 2))
    settings = {
        "optimizer": "lamb",
        "bucket_cap": "a value that is long enough to need some room in a heading",
    }
    records = dlperf_records()
    for dtype, factor in (("fp32", 1), ("fp16", 2)):
        for step, shape in enumerate(shapes):
            of = case(*shape, dtype=dtype, bsz=32, workload="torch_bert", settings=settings)
            rates = [80 * factor * 1.7**step * (1 + repeat / 500) for repeat in range(6)]
            records += [record(of, repeat, rate) for repeat, rate in enumerate(rates, 1)]
            strong = case(*shape, dtype=dtype, bsz=64 // (shape[0] * shape[1]), workload="horovod_bert")
            records += [record(strong, repeat, rates[repeat] * 1.1) for repeat in (1, 2)]
    broken = case(4, 2, dtype="fp16", bsz=32, workload="torch_bert", settings=settings)
    records += [record(broken, 1, None, last_lines=["Traceback", "RuntimeError: " + "x" * 300])]
    for each in records:
        if each["case"]["workload"] == "torch_bert":
            each["self_reported"] = {
                "mfu": "0.4081",
                "peak_memory_mib": "71234",
                "tflops_per_device": "403.9",
            }
    skipped = [{"case": case(8, 8), "reason": "needs 8 nodes, the inventory has 4"}]
    top = campaign(folder / "everything", records, campaign="evening", skipped=skipped)
    facts = {"driver": "580.159.04", "torch": "2.11.0+cu130", "data": "0123456789abcdef" * 4}
    (top / "provenance.json").write_text(json.dumps({"nodes": {f"NODE{index}": facts for index in (1, 2)}}))
    earlier = json.loads(json.dumps(build_results(load_campaign(top))["rows"]))
    for row in earlier[:3]:
        for run in row["runs"]:
            run["rate"] *= 1.2
    header = "framework,model,dtype,xla,bsz_per_device,nodes,gpus,samples_per_s,speedup,source_file,variant"
    table = published.read(
        [header, "TensorFlow 2.3.0,bert-base,fp32,false,64,1,1,112.99,1,DLPerf@master:x.md:L334,"]
    )
    before = Baseline(str(top), "before", earlier, baseline.read_limit("3%"))
    return top, build_results(load_campaign(top), workloads(), table, before)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return name -> path of the pages that are opened."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, language in (
        ("scaling", "en"),
        ("hf_scaling", "en"),
        ("everything", "en"),
        ("everything", "zh"),
    ):
        if name == "everything":
            top, document = everything(folder / language)
        else:
            top = RESULTS / "h200x4-2026-11-21" / name
            document = build_results(load_campaign(top), workloads())
        kept = open_source(top).kept_paths(top / "report")
        text = render.files(document, str(ROOT / "templates"), kept, language)["report.html"]
        path = folder / f"{name}-{language}.html"
        path.write_text(text, encoding="utf-8")
        made[path.stem] = path
    for language in ("en", "zh"):
        path = folder / f"microbench-{language}.html"
        path.write_text(microbenchmarks(language), encoding="utf-8")
        made[path.stem] = path
    made["acceptance-zh"] = acceptance_document(folder / "acceptance")
    made["torch-en"] = folder / "torch.html"
    torch = render.files(measured.results("h100x2-2026-11-25/torch"), str(ROOT / "templates"))
    made["torch-en"].write_text(torch["report.html"], encoding="utf-8")
    made["index-en"] = folder / "index-en.html"
    made["index-en"].write_text(campaigns(folder / "results"), encoding="utf-8")
    return made


def campaigns(top):
    """Return the index of the committed campaigns of four GPUs, and of one that is 10 % slower."""
    for measurement in measured.campaigns("h200x4-2026-11-2?"):
        document = measured.results(measurement)
        days = [(measurement.split("/")[1], "2026-11-21", 1.0)]
        if days[0][0] == "scaling":
            days.append(("a campaign with a long name, measured after an update", "2026-11-24", 0.9))
        for name, day, factor in days:
            document["started"] = f"{day}T00:00:00Z"
            # The index compares no campaigns whose hardware is not known.
            document["hardware"] = [{"nodes": ["NODE1"], "gpus": [{"name": "NVIDIA H200"}] * 4}]
            for row in document["rows"]:
                row["median"] = row["median"] and row["median"] * factor
                for each in row["runs"]:
                    each["rate"] *= factor
            (top / name / "report").mkdir(parents=True)
            (top / name / "report" / "results.json").write_text(json.dumps(document))
    reports = index.read(top)
    return index_page.files(index.build(reports), reports, str(ROOT / "templates"))["index.html"]


def microbenchmarks(language):
    """Return the page of the micro-benchmarks of an H200."""
    result = json.loads(measured.source(measured.MICROBENCH).read("compute.json"))
    with (ROOT / "data" / "gpus.csv").open(newline="") as peaks:
        mine = judge.measured(result, mfu.read_peaks(peaks))
    with (ROOT / "data" / "microbench-published.csv").open(newline="") as table:
        devices = [mine, *judge.read_published(table)]
    files = judge.Files({"compute": result}, {}, [])
    said = wording.Wording(language)
    view = microbench.View(files, judge.records(files), devices, said)
    return microbench.texts(view, render.tools(), str(ROOT / "templates"))["report.html"]


def acceptance_document(folder):
    """Return the path of the document about eight nodes: one and a link are slow, and a trace differs."""
    folder.mkdir()
    site = Site(folder)
    site.rates = {("NODE3", "CPU"): 0.8, ("NODE1", "NODE2"): 0.5}
    site.traces["NODE4"] = "aa cc"
    path = folder / "acceptance.zh.html"
    path.write_text(acceptance.documents(site.judged()[0], str(ROOT / "templates"))[path.name])
    return path


NAMES = (
    *("scaling-en", "hf_scaling-en", "everything-en", "everything-zh", "microbench-en", "index-en"),
    "acceptance-zh",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    absent = chromium.missing()
    if absent:
        pytest.skip(f"{', '.join(absent)} is not installed and cannot be")
    made = chromium.Chromium(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def axe(browser):
    return chromium.axe()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_its_window_and_asks_for_nothing(browser, pages, name, width):
    browser.open(pages[name], width, dark=width == 768)
    PICTURES.mkdir(parents=True, exist_ok=True)
    browser.screenshot(PICTURES / f"{name}-{width}.png")
    assert browser.run("document.documentElement.scrollWidth") <= width
    assert browser.requests() == [pages[name].as_uri()]
    assert browser.complaints() == []


@pytest.mark.parametrize(
    ("name", "width", "dark"),
    [
        ("everything-en", 360, False),
        ("everything-zh", 1280, True),
        ("microbench-zh", 360, False),
        ("acceptance-zh", 360, True),
        ("index-en", 360, True),
    ],
)
def test_axe_finds_nothing(browser, pages, axe, name, width, dark):
    browser.open(pages[name], width, dark)
    # What is folded away is judged as well.
    browser.run("document.querySelectorAll('details').forEach((each) => each.open = true)")
    browser.run(axe)
    found = browser.run("axe.run({resultTypes: ['violations']}).then((result) => result.violations)")
    problems = [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"]]
    assert problems == []


TABLE = (
    "[...document.querySelectorAll('table')].find((table) => table.tHead.textContent.includes('samples/s'))"
)


def rows_of(browser):
    """Return the text of every row of every table, tables apart."""
    return browser.run(
        "[...document.querySelectorAll('table')].map((table) => "
        "[...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"
    )


def squeezed(text):
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("name", NAMES)
def test_paper_has_every_row_of_every_table(browser, pages, tmp_path, name):
    browser.open(pages[name])
    printed = squeezed(browser.printed(tmp_path / "page.pdf"))
    browser.run("document.querySelector('details:has(#only-published)')?.remove()")
    rows = [squeezed("".join(row)) for table in rows_of(browser) for row in table]
    assert len(rows) > 7
    assert [row for row in rows if row not in printed] == []


@pytest.mark.parametrize(
    ("name", "most"), [("h200x4-2026-11-26/torch_gpt2", 8), ("h100x2-2026-11-25/torch", 14)]
)
def test_a_report_fits_few_pages_of_paper_with_its_best_result_on_the_first(browser, tmp_path, name, most):
    page = tmp_path / "report.html"
    page.write_text(render.files(measured.results(name), str(ROOT / "templates"))["report.html"])
    browser.open(page)
    first, *others = browser.printed(tmp_path / "page.pdf").rstrip("\f").split("\f")
    assert len(others) < most
    assert "per GPU" in first


@pytest.mark.parametrize(
    ("name", "screens"), [("h200x4-2026-11-26/torch_gpt2", 8), ("h100x2-2026-11-25/torch", 12)]
)
def test_a_report_is_a_few_screens_and_2500_words_long(browser, tmp_path, name, screens):
    page = tmp_path / "report.html"
    page.write_text(render.files(measured.results(name), str(ROOT / "templates"))["report.html"])
    browser.open(page, 1440)
    height = browser.run("document.documentElement.scrollHeight")
    open_words = browser.run("document.body.innerText.split(/\\s+/).length")
    assert height <= screens * 900
    assert open_words <= 2500


@pytest.mark.parametrize(
    ("width", "height", "parts"),
    [(390, 844, ("h1", ".lead", ".best", ".conclusions li")), (1440, 900, (".trust", ".charts svg"))],
)
def test_the_first_screen_says_what_was_measured_how_good_it_is_and_whether_to_trust_it(
    browser, tmp_path, width, height, parts
):
    page = tmp_path / "report.html"
    page.write_text(
        render.files(measured.results("h200x4-2026-11-26/torch_gpt2"), str(ROOT / "templates"))["report.html"]
    )
    browser.open(page, width)
    below = [
        part
        for part in (*parts, ".trust strong")
        if browser.run(f"document.querySelector('{part}').getBoundingClientRect().top") > height - 20
    ]
    assert below == []


@pytest.fixture
def phone(browser, tmp_path):
    """Return what opens the report of a measured campaign on a phone of 390 × 844."""

    def opened(name):
        page = tmp_path / "report.html"
        page.write_text(render.files(measured.results(name), str(ROOT / "templates"))["report.html"])
        browser.open(page, 390)
        return browser

    return opened


@pytest.mark.parametrize(
    ("name", "screens"), [("h200x4-2026-11-26/torch_gpt2", 8), ("h100x2-2026-11-25/torch", 12)]
)
def test_a_report_is_no_more_screens_long_on_a_phone_than_on_a_desk(phone, name, screens):
    assert phone(name).run("document.documentElement.scrollHeight") <= screens * 844


@pytest.mark.parametrize("name", ["h200x4-2026-11-26/torch_gpt2", "h100x2-2026-11-25/torch"])
def test_the_first_screen_of_a_phone_has_title_hardware_best_result_and_trust(phone, name):
    browser = phone(name)
    below = [
        part
        for part in ("h1", ".lead", ".best", ".trust strong")
        if browser.run(f"document.querySelector('{part}').getBoundingClientRect().bottom") > 844
    ]
    assert below == []


def test_two_screens_of_a_phone_have_title_results_conclusions_trust_and_a_chart(phone):
    browser = phone("h100x2-2026-11-25/torch")
    below = [
        part
        for part in ("h1", ".best", ".conclusions", ".trust", ".charts figure")
        if browser.run(f"document.querySelector('{part}').getBoundingClientRect().bottom") > 2 * 844
    ]
    assert below == []


def test_a_section_on_a_phone_opens_below_its_heading(phone):
    browser = phone("h100x2-2026-11-25/torch")
    table = "document.querySelector('#utilisation').closest('section').querySelector('table')"
    assert not browser.run(f"{table}.checkVisibility()")
    browser.run("document.querySelector('#utilisation').click()")
    assert browser.run(f"{table}.checkVisibility()")


def test_a_card_on_a_phone_has_rate_efficiency_and_flags_and_a_button_shows_the_rest(phone):
    browser = phone("h100x2-2026-11-25/torch")
    shown = (
        "[...[...document.querySelectorAll('section:has(#results) tbody tr')]"
        ".find((row) => row.querySelector('.flag')).cells].filter((cell) => cell.checkVisibility())"
        ".map((cell) => cell.dataset.label)"
    )
    assert browser.run(shown) == ["group", "case", "per GPU", "efficiency", "flags"]
    browser.run("document.querySelector('section:has(#results) button').click()")
    assert {"speedup", "spread", "runs"} <= set(browser.run(shown))


def test_the_head_of_a_table_stands_on_every_page_that_it_reaches(browser, pages, tmp_path):
    browser.open(pages["scaling-en"])
    heads = browser.printed(tmp_path / "page.pdf").count("\ncase GPUs")
    browser.run(
        f"(() => {{ const body = {TABLE}.tBodies[0]; "
        "for (let i = 0; i < 99; i++) body.append(body.rows[0].cloneNode(true)); })()"
    )
    assert browser.printed(tmp_path / "page.pdf").count("\ncase GPUs") > heads + 1 > 1


@pytest.mark.parametrize("name", NAMES)
def test_without_script_a_page_says_the_same(browser, pages, name):
    browser.open(pages[name])
    with_script = browser.run("document.querySelector('main').innerText.length")
    rows = rows_of(browser)
    browser.open(pages[name], script=False)
    assert browser.run("document.querySelectorAll('button, input, form:not([hidden])').length") == 0
    assert rows_of(browser) == rows
    assert browser.run("document.querySelector('main').innerText.length") == pytest.approx(
        with_script, abs=50
    )


def test_a_click_on_a_heading_sorts_by_numbers_and_another_turns_round(browser, pages):
    browser.open(pages["scaling-en"])
    column = f"[...{TABLE}.tBodies[0].rows].map((row) => row.cells[2].textContent)"
    assert browser.run(column) == ["6,127", "11,605", "23,098"]
    for order, aria in ((1, "ascending"), (-1, "descending")):
        browser.run(f"{TABLE}.tHead.rows[0].cells[2].querySelector('button').click()")
        assert browser.run(column) == ["6,127", "11,605", "23,098"][::order]
        assert browser.run(f"{TABLE}.tHead.rows[0].cells[2].ariaSort") == aria


def test_a_long_table_can_be_filtered(browser, pages):
    browser.open(pages["everything-en"])
    rows = browser.run(
        "(() => { const input = document.querySelector('input'); input.value = '2N2G'; "
        "input.dispatchEvent(new Event('input')); "
        f"return [...{TABLE}.tBodies[0].rows].map((row) => [row.hidden, row.textContent]); }})()"
    )
    assert {hidden for hidden, _text in rows} == {True, False}
    assert all(hidden is ("2n2g" not in text) for hidden, text in rows)


def test_the_index_shows_the_cases_of_the_chosen_workload_alone(browser, pages):
    browser.open(pages["index-en"])
    shown = browser.run(
        "(() => { const form = document.forms[0]; form.workloads.value = 'hf_mlm'; "
        "form.dispatchEvent(new Event('change')); "
        "return [...document.querySelectorAll('tbody tr')].filter((row) => row.checkVisibility())"
        ".map((row) => row.dataset.workloads); })()"
    )
    assert len(shown) > 3
    assert set(shown) == {"hf_mlm"}


def test_the_index_marks_what_has_become_slower(browser, pages):
    browser.open(pages["index-en"])
    assert browser.run("document.querySelector('.verdict .flag').textContent") == "3 cases slower than before"
    assert browser.run("document.querySelectorAll('section:has(#regressions) svg .mark').length") == 3


def test_all_recorded_campaigns_fit_six_screens(browser, tmp_path):
    page = tmp_path / "index.html"
    for name in measured.campaigns():
        (tmp_path / name / "report").mkdir(parents=True)
        (tmp_path / name / "report" / "results.json").write_text(json.dumps(measured.results(name)))
    reports = index.read(tmp_path, workloads())
    page.write_text(index_page.files(index.build(reports), reports, str(ROOT / "templates"))["index.html"])
    browser.open(page, 1440)
    assert browser.run("document.documentElement.scrollHeight") <= 6 * 900


def test_two_campaigns_that_are_ticked_stand_side_by_side(browser, pages):
    browser.open(pages["index-en"])
    tick = "document.querySelector('input[aria-label=\"%s\"]').click()"
    for name in ("scaling", "a campaign with a long name, measured after an update"):
        browser.run(tick % name)
    panel = "document.getElementById('side-by-side')"
    ratios = browser.run(f"[...{panel}.querySelectorAll('tbody tr')].map((row) => row.cells[1].textContent)")
    assert ratios == ["0.900"] * 3
    assert browser.run(f"document.activeElement === {panel}")
    browser.run(tick % "scaling")
    assert browser.run(panel) is None


def test_text_of_charts_is_readable_on_every_device(browser, pages):
    """12 px as designed; at most an eighth smaller, not at all on a phone, and at most 20 % larger."""
    for width in (*WIDTHS, 390, 820):
        browser.open(pages["scaling-en"], width)
        scales = browser.run(
            "[...document.querySelectorAll('svg')].filter((each) => each.checkVisibility())"
            f".map((each) => each.getBoundingClientRect().width / {svg.WIDTH})"
        )
        least = 0.91 if width == min(WIDTHS) else 0.95
        assert all(least <= scale <= 1.2 for scale in scales), (width, scales)


def test_no_text_of_a_chart_is_cut(browser, pages):
    browser.open(pages["scaling-en"], 390)
    outside = browser.run(
        "[...document.querySelectorAll('svg.chart')].flatMap((svg) => [...svg.querySelectorAll('text')]"
        ".filter((text) => { const box = text.getBBox(), view = svg.viewBox.baseVal; return box.x < -1 || "
        "box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1; })"
        ".map((text) => text.textContent))"
    )
    assert outside == []


KEYS = (
    "(() => { const svg = document.querySelector('svg.curves'); svg.focus(); for (const key of %s) "
    "svg.dispatchEvent(new KeyboardEvent('keydown', {key})); return "
    "[document.querySelector('.tip').textContent, document.querySelectorAll('.here').length]; })()"
)


def test_the_points_of_a_chart_are_read_with_the_arrow_keys(browser, pages, axe):
    browser.open(pages["scaling-en"])
    text, points = browser.run(KEYS % ["ArrowRight", "ArrowRight"])
    assert re.fullmatch(r"1n2g: 94\.\d %, range 94\.\d % – 94\.\d %, 3/3 runs", text)
    assert points == 1
    browser.run(axe)
    assert browser.run("axe.run({resultTypes: ['violations']}).then((result) => result.violations)") == []
    assert browser.run(KEYS % ["Escape"])[1] == 0


def test_the_mouse_shows_all_series_at_the_nearest_number_of_devices(browser, pages):
    browser.open(pages["everything-en"])
    shown = browser.run(
        "(() => { const svg = document.querySelector('svg.curves'), box = svg.getBoundingClientRect(); "
        "svg.dispatchEvent(new PointerEvent('pointermove', {clientX: box.x + 60, clientY: box.y + 90})); "
        "return document.querySelector('.tip').textContent; })()"
    )
    assert len(shown.splitlines()) > 1
    assert all(" · 1n1g: 100.0 %" in line for line in shown.splitlines())


def test_a_flag_leads_to_its_explanation(browser, pages):
    browser.open(pages["everything-en"])
    assert browser.run("document.querySelectorAll('td a.flag').length") > 3


@pytest.mark.parametrize("name", NAMES[:5])
def test_no_link_of_a_mailed_page_is_dead(browser, pages, name):
    browser.open(pages[name], script=False)
    dead = browser.run(
        "[...document.querySelectorAll('[href]')].map((each) => each.getAttribute('href')).filter("
        "(link) => !/^(data:|https:)/.test(link) && !document.getElementById(link.replace(/^#/, '')))"
    )
    assert dead == []


@pytest.mark.parametrize("width", [390, 820])
@pytest.mark.parametrize("name", ["everything-en", "hf_scaling-en", "everything-zh", "torch-en"])
def test_nothing_is_cut_on_the_first_two_screens_of_a_phone_or_tablet(browser, pages, name, width):
    browser.open(pages[name], width)
    cut = browser.run(
        "[...document.querySelectorAll('h1, h2, p, td, dd, a, button')].filter((each) => {"
        " const box = each.getBoundingClientRect();"
        f" return box.height && box.top < 1800 && (box.left < 0 || box.right > {width}); "
        "}).map((each) => each.textContent)"
    )
    assert cut == []


def test_each_value_of_a_card_on_a_phone_has_its_heading(browser, pages):
    browser.open(pages["scaling-en"], 390)
    labels = browser.run(f"[...{TABLE}.tBodies[0].rows[0].cells].map((cell) => cell.dataset.label)")
    assert labels[:3] == ["case", "GPUs", "samples/s"]
    shown = f"getComputedStyle({TABLE}.tBodies[0].rows[0].cells[2], '::before').content"
    assert browser.run(shown) == '"samples/s"'


def test_the_head_of_a_table_stays_in_view(browser, pages):
    browser.open(pages["everything-en"])
    browser.run(f"window.scrollTo(0, {TABLE}.getBoundingClientRect().top + 30)")
    assert browser.run(f"{TABLE}.tHead.rows[0].cells[0].getBoundingClientRect().top") == 0


def test_a_button_copies_the_results_that_the_page_carries(browser, pages):
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.open(pages["scaling-en"])
    browser.run("document.querySelector('[data-copy][download] + button').click()")
    text = browser.run("navigator.clipboard.readText()")
    assert text.startswith("campaign,unit,case,label,")
    assert text.count("\n") == 4


def test_every_command_has_a_button_that_copies_it(browser, pages):
    browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.open(pages["torch-en"])
    browser.run("document.querySelector('header pre + button').click()")
    command = browser.run("document.querySelector('header pre').textContent")
    assert command.startswith("ansible-playbook ")
    assert browser.run("navigator.clipboard.readText()") == command
    assert browser.run("document.querySelectorAll('header pre:not(:has(+ button))').length") == 0


def test_paper_has_a_running_title_page_numbers_and_no_controls(browser, pages, tmp_path):
    browser.open(pages["everything-en"])
    text = browser.printed(tmp_path / "page.pdf")
    for control in ("Filter rows", "Copy CSV", "Download JSON"):
        assert control not in text
    count = text.count("\f")
    assert [f"{number} / {count}" in text for number in range(1, count + 1)] == [True] * count
    title = browser.run("document.querySelector('h1').textContent")
    assert text.count(f"{title}\n") > count
