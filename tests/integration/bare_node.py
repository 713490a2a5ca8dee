# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A bare host, and on it every workload that frameworks.py does not install, by Molecule's scenario.

To download the locked packages and to compile Horovod takes minutes: the host keeps them in a folder of this
machine. Everything else of a role is done on a host that has never seen it. Sources that are on GitHub only
have stand-ins, so of those no trainer is started.
"""

import json
import shutil
from pathlib import Path

import frameworks
import repositories
from container_nodes import ROOT, Nodes
from local_nodes import CACHE, turn
from nets import free_net

HOME = CACHE / "bare_node"
NODES = Nodes(free_net("10.11.27", "10.12.27", "10.13.27", "10.14.27"), count=1)
DECLARED = {path.parents[1].name for path in ROOT.glob("roles/*/meta/workload.yml")}
WORKLOADS = sorted(DECLARED - set(frameworks.PARTS))
# What outlives the host: environments, interpreters of uv, and wheels that were compiled.
KEPT = ("openmpi", "python", "wheels", "*/venv", "*/horovod")
INTERPRETERS = Path.home() / ".pyenv/versions"
VARIABLES = {
    **frameworks.VARIABLES,
    "scalebook_home": str(HOME),
    "horovod_wheels": str(HOME / "wheels"),
    "workload": ",".join(WORKLOADS),
    # Made on the host each time.
    "bing_bert_samples": 64,
    "bing_bert_launcher": "pdsh",
    "horovod_tf1_bert_samples": 64,
    "paddle_resnet50_images": 8,
    "paddlecv_resnet50_images": 8,
    "torch_examples_resnet50_images": 8,
    "tf1_resnet50_images": 8,
    "tf1_resnet50_files": 8,
    "mxnet_resnet50_images": 8,
    "gluoncv_resnet50_images": 8,
    "oneflow_resnet50_images": 8,
    "oneflow_resnet50_files": 2,
}


def forget():
    """Remove what an earlier host has left, but for what is kept."""
    kept = {path for pattern in KEPT for path in HOME.glob(pattern)}
    for path in [*HOME.glob("*/*"), *HOME.glob("*.json")]:
        if kept.isdisjoint({path, path.parent}):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def bench(results, **variables):
    """Run bench.yml on the host, one repeat of one case, and return its record."""
    given = {"campaign": "test", "campaign_results": str(results), "repeats": 1, "device": "cpu"}
    NODES.playbook("bench.yml", HOME, **given, **variables)
    (path,) = results.glob("*/runs/*/1/result.json")
    return json.loads(path.read_text())


def play(sources):
    """Install the workloads, again, and verify them; `sources` is a folder for the stand-ins."""
    with turn(HOME):
        forget()
        folders = [f"{HOME}:{HOME}:rw", f"{sources}:{sources}"]
        folders += [f"{INTERPRETERS}:{INTERPRETERS}"] if INTERPRETERS.is_dir() else []
        NODES.up("--ready", *(word for folder in folders for word in ("--mount", folder)))
        given = NODES.files / "inventory/group_vars/all.json"
        given.parent.mkdir(exist_ok=True)
        given.write_text(json.dumps({**VARIABLES, **repositories.trainers(sources)}))
        NODES.molecule("workload", "converge", "idempotence", "verify", timeout=2400)
