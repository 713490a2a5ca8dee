# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""scripts/bench --mpijob: the Kubernetes manifest of one case.  No cluster of Kubernetes has run one."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
import yaml
from ansible.module_utils.scalebook.launch.mpijob import manifest
from ansible.module_utils.scalebook.plan.one_case import one_case
from ansible.module_utils.scalebook.plan.parameters import ParameterError
from ansible.module_utils.scalebook.read.import_dlperf import _FILE
from ansible.module_utils.scalebook.report.plan_lines import why_nothing_runs
from cases import case, read_parameters
from declared import workload
from imports import DATA, import_log, rate

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "roles/campaign/templates/mpijob.yml.j2"
SCHEMA = yaml.safe_load((DATA / "kubernetes/mpijob_v2beta1.yml").read_text())
TYPES = {"string": str, "boolean": bool, "integer": int, "quantity": (int, str)}
PER_GPU = {"processes_per_node": "gpus"}


def printed(nodes=2, gpus=8, device="gpu", claim="", script="#!/bin/sh\nexec train\n", **declared):
    """Return the text of a manifest as the role writes it."""
    engine = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    engine.filters.update(to_json=json.dumps, quote=shlex.quote)
    values = manifest(case(nodes, gpus, device=device), workload(**declared), 11111)
    return engine.from_string(TEMPLATE.read_text()).render(
        __campaign_manifest=values,
        __campaign_script=script,
        campaign_mpijob={"image": "registry.example.com/bert:1", "claim": claim},
        campaign_mpirun_options=[],
        campaign_timeout=3600,
        openmpi_bin="/opt/scalebook/openmpi/bin",
        scalebook_home="/opt/scalebook",
    )


def documents(**given):
    """Return the ConfigMap and the MPIJob of a manifest."""
    return list(yaml.safe_load_all(printed(**given)))


def pods(role, **given):
    """Return the template of the launcher's or the workers' pods."""
    return documents(**given)[1]["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


def faults(value, schema, path=""):
    """Yield what of a value is not as the schema says."""
    if isinstance(schema, str):
        if not isinstance(value, TYPES[schema]) or (schema != "boolean" and isinstance(value, bool)):
            yield f"{path}: {value!r} is not of type {schema}"
    elif type(value) is not type(schema):
        yield f"{path}: {value!r}"
    elif isinstance(schema, list):
        for each in value:
            yield from faults(each, schema[0], f"{path}[]")
    else:
        fields = {name.rstrip("!"): each for name, each in schema.items()}
        yield from (
            f"{path}.{name[:-1]} is missing" for name in schema if name[-1] == "!" and name[:-1] not in value
        )
        for name, each in value.items():
            known = fields.get(name, fields.get("*"))
            yield from faults(each, known, f"{path}.{name}") if known else [f"{path}.{name} is unknown"]


@pytest.mark.parametrize(
    "given", [{}, {"claim": "home"}, {"device": "cpu"}, PER_GPU, {"nodes": 1, "gpus": 1}]
)
def test_each_manifest_is_as_the_schema_of_the_operator_says(given):
    _, job = documents(**given)
    assert list(faults(job, SCHEMA)) == []
    assert (job["apiVersion"], job["kind"]) == ("kubeflow.org/v2beta1", "MPIJob")


@pytest.mark.parametrize(
    ("text", "other", "fault"),
    [
        ("slotsPerWorker: 1", 'slotsPerWorker: "1"', ".spec.slotsPerWorker: '1' is not of type integer"),
        ("slotsPerWorker: 1", "slots: 1", ".spec.slots is unknown"),
        ("mpiReplicaSpecs", "replicaSpecs", ".spec.mpiReplicaSpecs is missing"),
    ],
)
def test_the_schema_finds_a_wrong_field(text, other, fault):
    assert fault in list(faults(list(yaml.safe_load_all(printed().replace(text, other)))[1], SCHEMA))


def test_each_node_has_a_worker_of_its_own_with_its_gpus_and_shared_memory():
    _, job = documents(nodes=4)
    worker = pods("Worker", nodes=4)
    assert job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 4
    assert worker["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": 8}}
    assert worker["volumes"][0] == {"name": "memory", "emptyDir": {"medium": "Memory"}}
    [apart] = worker["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchLabels"] == {"scalebook": job["metadata"]["name"]}


def test_a_case_on_cpus_asks_for_no_gpus():
    assert "resources" not in pods("Worker", device="cpu")["containers"][0]


@pytest.mark.parametrize("role", ["Launcher", "Worker"])
def test_the_volume_of_the_claim_is_mounted_where_the_installation_is(role):
    pod = pods(role, claim="home")
    assert {"name": "home", "mountPath": "/opt/scalebook"} in pod["containers"][0]["volumeMounts"]
    assert {"name": "home", "persistentVolumeClaim": {"claimName": "home"}} in pod["volumes"]


