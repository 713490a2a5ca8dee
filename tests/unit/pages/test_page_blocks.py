# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Blocks are rendered in each form: what is for another form is left out, and values are nothing but text."""

import re
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.pages import cells, html, html_page, markdown, terminal
from ansible.module_utils.scalebook.pages.blocks import (
    Charts,
    Column,
    Download,
    Figure,
    Fold,
    Heading,
    Item,
    Items,
    Paragraph,
    Settings,
    Table,
    Tag,
)
from ansible.module_utils.scalebook.pages.wording import ENGLISH, Wording

TEMPLATES = str(Path(__file__).parents[3] / "templates")
PEOPLE = Wording(for_people=True)
CHINESE = Wording("zh")
TABLE = Table(
    [
        Column("label", "case", soft="group"),
        Column("group", "group", only="md"),
        Column("rate", "images/s", "rate", "INCOMPLETE", look="main"),
        Column("share", "share", "percent", only="html txt"),
    ],
    [
        {"label": "1n1g", "group": "fp16", "rate": 1234.567, "share": 0.5, "late": False},
        {"label": "1n2g", "group": "", "rate": None, "share": None, "late": True},
    ],
    "Results",
    quiet="late",
)


def page(*blocks, wording=ENGLISH):
    """The sections of a page without its frame."""
    shown = html.for_template([Heading(2, "top", "top"), *blocks], wording)
    text = "{% import 'blocks.html.j2' as b with context %}{{ b.document() }}"
    return html_page.environment_of(TEMPLATES, True).from_string(text).render(shown, _=wording)


def test_a_table_in_markdown_has_the_columns_of_markdown_and_all_digits():
    assert markdown.rendered([TABLE]).splitlines() == [
        "case | group | images/s",
        ":--- | :--- | ---:",
        "1n1g | fp16 | 1234.57",
        "1n2g |  | INCOMPLETE",
    ]


def test_a_table_on_a_page_has_its_own_columns_and_numbers_for_people():
    rows = re.findall(r"<tr.*</tr>", page(TABLE, wording=PEOPLE))
    assert rows[1] == (
        '<tr><td class="l">1n1g <span class="soft">fp16</span></td><td class="main">1,235</td>'
        "<td>50.0 %</td></tr>"
    )
    assert rows[2].startswith('<tr class="quiet"><td class="l">1n2g</td>')


def test_a_table_on_the_terminal_is_aligned_below_its_title():
    assert terminal.table("Results", TABLE, ["a flag"]).splitlines() == [
        "Results",
        "case |   images/s |  share",
        "-----|------------|-------",
        "1n1g |    1234.57 | 50.0 %",
        "1n2g | INCOMPLETE |    n/a",
        "  a flag",
    ]


def test_columns_below_a_common_heading_are_named_in_a_second_row():
    table = Table([Column("a", "case"), Column("b", "speedup", "speedup", over="torch")], [])
    first, second = re.findall(r"<tr>.*</tr>", page(table))
    assert 'rowspan="2">case</th><th scope="colgroup" colspan="1">torch</th>' in first
    assert second == '<tr><th scope="col">speedup</th></tr>'


def test_a_section_begins_with_a_heading_of_level_2_and_is_in_the_contents():
    blocks = [Heading(2, "one", "first"), Heading(3, "below"), Heading(2, "two")]
    shown = html.for_template(blocks, ENGLISH)
    assert shown["contents"] == [("first", "one"), ("section-2", "two")]
    assert [len(section) for section in shown["sections"]] == [2, 1]


def test_what_stands_before_the_first_section_is_shown():
    shown = html.for_template([Paragraph("lead"), Heading(2, "one")], ENGLISH)
    assert [len(section) for section in shown["sections"]] == [1, 1]


def test_blocks_for_another_form_are_left_out():
    blocks = [Paragraph("shown"), Paragraph("hidden", only="html"), Charts([], only="html")]
    assert markdown.rendered(blocks) == "shown"


WILD = "<b>*x*|[y]</b>"
EVERYWHERE = [
    Heading(3, WILD, detail=WILD),
    Paragraph(WILD, lead=WILD),
    Items([WILD, Item(WILD, WILD, WILD)]),
    Settings([(WILD, WILD)]),
    Table([Column("x", WILD, soft="x", hint="x")], [{"x": WILD}], WILD),
    Fold(WILD, [Paragraph(WILD)]),
]


def test_no_value_is_markup_in_markdown():
    text = markdown.document(WILD, EVERYWHERE)
    assert "<b>" not in text
    assert re.findall(r"(?<!\\)\*x|(?<!\\)\[y", text) == []


def test_no_value_is_markup_on_a_page():
    assert "<b>" not in page(*EVERYWHERE)


def test_a_flag_is_a_link_to_what_is_said_of_it():
    table = Table([Column("flags", "flags", "tags")], [{"flags": [Tag("late", "slow", "#g1-1"), Tag("odd")]}])
    assert '<a class="flag slow" href="#g1-1">late</a><span class="flag">odd</span>' in page(table)
    assert markdown.rendered([table]).endswith("\nlate, odd")


