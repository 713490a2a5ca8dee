# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""evaluation.docx in LibreOffice: the first section stands alone on two pages, the contents name pages."""

from __future__ import annotations

import re
import subprocess

import chromium
import evaluation
import pytest
import yaml
from ansible.module_utils.scalebook.workloads import load_workloads
from run_module import call_module

pytestmark = pytest.mark.slow

ROOT = chromium.ROOT
MEASURED = sorted((ROOT / "docs" / "results").glob("evaluation-*/??.yml"))


@pytest.fixture(scope="module", params=MEASURED, ids=lambda path: "-".join(path.parts[-2:]))
def pages(request, tmp_path_factory):
    """Return the text of each page of a measured evaluation, the cover first."""
    if chromium.missing({**chromium.LIBREOFFICE, "pdftotext": "poppler-utils"}):
        pytest.skip("LibreOffice is not installed and cannot be")
    folder = tmp_path_factory.mktemp("evaluation")
    call_module(
        evaluation,
        evaluation={**yaml.safe_load(request.param.read_text())["evaluation"], "out": str(folder)},
        here=str(ROOT),
        templates=str(ROOT / "templates"),
        data=str(ROOT / "data"),
        workloads={name: each.as_data() for name, each in load_workloads([str(ROOT / "roles")]).items()},
    )
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = ["soffice", "--headless", profile, "--convert-to", "pdf", "--outdir", folder]
    subprocess.run([*command, folder / "evaluation.docx"], check=True, capture_output=True, timeout=180)
    command = ["pdftotext", "-layout", folder / "evaluation.pdf", "-"]
    text = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    return text.rstrip("\f").split("\f")


def page_of(pages, heading):
    """Return the number of the page with a heading, after cover and contents."""
    return next(number for number, text in enumerate(pages, 1) if number > 2 and re.search(heading, text))


def test_the_first_section_is_two_pages_long(pages):
    assert page_of(pages, r"(?m)^1 \w") == 3
    assert len(pages) <= 30
    # A heading that begins the next page has two full ones before it.
    number = page_of(pages, r"(?m)^2 \w")
    assert number == 4 or (number == 5 and pages[4].startswith("2 "))


def test_the_contents_have_the_numbers_of_the_pages(pages):
    entries = re.findall(r"(?m)^ *([\d.]+ .+?)\.{3,} ?(\d+)$", pages[1])
    assert len(entries) > 10
    assert {text: int(number) for text, number in entries} == {
        text: page_of(pages, rf"(?m)^ *{re.escape(text)}\s*$") for text, _ in entries
    }
