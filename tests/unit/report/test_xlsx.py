# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""results.xlsx as openpyxl reads it: its sheets, its numbers, and no formula from a log."""

import io
from pathlib import Path

import openpyxl
import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.pages import spreadsheet
from ansible.module_utils.scalebook.report import xlsx
from ansible.module_utils.scalebook.store.load import load_campaign
from report_records import campaign, case, dlperf_records, record

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results"
REAL = RESULTS / "h200x4-2026-11-22" / "fsdp"


def sheets(document):
    return openpyxl.load_workbook(io.BytesIO(xlsx.workbook(document)))


def rows(sheet):
    head, *lines = sheet.iter_rows(values_only=True)
    return [dict(zip(head, line, strict=True)) for line in lines]


@pytest.fixture(scope="module")
def real():
    return build_results(load_campaign(REAL))


@pytest.fixture(scope="module")
def book(real):
    return sheets(real)


def test_there_are_a_summary_charts_tables_runs_environment_and_notes(book):
    assert book.sheetnames == ["summary", "charts", "tables", "runs", "environment", "notes"]


def test_the_summary_has_twelve_columns_for_people(real, book):
    lines = rows(book["summary"])
    assert list(lines[0]) == [
        *("workload", "what differs", "case", "GPUs", "samples/s per GPU", "samples/s", "efficiency"),
        *("MFU", "J per sample", "spread", "runs", "trust"),
    ]
    assert [line["samples/s"] for line in lines] == pytest.approx([row["median"] for row in real["rows"]])
    assert {line["trust"] for line in lines} == {"sound"}


def test_the_rates_of_each_unit_and_the_efficiency_are_drawn(book):
    bars, lines = book["charts"]._charts
    assert (type(bars).__name__, type(lines).__name__) == ("BarChart", "ScatterChart")
    assert bars.ser[0].val.numRef.f == f"charts!$C$2:$C${book['charts'].max_row}"


def test_a_row_with_a_flag_says_how_far_to_trust_it(tmp_path):
    top = campaign(tmp_path, [record(case(), 1)])
    [line] = rows(sheets(build_results(load_campaign(top)))["summary"])
    assert line["trust"] == "use with care: provisional"


def test_a_sheet_that_is_readable_on_one_page_is_fitted_to_its_width(book):
    fitted = [sheet.title for sheet in book if sheet.sheet_properties.pageSetUpPr.fitToPage]
    assert "summary" in fitted
    assert "tables" not in fitted


def test_the_tables_have_every_row_with_its_digits(real, book):
    medians = [row["median"] for row in real["rows"]]
    assert [row["median"] for row in rows(book["tables"])] == pytest.approx(medians, rel=1e-15)


def test_the_runs_have_the_rate_of_every_valid_run(real, book):
    rates = [run["rate"] for row in real["rows"] for run in row["runs"]]
    assert [row["rate"] for row in rows(book["runs"]) if row["status"] == "ok"] == pytest.approx(
        rates, rel=1e-15
    )


def test_a_run_that_does_not_count_has_its_reason_and_no_rate(tmp_path):
    top = campaign(tmp_path, [record(case(), 1), record(case(), 2, rate=None)])
    found = rows(sheets(build_results(load_campaign(top)))["runs"])
    assert [(row["status"], row["rate"] is None) for row in found] == [("ok", False), ("incomplete", True)]
    assert found[1]["reason"] == "NODE1.log stops at step 60, step 120 is required"


def test_the_header_stays_in_view_and_can_filter(book):
    assert {sheet.freeze_panes for sheet in book} == {"A2"}
    assert all(sheet.auto_filter.ref for sheet in book)


def test_shares_are_shown_as_per_cent_and_rates_with_thousands(book):
    formats = {}
    for head, cell in zip(book["tables"][1], book["tables"][2], strict=True):
        formats[head.value] = cell.number_format
    assert (formats["spread"], formats["median"], formats["devices"]) == ("0.0%", "#,##0.00", "#,##0")


def test_columns_are_as_wide_as_their_text_up_to_a_limit(book):
    widths = [dimension.width for sheet in book for dimension in sheet.column_dimensions.values()]
    assert min(widths) > 6
    assert 40 < max(widths) <= spreadsheet.WIDEST + 1


@pytest.mark.parametrize("text", ["=1+1", "+1", "@SUM(A1)", "http://example.org/", "\x1b[31m", "\ud800"])
def test_text_of_a_log_stays_text(tmp_path, text):
    top = campaign(tmp_path, [record(case(), notes=[text])])
    cells = [cell for row in sheets(build_results(load_campaign(top)))["runs"].iter_rows() for cell in row]
    assert not [cell for cell in cells if cell.data_type == "f" or cell.hyperlink]


def test_the_same_records_make_the_same_bytes(tmp_path):
    document = build_results(load_campaign(campaign(tmp_path, dlperf_records())))
    assert xlsx.workbook(document) == xlsx.workbook(document)


def test_a_campaign_without_rows_has_all_sheets(tmp_path):
    (tmp_path / "runs").mkdir()
    assert len(sheets(build_results(load_campaign(tmp_path))).sheetnames) == 6


@pytest.mark.parametrize(("number", "kind"), [(2**53 - 1, int), (10**400, str)])
def test_a_whole_number_that_a_cell_cannot_hold_is_text(real, number, kind):
    document = {**real, "rows": [{**row, "bsz": number} for row in real["rows"]]}
    assert {row["bsz"] for row in rows(sheets(document)["tables"])} == {kind(number)}
