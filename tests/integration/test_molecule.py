# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The machine's roles on container nodes: Molecule's scenarios, and what the roles must refuse.

On a subnet of its own, so that a cluster that somebody works with is left alone.
"""

import json
import os
import re
import shutil
import subprocess

import pytest
from container_nodes import ROOT, TOOLS, Nodes, changes, said
from nets import free_net

NODES = Nodes(free_net("10.11.6", "10.12.6", "10.13.6", "10.14.6"), count=2)
# Those that compile nothing: that of openmpi is in test_openmpi_role.py. A role that compares no nodes is
# installed on one.
SCENARIOS = {
    "node": None, "preflight": None, "stack_check": None, "mirror": None, "slurm": None,
    "python": "NODE2", "nccl": "NODE2", "cuda": "NODE2",
}  # fmt: skip
run, ssh, play = NODES.run, NODES.ssh, NODES.play
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


@pytest.fixture(scope="module", autouse=True)
def scenarios():
    """Run Molecule's scenarios one after the other on nodes that were bare; {role: what is wrong, or None}.

    What comes after them needs what they leave.
    """
    NODES.up()
    wrong = {}
    for role, node in SCENARIOS.items():
        try:
            NODES.molecule(role, node=node)
            wrong[role] = None
        except AssertionError as error:
            wrong[role] = str(error)
    yield wrong
    NODES.down()


@pytest.fixture(scope="module")
def stand_in(tmp_path_factory):
    """Return a function that puts a repository with a fault onto NODE2 and says how to use it."""
    made = {}

    def put(fault=None):
        if fault not in made:
            folder = tmp_path_factory.mktemp(f"apt-{fault}") / "apt"
            run(ROOT / "tests/apt/make", folder, *(["--fault", fault] if fault else []))
            made[fault] = folder
        folder = made[fault]
        place = f"/srv/{fault or 'good'}"
        pack = subprocess.Popen(["tar", "-C", folder, "-c", "repository"], stdout=subprocess.PIPE)
        unpack = f"mkdir -p {place} && tar -C {place} --no-same-owner -x"
        subprocess.run(
            ["ssh", "-F", NODES.files / "ssh_config", "NODE2", unpack],
            stdin=pack.stdout, check=True, timeout=60,
        )  # fmt: skip
        pack.stdout.close()
        assert pack.wait() == 0
        facts = json.loads((folder / "facts.json").read_text())
        return {
            "folder": folder,
            "facts": facts,
            "variables": {
                "cuda_repository_uris": [f"file://{place}/repository"],
                "cuda_key": str(folder / "key.asc"),
                "cuda_key_fingerprint": facts["key"],
            },
        }

    return put


@pytest.mark.parametrize("role", SCENARIOS)
def test_the_role_passes_its_scenario(scenarios, role):
    assert not scenarios[role], scenarios[role]


# -- node ----------------------------------------------------------------------------------------------


def test_a_slow_login_names_the_host_and_the_fix():
    ssh("NODE2", "cp ~/.bashrc /tmp/bashrc; (echo 'sleep 2'; cat /tmp/bashrc) > ~/.bashrc")
    try:
        done = play("node", "--tags", "node_verify", ok=False)
    finally:
        ssh("NODE2", "cp /tmp/bashrc ~/.bashrc")
    assert done.returncode == 2
    assert re.search(r"A login of root on NODE2 takes 2\.\d s.*Fix: find what is slow", said(done))
    assert re.findall(r"^(NODE\d) .*failed=1", done.stdout, re.M) == ["NODE2"]


def test_a_clock_that_is_off_names_the_host():
    ssh("NODE2", 'printf \'#!/bin/sh\\nexec /bin/date -d "+90 seconds" "$@"\\n\' > /usr/local/bin/date')
    ssh("NODE2", "chmod 755 /usr/local/bin/date")
    try:
        done = play("node", "--tags", "node_verify", ok=False)
    finally:
        ssh("NODE2", "rm /usr/local/bin/date")
    assert done.returncode == 2
    assert re.search(r"The clocks of NODE2 and NODE1 are at least \d+\.\d s apart", said(done))


def test_a_small_shared_memory_is_refused_with_its_fix():
    done = play("node", "--tags", "node_verify", ok=False, node="NODE1", node_shm_mb=100000)
    assert done.returncode == 2
    assert "/dev/shm of NODE1 has 256 MB, node_shm_mb requires 100000. Fix:" in said(done)


def test_a_changed_host_key_is_refused_by_the_nodes_until_the_role_has_read_it():
    ssh("NODE2", "rm /etc/ssh/ssh_host_*; ssh-keygen -A; kill -HUP $(cat /run/sshd.pid)")
    refused = ssh("NODE1", "ssh -o BatchMode=yes NODE2 true", ok=False)
    assert refused.returncode == 255
    assert "REMOTE HOST IDENTIFICATION HAS CHANGED" in refused.stderr
    run(TOOLS / "up", "--net", NODES.net, "--nodes", NODES.count)
    play("node", "--tags", "node_configure")
    ssh("NODE1", "ssh -o BatchMode=yes NODE2 true")


def test_a_run_on_one_node_leaves_the_mesh_as_it_is():
    before = ssh("NODE2", "cat ~/.ssh/authorized_keys ~/.ssh/known_hosts_scalebook /etc/hosts").stdout
    done = play("node", node="NODE2")
    assert changes(done) == {"NODE2": 0}
    assert "cannot be read in this run" in said(done)
    after = ssh("NODE2", "cat ~/.ssh/authorized_keys ~/.ssh/known_hosts_scalebook /etc/hosts").stdout
    assert after == before


# -- cuda and nccl: what is refused changes nothing ----------------------------------------------------


@pytest.fixture(scope="module")
def bare():
    """Make NODE2 bare of NVIDIA's packages again."""
    names = "libnccl2 libnccl-dev cuda-toolkit-10-2 cuda-cudart-10-1 libcudnn7 libcudnn7-dev"
    ssh("NODE2", f"dpkg --force-hold --purge {names}")
    ssh("NODE2", "rm -f /etc/apt/sources.list.d/scalebook-* /etc/apt/keyrings/scalebook-*")
    ssh("NODE2", "rm -f /etc/apt/preferences.d/scalebook-* /var/cache/apt/archives/*.deb /etc/nccl.conf")


