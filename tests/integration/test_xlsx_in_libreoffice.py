# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""results.xlsx in LibreOffice: it opens without a warning, with every sheet and number."""

from __future__ import annotations

import csv
import subprocess

import chromium
import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.report import xlsx
from ansible.module_utils.scalebook.store.load import load_campaign

pytestmark = pytest.mark.slow

# Comma, quotes, UTF-8, from row 1, cell contents not as shown, all sheets.
FILTER = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"
# About LibreOffice's own installation, not about the file.
JAVA = "failed to launch javaldx"


def test_libreoffice_opens_every_sheet_without_a_warning(tmp_path):
    if chromium.missing(chromium.LIBREOFFICE):
        pytest.skip("LibreOffice is not installed and cannot be")
    top = chromium.ROOT / "docs" / "results" / "h200x4-2026-11-21" / "scaling"
    document = build_results(load_campaign(top))
    (tmp_path / xlsx.NAME).write_bytes(xlsx.workbook(document))
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    command = [
        "soffice",
        "--headless",
        profile,
        "--convert-to",
        FILTER,
        "--outdir",
        tmp_path,
        tmp_path / xlsx.NAME,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line.strip() and JAVA not in line]
    assert said == []
    sheets = {}
    for name in ("summary", "charts", "tables", "runs", "environment", "notes"):
        with (tmp_path / f"results-{name}.csv").open(newline="", encoding="utf-8") as file:
            sheets[name] = list(csv.DictReader(file))
    medians = [float(row["median"]) for row in sheets["tables"]]
    assert medians == pytest.approx([row["median"] for row in document["rows"]], rel=1e-12)
    assert len(sheets["runs"]) == document["counts"]["good"]
