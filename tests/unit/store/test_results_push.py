# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Results -> runs of MLflow and W&B, by clients that only keep what they get.

tests/integration/test_wandb.py has the real wandb.
"""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import results_push
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store import tracking
from ansible.module_utils.scalebook.store.load import load_campaign
from ansible.module_utils.scalebook.store.push import TAG
from recordings import torch_bert
from report_records import campaign, case, record
from run_module import call_module


@pytest.fixture
def made(tmp_path):
    records = [torch_bert(64), record(case(1, 2), 1, None)]
    return build_results(load_campaign(campaign(tmp_path / "night1", records)))


@pytest.fixture
def report(tmp_path, made):
    folder = tmp_path / "report"
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps(made))
    return folder


class Mlflow:
    """What the module uses of mlflow."""

    entities = SimpleNamespace(Param=lambda *values: values, Metric=lambda *values: values)

    def __init__(self):
        self.experiments, self.runs = [], []

    def MlflowClient(self, tracking_uri):
        self.uri = tracking_uri
        return self

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id="7") if name in self.experiments else None

    def create_experiment(self, name):
        self.experiments.append(name)
        return "7"

    def search_runs(self, experiments, query):
        return [run for run in self.runs if run["tags"][TAG] in query and "ended" in run]

    def create_run(self, experiment, run_name, tags):
        self.runs.append({"name": run_name, "tags": tags, "files": []})
        return SimpleNamespace(info=SimpleNamespace(run_id=len(self.runs) - 1, start_time=5))

    def log_batch(self, run, metrics, params):
        self.runs[run].update(metrics={name: value for name, value, *_ in metrics}, params=dict(params))

    def log_artifact(self, run, path):
        self.runs[run]["files"].append(Path(path).name)

    def set_terminated(self, run):
        self.runs[run]["ended"] = True


class Wandb:
    """What the module uses of wandb; it makes the directory of an offline run."""

    def __init__(self):
        self.runs = []

    def init(self, **options):
        folder = Path(options["dir"], "wandb", f"offline-run-20261124_220043-{options['id']}")
        folder.mkdir(parents=True)
        run = {**options, "files": []}
        self.runs.append(run)
        return SimpleNamespace(
            dir=str(folder),
            log=lambda metrics: run.update(metrics=metrics),
            save=lambda path, **_: run["files"].append(Path(path).name),
            finish=lambda: run.update(ended=True),
        )


@pytest.fixture
def push(report, tmp_path):
    def run(tracker, target=str(tmp_path / "there"), **more):
        return call_module(results_push, report=str(report), tracker=tracker, target=target, **more)

    return run


def test_a_case_that_has_results_is_a_run_with_its_parameters_and_metrics(made):
    [run] = tracking.runs(made)
    assert run.name == made["rows"][1]["case"]
    assert {name: run.params[name] for name in ("workload", "dtype", "bsz", "nodes")} == {
        "workload": "torch_bert", "dtype": "bf16", "bsz": 64, "nodes": 1,
    }  # fmt: skip
    assert run.metrics["throughput_samples_per_second/median"] == made["rows"][1]["median"]
    assert run.metrics["gpu_sm_active_ratio/mean"] == pytest.approx(0.4376, abs=1e-4)
    assert run.metrics["bottleneck_cause/launch-bound/1"] == 1
    assert run.metrics["runs/ok"] == 1


def test_the_names_of_metrics_are_those_that_mlflow_allows(made):
    assert all(re.fullmatch(r"[\w. /-]+", name, re.ASCII) for name in tracking.runs(made)[0].metrics)


def test_other_results_have_another_id(made):
    changed = json.loads(json.dumps(made))
    changed["rows"][1]["median"] += 1
    assert tracking.runs(made)[0].id == tracking.runs(json.loads(json.dumps(made)))[0].id
    assert tracking.runs(made)[0].id != tracking.runs(changed)[0].id


@pytest.mark.parametrize(("tracker", "client"), [("mlflow", Mlflow), ("wandb", Wandb)])
def test_results_are_pushed_once(push, monkeypatch, made, tracker, client):
    fake = client()
    monkeypatch.setitem(sys.modules, tracker, fake)
    assert {"changed": True, "runs": 1, "pushed": 1}.items() <= push(tracker).items()
    assert {"changed": False, "runs": 1, "pushed": 0}.items() <= push(tracker).items()
    [run] = fake.runs
    assert run["ended"] and run["files"] == ["results.json"]
    assert run["metrics"] == tracking.runs(made)[0].metrics


def test_a_check_pushes_nothing(push, monkeypatch):
    fake = Mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    assert push("mlflow", check=True)["pushed"] == 0
    assert fake.runs == []


@pytest.mark.parametrize(
    ("given", "uri"), [("https://a.example/x", "https://a.example/x"), ("/a b", "file:///a%20b")]
)
def test_a_directory_of_mlflow_is_a_file_uri(push, monkeypatch, given, uri):
    fake = Mlflow()
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    push("mlflow", given)
    assert fake.uri == uri


@pytest.mark.parametrize(("tracker", "package"), [("mlflow", "mlflow-skinny"), ("wandb", "wandb")])
def test_a_client_that_is_missing_is_named_with_the_command_that_installs_it(
    push, monkeypatch, tracker, package
):
    monkeypatch.setitem(sys.modules, tracker, None)
    message = push(tracker)["msg"]
    assert f"push={tracker} needs {package}" in message
    assert message.endswith(f"run {sys.executable} -m pip install {package}")


def test_wandb_takes_no_uri(push):
    assert "must be a directory" in push("wandb", "https://api.wandb.ai")["msg"]