@pytest.mark.parametrize(("declared", "processes"), [({}, 1), (PER_GPU, 8)])
def test_mpirun_starts_as_many_processes_on_a_worker_as_the_workload_declares(declared, processes):
    scripts, job = documents(**declared)
    assert job["spec"]["slotsPerWorker"] == processes
    assert f"--tag-output -np {2 * processes} --map-by ppr:{processes}:node" in scripts["data"]["launch.sh"]


def test_a_run_that_fails_is_not_started_again():
    _, job = documents()
    replicas = job["spec"]["mpiReplicaSpecs"].values()
    assert job["spec"]["runPolicy"]["backoffLimit"] == 0
    assert {each["restartPolicy"] for each in replicas} == {"Never"}


def test_the_names_of_pods_are_not_longer_than_kubernetes_allows():
    name = manifest(case(999, 8, model="m" * 60), workload(), 11111)["name"]
    assert len(f"{name}-worker-998") <= 63
    assert re.fullmatch(r"[a-z][a-z0-9-]*-[0-9a-f]{8}", name)


def run_script(folder, name, env, **given):
    """Return what a script of the manifest prints, with its files and its mpirun in `folder`."""
    scripts, _ = documents(**given)
    for each, text in scripts["data"].items():
        for place in ("/etc/scalebook", "/etc/mpi", "/tmp/scalebook", "/opt/scalebook/openmpi/bin"):
            text = text.replace(place, str(folder))
        (folder / each).write_text(text)
    done = subprocess.run(
        ["sh", folder / name], env={"PATH": "/usr/bin:/bin", **env}, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_a_process_has_the_variables_of_its_worker(tmp_path):
    script = 'echo "$TASK_INDEX $NNODES $GPUS_PER_NODE $BSZ $CUDA_VISIBLE_DEVICES"; test -d "$JOB_DIR"'
    lines = run_script(tmp_path, "node.sh", {"OMPI_COMM_WORLD_RANK": "9"}, script=script, **PER_GPU)
    assert lines == ["1 2 8 16 0,1,2,3,4,5,6,7"]


def test_the_workers_are_those_of_the_operators_host_file(tmp_path):
    (tmp_path / "hostfile").write_text("a-worker-0.a.ns.svc slots=1\na-worker-1.a.ns.svc slots=1\n")
    mpirun = tmp_path / "mpirun"  # a stand-in, for what it would pass on
    mpirun.write_text('#!/bin/sh\necho "$HOSTS $WORKER_HOSTS $MASTER_ADDR"\n')
    mpirun.chmod(0o755)
    hosts = ["a-worker-0.a.ns.svc", "a-worker-1.a.ns.svc"]
    line = f"{','.join(hosts)} {','.join(f'{host}:11111' for host in hosts)} {hosts[0]}"
    assert run_script(tmp_path, "launch.sh", {}) == [line, line]


def test_the_name_of_the_log_tells_import_its_case():
    folder, _, file = manifest(case(2, 8), workload(), 11111)["log"].partition("/")
    assert (folder, _FILE.fullmatch(file).groups()) == ("2n8g", ("tiny", "16", "fp32", "1", None))


def test_the_log_of_a_launcher_is_read():
    text = (DATA / "torch_bert/mpijob_1n2g.log").read_text()
    assert text.startswith("[1,0]<stdout>:TORCH_BERT ")
    assert rate(import_log("torch_bert", text, "1n2g/tiny_b4_fp32_1.log", device="cpu")) == pytest.approx(
        151.7, rel=0.01
    )


def test_a_case_needs_no_inventory_of_as_many_nodes():
    read = read_parameters({"device": "gpu"}, trainer=workload())
    assert one_case(read, {"trainer": workload()}, "125n8g", why_nothing_runs)["label"] == "125n8g"


@pytest.mark.parametrize(
    ("given", "topology", "why"),
    [
        ({"dtype": "fp32,fp16"}, "1n8g", "these parameters make 2 (trainer-base-1n8g-b32-fp32"),
        ({"bsz": "max"}, "1n8g", "bsz=max: a manifest is for one case"),
        ({"dtype": "fp16", "device": "cpu"}, "1n1g", "There is nothing to run"),
        ({}, "8g", "topology=8g: allowed are values such as 1n8g"),
    ],
)
def test_what_is_not_one_case_is_refused(given, topology, why):
    read = read_parameters({"device": "gpu", **given}, trainer=workload())
    with pytest.raises(ParameterError, match=re.escape(why)):
        one_case(read, {"trainer": workload()}, topology, why_nothing_runs)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["image"], "topology=: allowed are values such as 1n8g"),
        (
            ["image", "--topology", "1n8g", "--launcher", "srun"],
            "--mpijob: --launcher: a manifest of one case has",
        ),
        (["image claim more", "--topology", "1n8g"], "--mpijob image claim more: allowed are an image and"),
    ],
)
def test_options_that_no_manifest_follows_from_are_refused(words, why):
    argv = [sys.executable, ROOT / "scripts/bench", "--mpijob", *words]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert why in done.stderr
