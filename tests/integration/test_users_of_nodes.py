# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The user of the runs cannot become root on fresh hosts, which are provisioned by a root with umask 077."""

import json
import os
import signal
import subprocess
import time

import pytest
from container_nodes import ROOT, Nodes, said
from nets import free_net

ROLES = {"ANSIBLE_ROLES_PATH": "roles:tests/roles"}
NODES = Nodes(free_net("10.61.1", "10.62.1", "10.63.1"), count=2, **ROLES)
HOME = "/opt/scalebook"
# As hardened hosts have it; ssh starts commands with the shell that reads this file.
HARDENED = "umask 077; printf 'umask 077\\n' >~root/.bashrc; useradd --create-home --shell /bin/bash you"
# Who else than root can change something below scalebook_home, but for the work of runs.
OPEN = (
    rf"find {HOME} -path {HOME}/work -prune -o -path '{HOME}/untrusted.*' -prune -o "
    r"\( ! -user root -o ! -type l -perm /022 \) -print"
)
# What the user could do with an installation of earlier versions.
PLANT = f"""
chown you {HOME}
su you -c '
cd {HOME} && mv openmpi openmpi.old && mkdir -p openmpi/bin && cp openmpi.old/scalebook.lock openmpi/
printf "#!/bin/sh\\nid >{HOME}/work/started-by\\n" >openmpi/bin/mpirun
chmod 755 openmpi/bin/mpirun
mv ~/.ssh/id_ed25519_scalebook ~/.ssh/kept && ln -s /etc/shadow ~/.ssh/id_ed25519_scalebook'
"""

# A program of the user's own, which the end of an interrupted campaign runs.
MARK = f"import os; open('{HOME}/work/stopped-by', 'a').write('%d ' % os.getuid())"

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="containers with networks of their own need root"),
]


def provision(ok=True, **variables):
    """Provision as root for the user `you`."""
    variables = {"workload": "scripted", "node_user": "you", **variables}
    return NODES.playbook("provision.yml", HOME, ok=ok, **variables)


@pytest.fixture(scope="module")
def provisioned():
    """Provision hosts with a hardened root."""
    NODES.up("--ready")
    try:
        for node in ("NODE1", "NODE2"):
            NODES.ssh(node, HARDENED)
        yield provision()
    finally:
        NODES.down()


@pytest.fixture(scope="module")
def attacked(provisioned):
    """Plant programs and a link as the user of the runs on NODE1, and provision again.

    Returns the play, and the owner of the file that the link leads to.
    """
    NODES.ssh("NODE1", PLANT)
    return provision(ok=False), NODES.ssh("NODE1", "stat --format %U /etc/shadow").stdout.strip()


def test_only_root_can_change_what_is_installed(provisioned):
    assert NODES.ssh("NODE1", f"stat --format '%U:%G %a' {HOME}; {OPEN}").stdout == "root:root 755\n"


def test_what_runs_write_belongs_to_their_user(provisioned):
    assert NODES.ssh("NODE1", f"stat --format %U {HOME}/work ~you/.ssh/*").stdout.split() == ["you"] * 6


def test_the_user_of_the_runs_can_use_what_a_hardened_root_has_installed(provisioned):
    uses = f"{HOME}/openmpi/bin/mpirun --version && cat {HOME}/scripted/code/trainer.py"
    assert "Open MPI" in NODES.ssh("NODE2", f"su you -c '{uses}'").stdout


def test_a_key_is_accepted_from_its_own_node_alone(provisioned):
    keys = NODES.ssh("NODE1", "cat ~you/.ssh/authorized_keys").stdout.splitlines()[1:-1]
    assert [key.split(" ssh-ed25519 ")[0] for key in keys] == [
        f'restrict,from="{NODES.net}.2"',
        f'restrict,from="{NODES.net}.3"',
    ]
    # From the node itself the key of the other one would come from the wrong address.
    NODES.ssh("NODE1", "su you -c 'ssh NODE2 cat .ssh/id_ed25519_scalebook' >stolen && chmod 600 stolen")
    options = "-i stolen -o IdentitiesOnly=yes -o BatchMode=yes"
    options += " -o UserKnownHostsFile=~you/.ssh/known_hosts_scalebook"
    refused = NODES.ssh("NODE1", f"ssh {options} you@{NODES.net}.3 true", ok=False)
    assert "Permission denied" in refused.stderr


def test_runs_belong_to_their_user_also_where_root_logs_in(provisioned, tmp_path):
    few = {"nodes": 2, "gpus": 1, "repeats": 1, "device": "cpu", "campaign": "users", "scripted_sync": True}
    variables = {"workload": "scripted", "node_user": "you", "campaign_results": str(tmp_path), **few}
    NODES.playbook("bench.yml", HOME, **variables)
    assert NODES.ssh("NODE1", f"find {HOME}/work ! -user you").stdout == ""


