# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.docx: the parts of the other forms, in the fonts of Chinese reports, as XML that is whole."""

import io
import re
import zipfile
from xml.etree import ElementTree

import pytest
from ansible.module_utils.scalebook.pages import cells, docx, svg_paper
from ansible.module_utils.scalebook.pages.blocks import Code, Column, Heading, Paragraph, Table
from ansible.module_utils.scalebook.pages.wording import ENGLISH
from test_numbers import ROOT, made, numbers

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"


def parts(language, blocks=None):
    """The parts of a document by their names."""
    data, _, found = made(language)
    whole = docx.document(data["title"], blocks or found, language, str(ROOT / "templates"))
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
    for text in found.values():
        ElementTree.fromstring(text)


def test_headings_and_captions_are_those_of_the_blocks(document):
    _, body, blocks = document
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    said = [text for level in (1, 2, 3) for text in paragraphs(body, f"Heading{level}")]
    assert sorted(said) == sorted(headings)
    captions = [block.caption for block in blocks if type(block).__name__ in ("Table", "Chart")]
    assert paragraphs(body, "Caption") == captions


def test_every_cell_of_every_table_is_there(document):
    _, body, blocks = document
    found = ["".join(text.text or "" for text in cell.iter(f"{WORD}t")) for cell in body.iter(f"{WORD}tc")]
    expected = []
    for table in (block for block in blocks if isinstance(block, Table)):
        expected += [column.head for column in table.columns]
        expected += [cells.said(row, column, ENGLISH) for row in table.rows for column in table.columns]
    assert found == expected


def test_a_number_of_the_text_is_in_its_tables(document):
    _, body, _ = document
    said = paragraphs(body, "ListBullet")
    cells = [text.text or "" for cell in body.iter(f"{WORD}tc") for text in cell.iter(f"{WORD}t")]
    assert len(numbers(said)) > 15
    assert numbers(said) - numbers([*cells, *paragraphs(body, "Caption")]) == set()


def test_every_chart_is_a_picture_of_its_own(document):
    found, body, blocks = document
    charts = [block for block in blocks if type(block).__name__ == "Chart"]
    pictures = [name for name in found if name.startswith("word/media/")]
    assert len(pictures) == len(charts) == len(list(body.iter(f"{WORD}drawing"))) > 0


def test_a_chart_on_paper_needs_no_style_sheet():
    (text, wide, tall) = svg_paper.for_paper(
        next(b.svg for b in made("zh")[2] if type(b).__name__ == "Chart")
    )
    assert (wide, tall) == (420, pytest.approx(340, abs=60))
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
        [Paragraph(wild), Code("log", "one\ntwo"), Table("Table 1-1 t", [Column("0", wild)], [{"0": wild}])],
    )
    root = ElementTree.fromstring(body["word/document.xml"])
    assert paragraphs(root, "BodyText") == ['<w:p> & "  [31m ']
    assert len(list(root.iter(f"{WORD}br"))) == 1


def test_the_same_blocks_make_the_same_bytes():
    assert parts("en") == parts("en")
