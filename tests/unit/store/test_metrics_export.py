# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The live export: what the report would say of the records so far, whole or not at all, never a failure."""

import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store import openmetrics
from ansible.module_utils.scalebook.store.load import load_campaign
from prometheus_client.parser import text_string_to_metric_families
from recordings import torch_bert
from report_records import campaign
from run_module import call_action


@pytest.fixture
def export(tmp_path):
    """Return a function that exports a campaign into `there` and returns the module's result."""
    (tmp_path / "there").mkdir()

    def run(top, directory=tmp_path / "there", **more):
        return call_action("metrics_export", path=str(top), directory=str(directory), **more)

    return run


def counted(path):
    families = text_string_to_metric_families(path.read_text())
    samples = [sample for family in families for sample in family.samples]
    return sum(each.value for each in samples if each.name == "scalebook_runs")


def test_after_each_run_the_file_has_the_runs_so_far(tmp_path, export):
    top = campaign(tmp_path / "night1", [torch_bert(64)])
    first = export(top)
    path = tmp_path / "there/scalebook_night1.prom"
    assert (first["file"], first["changed"], counted(path)) == (str(path), True, 1)
    later = campaign(tmp_path / "later" / "night1", [torch_bert(64), torch_bert(64, repeat=2)])
    assert export(later)["changed"] and counted(path) == 2
    assert not export(later)["changed"]


def test_the_export_is_the_metrics_of_the_report(tmp_path, export):
    top = campaign(tmp_path / "night1", [torch_bert(512)])
    export(top, min_utilisation=95)
    made = build_results(load_campaign(top), min_utilisation=95)
    assert (tmp_path / "there/scalebook_night1.prom").read_text() == openmetrics.text(made)


def test_nothing_else_is_left_in_the_directory_and_everybody_may_read_it(tmp_path, export):
    export(campaign(tmp_path / "night1", [torch_bert(64)]))
    [path] = (tmp_path / "there").iterdir()
    assert (path.name, path.stat().st_mode & 0o777) == ("scalebook_night1.prom", 0o644)


@pytest.mark.parametrize("what", ["no directory", "no campaign"])
def test_an_export_that_fails_is_a_warning(tmp_path, what):
    top = campaign(tmp_path / "night1", [torch_bert(64)])
    paths = {"no directory": (top, tmp_path / "gone"), "no campaign": (tmp_path / "gone", tmp_path)}[what]
    result = call_action("metrics_export", path=str(paths[0]), directory=str(paths[1]))
    assert result["file"] is None and "failed" not in result
    (warning,) = result["warnings"]
    assert "the metrics are not exported: " in warning and "gone" in warning


def test_a_check_writes_nothing(tmp_path, export):
    assert export(campaign(tmp_path / "night1", [torch_bert(64)]), check=True)["changed"]
    assert not list((tmp_path / "there").iterdir())