def refused(stand_in, role, fault=None, **variables):
    """Run a role that must fail on NODE2; return what it said, having compared the host before and after."""
    there = stand_in(fault)
    before = NODES.state("NODE2")
    done = play(role, ok=False, node="NODE2", **{**there["variables"], **variables})
    assert done.returncode == 2, done.stdout[-2000:]
    assert NODES.state("NODE2") ^ before == set()
    return said(done)


def test_another_key_is_refused(bare, stand_in):
    other = str(stand_in()["folder"] / "other.asc")
    assert "expected is exactly" in refused(stand_in, "nccl", cuda_key=other)


def test_a_fingerprint_of_another_key_is_refused(bare, stand_in):
    wrong = "EB693B3035CD5710E231E123A4B469963BF863CC"
    assert f"expected is exactly {wrong}" in refused(stand_in, "nccl", cuda_key_fingerprint=wrong)


def test_the_end_of_a_fingerprint_is_not_enough(bare, stand_in):
    short = stand_in()["facts"]["key"][-16:]
    assert "must have all 40 hexadecimal digits" in refused(stand_in, "nccl", cuda_key_fingerprint=short)


def test_the_withdrawn_key_is_refused_even_where_it_is_asked_for(bare, stand_in):
    end = stand_in()["facts"]["key"][-8:]
    assert "is the key that its owner withdrew" in refused(stand_in, "nccl", cuda_key_withdrawn=[end])


def test_an_expired_key_is_refused(bare, stand_in):
    assert "expired on 2020-12-31" in refused(stand_in, "nccl", "expired")


def test_a_repository_signed_by_another_key_is_refused(bare, stand_in):
    there = stand_in()
    other = {"cuda_key": str(there["folder"] / "other.asc"), "cuda_key_fingerprint": there["facts"]["other"]}
    assert "NO_PUBKEY" in refused(stand_in, "nccl", **other)


