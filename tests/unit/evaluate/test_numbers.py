# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Every number that the evaluation says in words is in one of its tables, in each form and language."""

import io
import re
import zipfile
from html.parser import HTMLParser

import pytest
from ansible.module_utils.scalebook.evaluate import content, document, sentences
from ansible.module_utils.scalebook.pages import catalogue, html, markdown, spreadsheet
from ansible.module_utils.scalebook.pages.wording import Wording
from test_evaluation import EXAMPLE, ROOT, WORKLOADS, option

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


class Page(HTMLParser):
    """The texts of a page, those of its tables apart."""

    def __init__(self, text):
        super().__init__()
        self.inside, self.cells, self.items = [], [], []
        self.policy = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if found.get("http-equiv"):
            self.policy = found["content"]
        if tag not in ("meta", "link", "input"):
            self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, text):
        if "td" in self.inside or "caption" in self.inside:
            self.cells.append(text)
        elif "ul" in self.inside:
            self.items.append(text)


def made(language):
    """A document with a ranking, an extrapolation, costs and options that are slower than one device."""
    wording = Wording(language)
    options = [
        {**option(name, rate * nodes * share, nodes=nodes, efficiency=share), "gpus": 1}
        for name, rate in (("tf2_bert", 321.7), ("torch_bert", 287.3))
        for nodes, share in ((1, 1.0), (2, 0.97), (4, 0.913), (8, 0.4))
    ]
    price = {
        "gpu": "H200",
        "per": "gpu hour",
        "amount": 31.7,
        "currency": "CNY",
        "source": "made",
        "date": "-",
    }
    given = {
        **EXAMPLE, "platform": "", "electricity": None, "texts": {},
        "criteria": {"efficiency": 80.0, "machines": 20, "utilisation": 80.0, "ahead": "tf2_bert"},
    }  # fmt: skip
    listed = [{**price, "years": None, "use": None}]
    data = document.document(given, [], options, listed, WORKLOADS, {})
    data["extrapolations"] = document.extrapolate.of_options(options, 20)
    return data, wording, content.blocks(data, wording)


def numbers(texts):
    return {number.rstrip(",") for text in texts for number in NUMBER.findall(text)}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_number_of_the_markdown_is_in_its_tables(language):
    data, wording, blocks = made(language)
    lines = markdown.document(data["title"], blocks, wording).splitlines()
    said = [line for line in lines if line.startswith("- ")]
    assert len(numbers(said)) > 15
    assert numbers(said) - numbers(line for line in lines if " | " in line or line.startswith("**")) == set()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_number_of_the_page_is_in_its_tables(language):
    data, wording, blocks = made(language)
    page = Page(html.document(data["title"], blocks, wording, str(ROOT / "templates")))
    said = [text for text in page.items if text.strip()]
    assert len(numbers(said)) > 15
    assert numbers(said) - numbers(page.cells) == set()


def test_the_page_loads_nothing():
    data, wording, blocks = made("zh")
    text = html.document(data["title"], blocks, wording, str(ROOT / "templates"))
    assert Page(text).policy.startswith("default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-")
    assert re.findall(r'(?:src|href)="(?!#)[^"]*"', text) == []


def test_tables_are_numbered_by_section():
    for language, caption in (
        ("en", "Table 3-1 BERT: Throughput (samples/s)"),
        ("zh", "表 3-1 BERT：吞吐率（样本/秒）"),
    ):
        data, wording, blocks = made(language)
        assert f"<caption>{caption}</caption>" in html.document("t", blocks, wording, str(ROOT / "templates"))


def test_the_workloads_of_a_family_are_on_one_chart():
    _, _, blocks = made("en")
    charts = {block.caption: block.svg for block in blocks if type(block).__name__ == "Chart"}
    ((caption, curves),) = charts.items()
    assert caption == "Figure 3-1 BERT, base, pretraining, sequence length = 128: Throughput"
    assert curves.count('class="legend"') == 3  # two workloads and the ideal line
    assert ">tf2_bert<" in curves and ">torch_bert<" in curves


def test_the_workbook_begins_with_all_results_unrounded_and_has_a_sheet_for_each_table():
    data, _, blocks = made("en")
    book = zipfile.ZipFile(io.BytesIO(spreadsheet.of_tables(data["title"], blocks)))
    names = re.findall(r'sheet name="([^"]*)"', book.read("xl/workbook.xml").decode())
    tables = [block for block in blocks if type(block).__name__ == "Table" and not block.only]
    assert names == ["All results", "0", *(" ".join(table.caption.split()[:2]) for table in tables)]
    assert f"<v>{321.7 * 4 * 0.913:.16g}</v>" in book.read("xl/worksheets/sheet1.xml").decode()


def test_the_conclusion_is_of_what_was_measured_where_something_was():
    data, _, _ = made("en")
    (family,) = data["families"]
    better = {**option("published", 1e6, runs=1, efficiency=1.0), "runs": 0}
    said = sentences.of_family({**family, "options": [*family["options"], better]})
    assert said == sentences.of_family(family)
    (first, *_) = sentences.of_family({**family, "options": [better]})
    assert catalogue.sentence(first).startswith("BERT, published: ")
