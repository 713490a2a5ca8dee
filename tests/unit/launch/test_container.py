# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The container of a run: its settings, each engine's command line, and why nodes cannot start it."""

import importlib.util
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.launch import container
from ansible.module_utils.scalebook.launch.jobs import directories
from ansible.module_utils.scalebook.launch.provenance import check_containers
from ansible.module_utils.scalebook.workload import WorkloadError
from cases import gpu_case as case
from declared import workload

FILE = Path(__file__).parents[3] / "roles/campaign/files/container.py"
SPEC = importlib.util.spec_from_file_location("node_container", FILE)
node = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(node)
IMAGE = "nvcr.io/nvidia/pytorch:24.10-py3"
GOOD = {"id": "sha256:1", "image": "sha256:1", "digest": "sha256:2"}
ENV = {"JOB_DIR": "/w/1", "RANK": "0", "PATH": "/bin", "HOME": "/root"}
SCRIPT = ["-c", node.SCRIPT]


def settings(engine="podman", image=IMAGE, gpus=True, options=(), launcher="mpirun", **declared):
    parameters = {"container": image, "container_engine": engine, "launcher": launcher}
    return container.settings(parameters, workload(**declared), ["/opt/s", "/d/*.npy"], gpus, options)


def command(engine, monkeypatch, infiniband=True, **given):
    monkeypatch.setattr(node.os.path, "isdir", lambda path: infiniband)
    monkeypatch.setattr(node.os, "getuid", lambda: 7)
    monkeypatch.setattr(node.os, "getgid", lambda: 8)
    monkeypatch.setattr(node, "_limits", lambda: ["--ulimit=memlock=-1:-1"])
    return node.command(settings(engine, **given), "scalebook-x", ENV)


SHARED = ["--pull=never", "--network=host", "--ipc=host", "--pid=host", "--security-opt=label=disable"]
SHARED += ["--log-driver=none", "--ulimit=memlock=-1:-1", "--device=/dev/infiniband"]
AFTER = [
    "--volume=/d:/d",
    "--volume=/opt/s:/opt/s",
    "--volume=/tmp:/tmp",
    "--env=JOB_DIR",
    "--env=RANK",
    "--init",
]
AFTER += ["--entrypoint=/bin/sh", IMAGE, *SCRIPT]


@pytest.mark.parametrize(
    ("engine", "own"),
    [
        ("podman", ["--userns=keep-id", "--device=nvidia.com/gpu=all"]),
        ("docker", ["--user=7:8", "--gpus=all"]),
    ],
)
def test_podman_and_docker_share_all_but_the_files_with_the_machine(engine, own, monkeypatch):
    words = command(engine, monkeypatch, options=["--init"])
    assert words == [engine, "run", "--rm", "--name", "scalebook-x", *SHARED, *own, *AFTER]


def test_enroot_mounts_at_the_same_paths_and_has_the_devices_by_its_hooks(monkeypatch):
    words = command("enroot", monkeypatch, image="/i.sqsh")
    mounts = [f"{path}:{path}:none:x-create=auto,rbind" for path in ("/d", "/opt/s", "/tmp")]
    devices = ["MELLANOX_VISIBLE_DEVICES=all", "NVIDIA_VISIBLE_DEVICES=all"]
    devices += ["NVIDIA_DRIVER_CAPABILITIES=compute,utility"]
    variables = ["JOB_DIR", "RANK", *devices]
    options = [word for mount in mounts for word in ("--mount", mount)]
    options += [word for variable in variables for word in ("--env", variable)]
    assert words == ["enroot", "start", "--rw", *options, "/i.sqsh", "/bin/sh", *SCRIPT]


def test_apptainer_passes_the_environment_by_itself(monkeypatch):
    words = command("apptainer", monkeypatch, image="/i.sif")
    mounts = ["--bind", "/d", "--bind", "/opt/s", "--bind", "/tmp"]
    assert words == ["apptainer", "exec", "--nv", *mounts, "/i.sif", "/bin/sh", *SCRIPT]


def test_pyxis_is_options_of_srun():
    assert container.srun_options(settings("pyxis", "/i.sqsh", launcher="srun")) == [
        "--container-image=/i.sqsh",
        "--container-mounts=/d:/d,/opt/s:/opt/s,/tmp:/tmp",
        "--no-container-entrypoint",
    ]
    assert container.srun_options(settings("podman")) == []


def test_run_node_wraps_nothing_where_pyxis_has_started_it_in_the_container(tmp_path):
    (tmp_path / "container.json").write_text('{"engine": "pyxis"}')
    assert node.read_settings(str(tmp_path)) == {}


@pytest.mark.parametrize("engine", ["podman", "docker", "enroot", "apptainer"])
def test_without_gpus_and_infiniband_there_are_no_devices(engine, monkeypatch):
    words = " ".join(command(engine, monkeypatch, gpus=False, infiniband=False))
    assert not any(
        text in words for text in ("nvidia.com", "gpus", "NVIDIA", "--nv", "infiniband", "MELLANOX")
    )


@pytest.mark.parametrize("soft", [-1, 64])
def test_limits_are_those_of_the_process(monkeypatch, soft):
    monkeypatch.setattr(node.resource, "getrlimit", lambda number: (soft, -1))
    most = Path("/proc/sys/kernel/pid_max").read_text().strip()
    processes = f"{most if soft < 0 else soft}:{most}"
    expected = [f"--ulimit={name}={soft}:-1" for name in ("memlock", "nofile")]
    assert node._limits() == [*expected, f"--ulimit=nproc={processes}"]