def test_an_unsigned_repository_is_refused(bare, stand_in):
    assert "is not signed" in refused(stand_in, "nccl", "unsigned")


def test_an_unreachable_repository_is_refused(bare, stand_in):
    nowhere = ["http://127.0.0.1:9/repository"]
    assert "was not changed" in refused(stand_in, "nccl", cuda_repository_uris=nowhere)


@pytest.mark.parametrize("role", ["nccl", "cuda"])
def test_a_package_with_one_flipped_bit_is_refused(bare, stand_in, role):
    assert re.search("[Hh]ash [Ss]um mismatch", refused(stand_in, role, "flipped"))


def test_an_old_driver_is_refused_with_what_is_needed(bare, stand_in):
    ssh("NODE2", "sed -i s/440.33.01/418.87.01/ /usr/local/bin/nvidia-smi")
    try:
        heard = refused(stand_in, "cuda")
    finally:
        ssh("NODE2", "sed -i s/418.87.01/440.33.01/ /usr/local/bin/nvidia-smi")
    assert "NODE2 has driver 418.87.01, CUDA 10.2 needs 440.33 or newer" in heard


def test_a_host_without_a_driver_is_refused_with_what_to_do(bare, stand_in):
    ssh("NODE2", "mv /usr/local/bin/nvidia-smi /tmp/")
    try:
        heard = refused(stand_in, "cuda")
    finally:
        ssh("NODE2", "mv /tmp/nvidia-smi /usr/local/bin/")
    assert "NODE2 has no working NVIDIA driver" in heard


def test_a_repository_package_of_nccl_is_accepted_by_its_checksum_only(bare, stand_in):
    deb = str(stand_in()["folder"] / "nccl-repo.deb")
    assert "its sha256 is" in refused(
        stand_in, "nccl", nccl_source="deb", nccl_deb=deb, nccl_deb_sha256="0" * 64
    )


# -- cuda and nccl: what is accepted -------------------------------------------------------------------


def installed(node="NODE2"):
    form = "${Package}=${Version} ${db:Status-Want}\\n"
    return ssh(node, f"dpkg-query -W -f '{form}' libnccl2 libnccl-dev").stdout.splitlines()


def of(version):
    return [f"libnccl-dev={version} hold", f"libnccl2={version} hold"]


def test_nccl_comes_out_of_nvidias_repository_package(bare, stand_in):
    there = stand_in()
    done = play(
        "nccl", node="NODE2", nccl_source="deb",
        nccl_deb=str(there["folder"] / "nccl-repo.deb"), nccl_deb_sha256=there["facts"]["nccl_repo"],
    )  # fmt: skip
    assert sorted(installed()) == of("2.7.3-1+cuda10.2")
    assert changes(done)["NODE2"] > 0
    assert ssh("NODE2", "ls /etc/apt/sources.list.d /etc/apt/keyrings").stdout.count("nvidia") == 0


def nccl_archive(folder, release, number):
    """Make a stand-in of NVIDIA's archive; return what a play is given of it."""
    top = folder / f"nccl_{release}-1+cuda9.0_x86_64"
    for name in ("include", "lib"):
        (top / name).mkdir(parents=True)
    (top / "include/nccl.h").write_text("")
    (folder / "nccl.c").write_text(f"int ncclGetVersion(int *v) {{ *v = {number}; return 0; }}\n")
    library = top / f"lib/libnccl.so.{release}"
    run("gcc", "-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-o", library, folder / "nccl.c")
    (top / "lib/libnccl.so.2").symlink_to(library.name)
    archive = folder / f"{top.name}.txz"
    run("tar", "--create", "--xz", "--file", archive, "--directory", folder, top.name)
    sha256 = run("sha256sum", archive).stdout.split()[0]
    return {"nccl_source": "archive", "nccl_archive": str(archive), "nccl_archive_sha256": sha256}


