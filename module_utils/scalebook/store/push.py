# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A report -> runs of MLflow or Weights & Biases."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.contracts import Results
from ansible.module_utils.scalebook.json_file import decode
from ansible.module_utils.scalebook.secrets import without_secrets
from ansible.module_utils.scalebook.store import tracking

PACKAGES = {"mlflow": "mlflow-skinny", "wandb": "wandb"}
TAG = "scalebook.id"

# Neither of them is to tell its makers anything, or to record this machine: the runs were made on others.
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "WANDB_CONSOLE": "off",
    "WANDB_ERROR_REPORTING": "false",
    "WANDB_DISABLE_GIT": "true",
    "WANDB_HOST": "not recorded",
    "WANDB_X_DISABLE_MACHINE_INFO": "true",
    "WANDB_X_DISABLE_META": "true",
    "WANDB_X_DISABLE_STATS": "true",
    "WANDB_X_SAVE_REQUIREMENTS": "false",
    "WANDB_SILENT": "true",
}


class PushError(ValueError):
    """Results that could not be pushed; the message says why."""


def load_client(tracker: str) -> Any:
    """Import the client library, or raise PushError with what to install."""
    os.environ.update(QUIET)
    try:
        return importlib.import_module(tracker)
    except ImportError as exc:
        raise PushError(
            f"push={tracker} needs {PACKAGES[tracker]} in the Python of the control node: {exc}; "
            f"run {sys.executable} -m pip install {PACKAGES[tracker]}"
        ) from exc


def push_mlflow(
    mlflow: Any, target: str, campaign: str, runs: Sequence[tracking.Tracked], files: Sequence[Path]
) -> int:
    """Push the runs that the tracking server does not have yet, and return how many."""
    uri = target if "://" in target else Path(target).resolve().as_uri()
    if uri.startswith("file:"):
        # MLflow 3 wants a database there; its client alone, mlflow-skinny, has none.
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(campaign)
    there = experiment.experiment_id if experiment else client.create_experiment(campaign)
    pushed = 0
    for run in runs:
        if client.search_runs([there], f"tags.`{TAG}` = '{run.id}' and attributes.status = 'FINISHED'"):
            continue
        run_info = client.create_run(there, run_name=run.name, tags={TAG: run.id}).info
        params = [mlflow.entities.Param(name, str(value)) for name, value in run.params.items()]
        metrics = [
            mlflow.entities.Metric(name, value, run_info.start_time, 0) for name, value in run.metrics.items()
        ]
        client.log_batch(run_info.run_id, metrics=metrics, params=params)
        for path in files:
            client.log_artifact(run_info.run_id, str(path))
        client.set_terminated(run_info.run_id)
        pushed += 1
    return pushed


def push_wandb(
    wandb: Any, target: str, campaign: str, runs: Sequence[tracking.Tracked], files: Sequence[Path]
) -> int:
    """Write the offline runs that are not in the directory yet, and return how many."""
    top = Path(target).resolve()
    top.mkdir(parents=True, exist_ok=True)
    pushed = 0
    for run in runs:
        if list(top.glob(f"wandb/offline-run-*-{run.id}")):
            continue
        wandb_run = wandb.init(
            project="scalebook", group=campaign, name=run.name, id=run.id, config=run.params,
            dir=str(top), mode="offline",
        )  # fmt: skip
        wandb_run.log(run.metrics)
        for path in files:
            # Of a file elsewhere it would keep a link, and upload what that has become.
            copied = shutil.copy(path, wandb_run.dir)
            wandb_run.save(copied, base_path=wandb_run.dir, policy="now")
        wandb_run.finish()
        pushed += 1
    return pushed


def push(report: Path, tracker: str, target: str, write: bool) -> dict[str, Any]:
    """Push a report and return how many runs were pushed; raise PushError."""
    try:
        return _push(report, tracker, target, write)
    except Exception as exc:  # the clients have errors of their own
        raise PushError(without_secrets(str(exc))) from exc


def _push(report: Path, tracker: str, target: str, write: bool) -> dict[str, Any]:
    """Do what push does, or raise an error of the client."""
    if tracker == "wandb" and "://" in target:
        raise PushError(
            f"push_to={without_secrets(target)}: with push=wandb it must be a directory; "
            "wandb sync takes it from there"
        )
    if not (report / "results.json").is_file():
        raise PushError(
            f"{report} has no results.json. Fix: ansible-playbook report.yml -e campaign_dir={report.parent}"
        )
    document: Results = decode((report / "results.json").read_bytes())  # type: ignore[assignment]
    runs = tracking.runs(document)
    files = [report / name for name in tracking.ARTIFACTS if (report / name).is_file()]
    client = load_client(tracker)
    pushed = 0
    if write:
        push_run = {"mlflow": push_mlflow, "wandb": push_wandb}[tracker]
        pushed = push_run(client, target, document["campaign"], runs, files)
    return {"changed": bool(pushed), "runs": len(runs), "pushed": pushed}