def test_one_of_several_pictures_is_named_and_a_single_one_is_shown():
    assert markdown.rendered([Charts([{"name": "speedup_1"}, {"name": "speedup"}])]) == (
        "- speedup_1.svg\n![speedup](speedup.svg)"
    )


def test_the_colon_of_an_item_is_that_of_the_language():
    assert markdown.rendered([Items([Item("text", "1n1g", "fp16")])], CHINESE) == "- 1n1g（fp16）：text"


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("rate", 0.00487, "0.0049"),
        ("rates", [6628.484, 6656.13], "6628.48 – 6656.13"),
        ("speedup", 3.8441, "3.84"),
        ("change", 0.98765, "0.988"),
        ("margin", 0.012, "± 1.2 %"),
        ("seconds", 0.0385, "38.5"),
        ("usage", 0.04, "0.04"),
        ("usage", 19.006, "19.01"),
        ("count", 0, "0"),
        ("figure", Figure(0.5, "50 %"), "50 %"),
        ("rate", "as it is", "as it is"),
        ("rate", None, "n/a"),
    ],
)
def test_a_value_is_said_by_the_kind_of_its_column(kind, value, text):
    assert cells.text_of({"x": value}, Column("x", "x", kind), ENGLISH) == text


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        ("usage", [0.0, 0.991, 21.34], ["0.00", "0.99", "21.34"]),
        ("digits", [461, 467.4], ["461.0", "467.4"]),
        ("digits", [9, 1234], ["9", "1,234"]),
        ("giga", [2481e9, 78.4e9], ["2,481", "78"]),
        ("digits", ["fp16", 2.5], ["fp16", "2.500"]),
    ],
)
def test_the_numbers_of_a_column_have_as_many_decimals(kind, values, texts):
    table = Table([Column("x", "x", kind)], [{"x": value} for value in values])
    [column] = cells.columns_of(table, "html", PEOPLE)
    assert [cells.text_of(row, column, PEOPLE) for row in table.rows] == texts


def test_the_terminal_shows_ten_lines_of_a_section_and_counts_the_rest():
    [text] = terminal.some("Notes", [f"note {number}" for number in range(12)], "do this")
    assert text.splitlines()[-2:] == ["  … and 2 more, all in the report", "  do this"]


def test_the_terminal_says_in_chinese_how_many_lines_are_left_out():
    [text] = terminal.some("说明", ["一"] * 12, wording=CHINESE)
    assert (text.splitlines()[0], text.splitlines()[-1]) == ("说明：", "  ……另有 2 项，均在报告中")


def test_a_chinese_character_takes_two_columns_of_a_terminal():
    assert terminal.aligned([["用例", "x"], ["1n1g4", "20"]]) == [" 用例   x", "1n1g4  20"]


def test_flags_links_and_text_may_follow_a_paragraph_on_a_page():
    parts = [Tag("late", "slow"), " of ", Item("all", href="#all"), Item("good")]
    text = page(Paragraph("Runs: ", "verdict", parts=parts))
    assert '<p class="verdict">Runs: <span class="flag slow">late</span> of <a href="#all">all</a>' in text
    assert '<strong class="good">good</strong></p>' in text
    assert markdown.rendered([Paragraph("Runs", parts=parts)]) == "Runs"


def test_a_row_can_be_found_by_a_script_and_its_name_can_be_a_link():
    table = Table([Column("name", href="to")], [{"name": "a|b", "to": "a/b", "kind": "x"}], filters=["kind"])
    assert '<tr data-kind="x"><td class="l"><a href="a/b">a|b</a></td></tr>' in page(table)


def test_the_figures_of_a_row_are_said_as_published_tables_say_them():
    column = Column("rates", kind="published")
    assert cells.text_of({"rates": [116.2, 1.26, 0.2021, None]}, column, ENGLISH) == "116 / 1.3 / 0.202 / –"


def test_a_page_carries_files_and_other_forms_do_not():
    block = Download("evening", {"csv": 'a,"b#"\n1,2 %\n', "json": "{}"})
    text = page(block)
    assert 'download="evening.csv" href="data:text/csv;charset=utf-8,a,%22b%23%22%0A1,2%20%25%0A"' in text
    assert 'download="evening.json" href="data:application/json;charset=utf-8,{}"' in text
    assert markdown.rendered([block]) == ""


def test_a_file_that_a_page_carries_may_hold_the_lone_surrogates_of_a_name():
    assert "charset=utf-8,host-%5Cud800" in page(Download("evening", {"csv": "host-\ud800"}))


def test_no_title_ends_the_style_of_its_page():
    assert html_page.css_text('a_1 "}</style>\n') == "a_1 \\22 \\7d \\3c \\2f style\\3e \\a "