def test_nccl_comes_out_of_nvidias_archive_until_another_source_is_named(bare, stand_in, tmp_path):
    given = {"nccl_version": "2.4.2-1+cuda9.0", **nccl_archive(tmp_path, "2.4.2", 2402)}
    assert "its sha256 is" in refused(stand_in, "nccl", **{**given, "nccl_archive_sha256": "0" * 64})
    other = refused(stand_in, "nccl", **{**given, "nccl_version": "2.4.7-1+cuda9.0"})
    assert "does not hold include/nccl.h and lib/libnccl.so.2.4.7" in other
    play("nccl", node="NODE2", **given)
    assert changes(play("nccl", node="NODE2", **given)) == {"NODE2": 0}
    play("nccl", node="NODE2", **stand_in()["variables"])
    assert ssh("NODE2", "ls /etc/ld.so.conf.d").stdout.count("nccl") == 0


def test_nccl_goes_to_another_version_and_back_by_a_variable(bare, stand_in):
    variables = stand_in()["variables"]
    for version in ("2.7.8-1+cuda10.2", "2.7.3-1+cuda10.2"):
        play("nccl", node="NODE2", nccl_version=version, **variables)
        assert sorted(installed()) == of(version)
        pin = ssh("NODE2", "cat /etc/apt/preferences.d/scalebook-nccl").stdout
        assert pin.count(f"Pin: version {version}\n") == 2
    assert changes(play("nccl", node="NODE2", **variables)) == {"NODE2": 0}


def test_an_interface_that_is_not_there_is_refused():
    done = play("nccl", "--tags", "nccl_configure", ok=False, node="NODE2", nccl_subnet="192.0.2.0/24")
    assert done.returncode == 2
    assert "NODE2 has no interface with an address in 192.0.2.0/24" in said(done)


LOADS = "python3 -c 'import ctypes; ctypes.CDLL(\"libcudart.so.10.1\")'"


def test_cuda_10_2_takes_10_1s_runtime_library_from_a_link_or_does_without(bare, stand_in):
    variables = stand_in()["variables"]
    done = play("cuda", node="NODE2", cuda_cudart101="link", **variables)
    assert changes(done)["NODE2"] > 0
    ssh("NODE2", LOADS)
    assert changes(play("cuda", node="NODE2", cuda_cudart101="link", **variables)) == {"NODE2": 0}
    play("cuda", node="NODE2", cuda_cudart101="none", **variables)
    assert "libcudart.so.10.1: cannot open" in ssh("NODE2", LOADS, ok=False).stderr


def test_a_library_that_does_not_load_is_refused_with_its_fix(bare, stand_in):
    done = play(
        "cuda",
        "--tags",
        "cuda_verify",
        ok=False,
        node="NODE2",
        cuda_cudart101="link",
        **stand_in()["variables"],
    )
    assert done.returncode == 2
    assert "NODE2 cannot load libcudart.so.10.1" in said(done)


def test_nvidias_installer_runs_once_and_only_the_one_with_the_checksum(bare, stand_in, tmp_path):
    ssh("NODE2", "rm -rf /usr/local/cuda-10.2.1")
    runfile = tmp_path / "cuda.run"
    library = "/usr/local/cuda-10.2/lib64/libcudart.so.10.2"
    runfile.write_text(
        '#!/bin/sh\nfor word; do case "$word" in --toolkitpath=*) to="${word#*=}" ;; esac; done\n'
        f'mkdir -p "$to/lib64" && cp {library} "$to/lib64/"\n'
    )
    sha256 = run("sha256sum", runfile).stdout.split()[0]
    options = {
        "cuda_source": "runfile", "cuda_home": "/usr/local/cuda-10.2.1",
        "cuda_runfile": str(runfile), "cuda_cudart101": "none", **stand_in()["variables"],
    }  # fmt: skip
    assert "its sha256 is" in refused(stand_in, "cuda", **{**options, "cuda_runfile_sha256": "0" * 64})
    play("cuda", node="NODE2", **options, cuda_runfile_sha256=sha256)
    again = play("cuda", node="NODE2", **options, cuda_runfile_sha256=sha256)
    assert changes(again) == {"NODE2": 0}


def test_the_stand_ins_can_be_made_here():
    assert [tool for tool in ("gpg", "gcc", "dpkg-deb") if not shutil.which(tool)] == []
