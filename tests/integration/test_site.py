# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The site of the documents: its search finds the page that answers, its reports are whole."""

import os
import subprocess
import sys
from pathlib import Path

import chromium
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "MFU": "glossary.html",
    "scattered": "reference/report.html#flags",
    "efficiency": "explanation/report.html",
    "window": "explanation/window.html",
    "repeats": "explanation/repeats.html",
    "bsz": "reference/parameters.html",
    "baseline": "how-to/compare.html",
    "spreadsheet": "how-to/share-reports.html",
    "uninstall": "how-to/uninstall.html",
    "update": "how-to/update.html",
    "InfiniBand": "how-to/networks.html",
    "own data": "how-to/own-data.html",
    "existing logs": "how-to/read-logs.html",
    "nodes without internet": "how-to/offline.html",
    "add a workload": "how-to/add-a-workload.html",
    "how long does a campaign take": "how-to/time.html",
    "which of two reports is better": "how-to/compare.html",
    "NCCL guide Horovod": "explanation/software.html",
    "what rate to expect of an H100": "faq.html",
    "Slurm": "how-to/slurm.html",
    "two GPUs slower than one": "faq.html",
    "Permission denied": "troubleshooting.html",
    "Host key verification failed": "troubleshooting.html",
    "unreachable": "troubleshooting.html",
    "sudo password": "troubleshooting.html",
    "out of memory": "troubleshooting.html",
}
"""What somebody types -> the beginning of the address of the page that answers it."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as scripts/test builds it, elsewhere."""
    place = tmp_path_factory.mktemp("site")
    mkdocs = Path(sys.executable).parent / "mkdocs"
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [mkdocs, "build", "--strict", "--site-dir", place]
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return place


@pytest.fixture(scope="module")
def hits(site):
    """The first hit of each question of PAGES."""
    assert chromium.missing({"node": "nodejs"}) == []
    command = ["node", ROOT / "tests/browser/search.js", site, *PAGES]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(zip(PAGES, printed.splitlines(), strict=True))


@pytest.mark.parametrize("question", PAGES)
def test_the_first_hit_of_a_question_is_the_page_that_answers_it(hits, question):
    assert hits[question].startswith(PAGES[question])


def test_the_gallery_leads_to_whole_reports(site):
    reports = list(site.glob("results/*/*/report/report.html"))
    assert len(reports) >= 3
    assert [
        report
        for report in reports
        if str(report.relative_to(site)) not in (site / "gallery.html").read_text()
    ] == []