@pytest.fixture(scope="module")
def interrupted(provisioned, tmp_path_factory):
    """Interrupt a campaign by Ctrl-C while its trainers run, with the default home; return what it said."""
    folder = tmp_path_factory.mktemp("interrupted")
    text = (NODES.files / "inventory" / "hosts.yml").read_text()
    (folder / "hosts.yml").write_text(text.replace(f"    scalebook_home: {HOME}\n", ""))
    extra = {"workload": "scripted", "node_user": "you", "campaign_results": str(folder), "scripted_step": 1}
    extra |= {"nodes": 2, "gpus": 1, "device": "cpu", "campaign": "interrupted", "preflight": False}
    argv = ["ansible-playbook", "-i", str(folder / "hosts.yml"), "bench.yml", "-e", json.dumps(extra)]
    process = subprocess.Popen(
        argv, cwd=ROOT, env=NODES.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if NODES.ssh("NODE2", "pgrep -f trainer.py", ok=False).stdout:
            break
        time.sleep(0.5)
    NODES.ssh("NODE1", f'sed -i "2i {MARK}" {HOME}/work/bin/orphans.py')
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=60)[0]


def test_an_interruption_leaves_no_process_and_no_lock(interrupted):
    assert interrupted.endswith("bench.yml, provision.yml and a burn-in go on where they were.\n")
    assert NODES.ssh("NODE1", "pgrep -u you; cat /run/lock/scalebook.lock", ok=False).stdout == ""
    assert NODES.ssh("NODE2", "pgrep -u you; cat /run/lock/scalebook.lock", ok=False).stdout == ""


def test_root_does_not_execute_what_stops_the_job_of_an_interrupted_campaign(interrupted):
    assert NODES.ssh("NODE1", f"cat {HOME}/work/stopped-by; id -u you").stdout.split() == ["1000", "1000"]


def test_a_planted_program_is_moved_aside_and_not_executed_by_root(attacked):
    asked = f"cat {HOME}/work/started-by; {OPEN}; ls {HOME}/untrusted.*"
    assert NODES.ssh("NODE1", asked, ok=False).stdout == "openmpi\n"
    assert f"{HOME}/openmpi belongs to you. It is installed again" in said(attacked[0])


def test_a_planted_link_is_not_followed_by_root(attacked):
    assert "/etc/shadow" in attacked[0].stdout
    assert attacked[1] == "root"


def test_data_are_not_written_where_a_link_of_the_user_may_wait(attacked, tmp_path):
    NODES.ssh("NODE1", "su you -c 'mkdir ~/data && ln -s /etc/shadow ~/data/lock'")
    play = tmp_path / "play.yml"
    role = {"name": "workload", "tasks_from": "data_directory"}
    variables = {"workload_data": "/home/you/data", "workload_home": HOME}
    tasks = [{"ansible.builtin.include_role": role, "vars": variables}]
    play.write_text(json.dumps([{"hosts": "NODE1", "gather_facts": False, "tasks": tasks}]))
    refused = said(NODES.playbook(play, HOME, ok=False))
    assert "/home/you belongs to you: root cannot write /home/you/data there safely" in refused


# A stand-in of an interpreter with torch: it notes who runs it.
MEASURE = "#!/bin/sh\nid -un >/opt/scalebook/work/measured-by\n"


def test_devices_are_measured_by_the_user_of_the_runs(provisioned, tmp_path):
    for node in ("NODE1", "NODE2"):
        NODES.ssh(node, "cat >/usr/local/bin/measure; chmod 755 /usr/local/bin/measure", stdin=MEASURE)
    few = {"gpus": 1, "device": "cpu", "microbench_python": "/usr/local/bin/measure"}
    variables = {"node_user": "you", "microbench_out": str(tmp_path), **few}
    NODES.playbook("microbench.yml", HOME, ok=False, **variables)
    owners = NODES.ssh("NODE1", f"cat {HOME}/work/measured-by; find {HOME}/work/microbench ! -user you")
    assert owners.stdout == "you\n"


def test_a_directory_that_others_can_write_is_refused_above_scalebook_home(attacked):
    NODES.ssh("NODE2", "mkdir -m 777 /srv/open")
    refused = NODES.playbook(
        "provision.yml", "/srv/open/scalebook", ok=False, workload="scripted", node_user="you"
    )
    assert "/srv/open may be written by others (mode 0777): root would execute" in said(refused)


def test_uninstall_takes_back_what_was_written(attacked):
    # Of /etc only what was not there before: files of packages stay.
    NODES.playbook("playbooks/uninstall.yml", HOME, node_user="you", remove_home=True)
    left = "grep -rl scalebook /etc ~you/.ssh; ls -d /opt/scalebook ~you/.ssh/*scalebook*; true"
    assert NODES.ssh("NODE1", left).stdout == ""
