# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.docx: the parts of the other forms, in the fonts of Chinese reports, as XML that is whole."""

import io
import re
import zipfile
from xml.etree import ElementTree

import pytest
from ansible.module_utils.scalebook.pages import docx, svg_paper
from ansible.module_utils.scalebook.pages.blocks import Code, Column, Heading, Paragraph, Table, meant_for
from ansible.module_utils.scalebook.pages.wording import Wording
from test_evaluation import EXAMPLE
from test_numbers import ROOT, made, numbers

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def parts(language, blocks=None):
    """The parts of a document by their names."""
    data, _, found = made(language)
    whole = docx.document(
        data["title"], blocks or found, Wording(language), str(ROOT / "templates"), "2026-11-26"
    )
    archive = zipfile.ZipFile(io.BytesIO(whole))
    return {name: archive.read(name) for name in archive.namelist()}


def paragraphs(root, style):
    return [
        "".join(text.text or "" for text in each.iter(f"{WORD}t"))
        for each in root.iter(f"{WORD}p")
        if any(found.get(f"{WORD}val") == style for found in each.iter(f"{WORD}pStyle"))
    ]


@pytest.fixture(scope="module", params=["en", "zh"])
def document(request):
    """The parts of a document, its body and its blocks."""
    found = parts(request.param)
    return found, ElementTree.fromstring(found["word/document.xml"]), made(request.param)[2]


def test_every_part_is_whole_xml(document):
    found, _, _ = document
    assert {"[Content_Types].xml", "_rels/.rels", "word/document.xml", "word/styles.xml"} <= set(found)
    for name, text in found.items():
        if not name.endswith(".png"):
            ElementTree.fromstring(text)


def test_headings_and_captions_are_those_of_the_blocks(document):
    _, body, blocks = document
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    said = [text for level in (1, 2, 3) for text in paragraphs(body, f"Heading{level}")]
    assert sorted(said) == sorted(headings)
    shown = [block for block in blocks if type(block).__name__ in ("Table", "Chart") and not block.only]
    captions = [block.caption for block in shown]
    assert paragraphs(body, "Caption") == captions


def test_every_cell_of_every_table_is_there(document):
    _, body, blocks = document
    found = ["".join(text.text or "" for text in cell.iter(f"{WORD}t")) for cell in body.iter(f"{WORD}tc")]
    assert len(found) == sum(
        len(meant_for("docx", table.columns)) * (len(table.rows) + 1)
        for table in blocks
        if isinstance(table, Table) and not table.only
    )
    heads = [
        column.head
        for table in blocks
        if isinstance(table, Table) and not table.only
        for column in meant_for("docx", table.columns)
    ]
    assert set(heads) <= set(found)


def test_the_widths_of_a_table_fill_the_page_and_leave_room_for_a_number():
    table = Table([Column("a", "text"), Column("b", "n", "rate")], [{"a": "word " * 40, "b": 12345.6}])
    root = ElementTree.fromstring(parts("en", [table])["word/document.xml"])
    text, number = [int(each.get(f"{WORD}w")) for each in root.iter(f"{WORD}gridCol")]
    assert text + number == pytest.approx(docx.TEXT_WIDTH, abs=2)
    assert docx.LETTER * len("12,346") < number < text


def test_the_cover_has_title_and_day_and_the_contents_every_heading(document):
    _, body, blocks = document
    assert paragraphs(body, "Subtitle")[0] == "2026-11-26"
    headings = [block.text for block in blocks if isinstance(block, Heading) and block.level <= docx.CONTENTS]
    assert sorted(paragraphs(body, "TOC1") + paragraphs(body, "TOC2")) == sorted(headings)
    marks = {each.get(f"{WORD}name") for each in body.iter(f"{WORD}bookmarkStart")}
    assert {each.get(f"{WORD}anchor") for each in body.iter(f"{WORD}hyperlink")} <= marks


def test_the_properties_have_title_author_and_day():
    text = parts("en")["docProps/core.xml"].decode()
    assert [word for word in (EXAMPLE["title"], "scalebook", ">2026-11-26<") if word not in text] == []


def test_a_number_of_the_text_is_in_its_tables(document):
    _, body, _ = document
    said = paragraphs(body, "ListBullet")
    cells = [text.text or "" for cell in body.iter(f"{WORD}tc") for text in cell.iter(f"{WORD}t")]
    assert len(numbers(said)) > 15
    assert numbers(said) - numbers([*cells, *paragraphs(body, "Caption")]) == set()


def test_every_chart_is_a_picture_of_its_own(document):
    found, body, blocks = document
    charts = [block for block in blocks if type(block).__name__ == "Chart"]
    vectors = [name for name in found if name.startswith("word/media/") and name.endswith(".svg")]
    assert len(vectors) == len(charts) == len(list(body.iter(f"{WORD}drawing"))) > 0


def test_a_picture_stands_beside_the_vectors_of_a_chart(document):
    pytest.importorskip("resvg_py")
    found, _, _ = document
    assert [name for name in found if name.endswith(".png")] == ["word/media/chart1.png"]
    assert found["word/media/chart1.png"].startswith(b"\x89PNG")


def test_a_chart_on_paper_needs_no_style_sheet():
    (text, wide, tall) = svg_paper.for_paper(
        next(b.svg for b in made("zh")[2] if type(b).__name__ == "Chart")
    )
    assert (wide, tall) == (350, pytest.approx(320, abs=60))
    assert not re.search(r"class=|var\(|<style", text)
    assert 'stroke="#1b64a5"' in text and 'stroke-dasharray="9 3"' in text


def test_chinese_letters_have_chinese_fonts():
    styles = parts("zh")["word/styles.xml"].decode()
    assert 'w:eastAsia="SimSun"' in styles and 'w:eastAsia="SimHei"' in styles
    assert "<w:b/>" in styles and "&lt;" not in styles
    assert 'w:firstLineChars="200"' in styles
    assert "firstLineChars" not in parts("en")["word/styles.xml"].decode()


def test_text_of_logs_cannot_break_the_document():
    wild = '<w:p> & "\x00\x1b[31m\ufffe'
    body = parts(
        "en",
        [
            Paragraph(wild),
            Code("log", "one\ntwo"),
            Table([Column("0", wild)], [{"0": wild}], caption="Table 1-1 t"),
        ],
    )
    root = ElementTree.fromstring(body["word/document.xml"])
    assert paragraphs(root, "BodyText") == ['<w:p> & "  [31m ']
    assert len(list(root.iter(f"{WORD}br"))) == 1


def test_the_same_blocks_make_the_same_bytes():
    assert parts("en") == parts("en")