def test_a_job_outside_containers_has_no_file_of_one():
    jobs = [{"dir": "/w/1", "task_index": 0, "env": {}}]
    limits = {"stall": 1, "rendezvous": 1}
    arguments = (jobs, workload(), case(1, 1), limits, "", {"interval": 0, "directories": []}, [])
    files = [directories(*arguments, wanted)["/w/1"] for wanted in ({}, settings())]
    assert ["container.json" in each for each in files] == [False, True]


@pytest.mark.parametrize(
    ("engine", "image", "pull"),
    [
        ("podman", IMAGE, f"podman pull {IMAGE}"),
        ("docker", IMAGE, f"docker pull {IMAGE}"),
        (
            "enroot",
            IMAGE,
            "enroot import -o /opt/s/images/nvcr.io+nvidia+pytorch+24.10-py3.sqsh "
            "'docker://nvcr.io#nvidia/pytorch:24.10-py3'",
        ),
        ("enroot", "debian:12", "enroot import -o /opt/s/images/debian+12.sqsh docker://debian:12"),
        ("apptainer", "debian:12", "apptainer pull /opt/s/images/debian+12.sif docker://debian:12"),
        ("apptainer", "/srv/i.sif", ""),
    ],
)
def test_the_fix_of_a_missing_image_is_the_command_that_pulls_it(engine, image, pull):
    wanted = settings(engine, image)
    answer = {"problem": "image", "why": "no such image"}
    fix = f"run there: {pull}" if pull else "copy the file there"
    said = container.refusal(wanted, {"NODE1": GOOD, "NODE2": answer, "NODE3": answer})
    assert said == f"container={image}: NODE2, NODE3: no such image. Fix: {fix}"


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (
            {"problem": "engine", "why": "there is no program podman"},
            "container_engine=podman: NODE2: there is no program podman. Fix: install podman there",
        ),
        (
            {"problem": "start", "why": "no CDI devices"},
            f"container={IMAGE}: NODE2: no CDI devices. Fix: repair what podman says there",
        ),
        (
            {"problem": "program", "why": "/usr/bin/python3.11"},
            f"container={IMAGE}: NODE2: the image has no program /usr/bin/python3.11. Fix: use an image",
        ),
        (
            {**GOOD, "id": "sha256:3"},
            f"container={IMAGE}: the nodes have different images of this name: NODE1: sha256:1; "
            f"NODE2: sha256:3. Fix: run on all of them: podman pull {IMAGE}",
        ),
    ],
)
def test_a_node_that_cannot_start_the_container_is_refused(answer, refusal):
    assert container.refusal(settings(), {"NODE1": GOOD, "NODE2": answer}).startswith(refusal)


def test_nodes_with_the_same_image_are_not_refused():
    assert container.refusal(settings(), {"NODE1": GOOD, "NODE2": GOOD}) == ""


def test_a_missing_engine_is_told_from_a_missing_image(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert node.look(settings(), "/tmp", [])["problem"] == "engine"


def test_the_digest_of_a_file_is_that_of_its_content(tmp_path):
    (tmp_path / "i.sif").write_bytes(b"image")
    digest = node._file(str(tmp_path / "i.sif"))["id"]
    assert digest == "sha256:6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d"
    assert node._file(str(tmp_path / "none.sif"))["problem"] == "image"


def test_a_declared_image_brings_its_interpreter():
    one = {"image": "nvcr.io/nvidia/mxnet:20.03-py3", "python": "python", "source": "a report"}
    wanted = settings(image="declared", containers=[one])
    assert (wanted["image"], wanted["python"]) == (one["image"], "python")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"image": "declared"}, "container=declared: trainer declares no image. Fix: name one"),
        ({"engine": "pyxis"}, "container_engine=pyxis: it is a plugin of srun. Fix: add launcher=srun"),
    ],
)
def test_a_container_that_cannot_be_is_refused_before_any_node_is_asked(parameters, said):
    with pytest.raises(ValueError, match=said):
        settings(**parameters)


@pytest.mark.parametrize("image", ["nvcr.io/nvidia/mxnet", "a b:1", "-v/:/:1"])
def test_a_declared_image_without_tag_is_refused(image):
    one = {"image": image, "python": "python", "source": "a report"}
    with pytest.raises(WorkloadError, match=r"containers\[0\].image: .* names with a tag or a digest"):
        workload(containers=[one])


def test_the_provenance_has_the_digest_and_says_what_software_is_the_image_s():
    answered = {**settings(), **GOOD}
    assert container.provenance(answered) == {"container": f"{IMAGE}@sha256:2 (podman)"}
    declared = container.provenance({**answered, "python": "python"})
    assert {declared[key] for key in ("framework", "cuda", "nccl")} == {f"the image's, {IMAGE}@sha256:2"}
    assert container.provenance({}) == {}


@pytest.mark.parametrize(("had", "has"), [("a@1", "a@2"), ("a@1", None), (None, "a@1"), ("a@1", "a@1")])
def test_a_campaign_does_not_go_on_with_another_image(had, has):
    earlier, now = (
        {"workloads": {"w": {"NODE1": {"container": image} if image else {}}}} for image in (had, has)
    )
    if had == has:
        check_containers(earlier, now)
    else:
        with pytest.raises(ValueError, match="earlier runs of the campaign were in"):
            check_containers(earlier, now)
