# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The Slurm allocation of a campaign: what it lacks is refused in one line with the fix."""

import datetime

import pytest
from ansible.module_utils.scalebook.plan.allocation import (
    advice,
    ends,
    gone,
    hostnames,
    hosts,
    refusal,
    slurm_reason,
    step_refusal,
    without_nodes,
)
from cases import cluster, gpu_case

# As Slurm 22.05 shows it, shortened.
SHOWN = (
    "JobId=7 JobName=bench Account=(null) JobState=RUNNING Reason=None TimeLimit=04:00:00 "
    "EndTime=2026-11-28T13:06:09 Partition=all ReqNodeList=(null) ExcNodeList=(null) NodeList=NODE[1-4] "
    "NumNodes=4 JOB_GRES=gpu:8   Nodes=NODE[1-4] CPU_IDs=0-1 Mem=0 GRES=gpu:h100:2(IDX:0-1) MinCPUsNode=1 "
    "OverSubscribe=NO Command=(null) TresPerNode=gres:gpu:2"
)


STATES = "NODE2|allocated|none\nNODE3|draining|bad GPU 5\nNODE4|down*|Not responding\n"


def problem(shown=SHOWN, allocation="7", nodes=4, gpus=2, states="", lost=(), **result):
    runs = [{"case": gpu_case(count, gpus)} for count in (1, nodes)]
    return refusal({"rc": 0, "stdout": shown, **result}, allocation, runs, cluster(4), states, lost)


def test_an_allocation_that_has_everything_is_not_refused():
    assert problem() == ""


def test_a_campaign_outside_of_an_allocation_is_told_how_to_make_one():
    assert problem(allocation="") == (
        "launcher=srun: bench.yml does not run in an allocation of Slurm, SLURM_JOB_ID is not set. "
        "Fix: start bench.yml in an allocation made with salloc --nodes=4 --exclusive --no-kill "
        "--gpus-per-node=2"
    )


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        ("RUNNING Reason=None", "PENDING Reason=Resources", "is PENDING, with the reason Resources"),
        ("RUNNING Reason=None", "PENDING Reason=InvalidQOS", "is PENDING, with the reason InvalidQOS"),
        ("OverSubscribe=NO", "OverSubscribe=OK", "others may run on the nodes of Slurm's job 7"),
        ("NodeList=NODE[1-4]", "NodeList=NODE[1-2,4]", "has NODE[1-2,4], without NODE3 of the inventory"),
        ("h100:2(IDX:0-1)", "h100:1(IDX:0)", "has 1 GPUs per node, and a case uses 2"),
        ("GRES=gpu:h100:2(IDX:0-1)", "GRES=", "has 0 GPUs per node, and a case uses 2"),
    ],
)
def test_what_an_allocation_lacks_is_named_with_the_fix(before, now, why):
    said = problem(SHOWN.replace(before, now))
    assert why in said
    assert "Fix: start bench.yml in an allocation made with salloc --nodes=4 --exclusive" in said


def test_slurm_s_own_reason_is_given_where_it_knows_no_such_job():
    said = problem(rc=1, stdout="", stderr="slurm_load_jobs error: Invalid job id specified\n")
    assert "scontrol does not show Slurm's job 7: slurm_load_jobs error: Invalid job id specified." in said


def test_the_node_with_the_fewest_gpus_counts():
    fewer = "Nodes=NODE4 CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:0) MinCPUsNode"
    assert "has 1 GPUs per node" in problem(SHOWN.replace("MinCPUsNode", fewer))


def test_runs_on_fewer_nodes_than_the_inventory_need_no_more():
    assert problem(SHOWN.replace("NODE[1-4]", "NODE[1-2]"), nodes=2) == ""


def test_a_node_that_slurm_drained_is_refused_with_slurm_s_reason_and_the_fix():
    assert problem(states=STATES.replace("down*", "allocated")) == (
        "launcher=srun: for Slurm NODE3 is draining, with the reason bad GPU 5. "
        "Fix: leave it out with --limit, or scontrol update nodename=NODE3 state=resume puts it back"
    )


def test_a_drained_node_that_no_run_needs_is_not_refused():
    assert problem(states=STATES, nodes=2) == ""


def test_the_campaign_goes_on_without_nodes_that_slurm_has_taken_away():
    answer = {"stdout": SHOWN.replace("NODE[1-4]", "NODE[1-2,4]")}
    assert gone(answer, cluster(4), "") == ["NODE3"]
    assert problem(answer["stdout"], lost=["NODE3"]) == ""


def test_nodes_out_of_service_are_gone_and_without_an_answer_of_slurm_none_is():
    assert gone({"stdout": SHOWN}, cluster(4), STATES) == ["NODE3", "NODE4"]
    assert gone({"rc": 1}, cluster(4), "") == []


def test_an_allocation_that_was_cancelled_stops_the_campaign():
    said = problem(SHOWN.replace("JobState=RUNNING", "JobState=CANCELLED"))
    assert "Slurm's job 7 is CANCELLED. Fix: start bench.yml in an allocation" in said


# What programs of Slurm 22.05 say; the lines of accounts and QOS with slurmdbd, MariaDB and
# AccountingStorageEnforce=associations,limits,qos, on 29 November 2026. That of a violated policy is from its
# manual.
SAID = [
    ("allocation failure: Invalid partition name specified", "sinfo --summarize"),
    ("Invalid account or account/partition combination specified", "sacctmgr show associations"),
    ("Invalid qos specification", "sacctmgr show associations"),
    ("QOSMaxNodePerUserLimit", "ask for fewer nodes or less time"),
    ("QOSMaxWallDurationPerJobLimit", "ask for fewer nodes or less time"),
    (
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        "sacctmgr show",
    ),
    ("srun: error: Invalid generic resource (gres) specification", "sinfo --format='%P %D %G'"),
    ("allocation failure: Requested node configuration is not available", "ask for no more"),
    ("salloc: error: Requested partition configuration not available now", "ask for no more"),
    ("PartitionConfig", "ask for no more"),
    ("PartitionNodeLimit", "ask for no more"),
    (
        "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
        "--list-reasons",
    ),
    ("srun: error: Only allocated 3 nodes asked for 4", "sinfo --list-reasons"),
    ("srun: error: Invalid MPI type 'nope', --mpi=list for acceptable types", "srun --mpi=list"),
    ("srun: unrecognized option '--nope'", "campaign_srun_options"),
]


@pytest.mark.parametrize(("reason", "fix"), SAID)
def test_a_reason_of_slurm_s_has_its_fix(reason, fix):
    assert fix in advice(reason)


def test_a_job_that_waits_for_a_limit_is_refused_with_what_helps():
    text = SHOWN.replace("RUNNING Reason=None", "PENDING Reason=QOSMaxNodePerUserLimit")
    assert without_nodes(text, "6", "Fix: start it again") == (
        "Slurm's job 6 has no nodes: PENDING, with the reason QOSMaxNodePerUserLimit. Fix: start it again; "
        "ask for fewer nodes or less time; sacctmgr show qos and sacctmgr show associations user=$USER have "
        "the limits"
    )


def test_the_line_that_tells_is_slurm_s_reason():
    lines = (
        "srun: error: Task launch for StepId=1.7 failed on node NODE2: Communication connection failure",
        "srun: error: Application launch failed: Communication connection failure",
        "srun: Job step aborted",
    )
    assert slurm_reason({"stderr": "\n".join(lines)}) == (
        "Task launch for StepId=1.7 failed on node NODE2: Communication connection failure"
    )


def test_a_step_that_srun_does_not_start_is_refused_in_one_line():
    answer = {"rc": 1, "stderr": "srun: error: Invalid generic resource (gres) specification\n"}
    start = "launcher=srun: srun does not start a step on the nodes: Invalid generic resource (gres) "
    assert step_refusal(answer).startswith(start + "specification. Fix: sinfo --format=")


def test_a_step_that_srun_starts_is_not_refused_for_what_it_warns_of():
    warning = "srun: cluster configuration lacks support for cpu binding"
    assert step_refusal({"rc": 0, "stderr": warning}) == ""


def test_what_a_waiting_allocation_waits_for_is_told_with_what_helps():
    why = problem(SHOWN.replace("RUNNING Reason=None", "PENDING Reason=InvalidQOS"))
    assert "sacctmgr show associations" in why


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("gpu1", ["gpu1"]),
        ("gpu[08-10,12],login", ["gpu08", "gpu09", "gpu10", "gpu12", "login"]),
        ("r[1-2]n[1-2]-ib", ["r1n1-ib", "r1n2-ib", "r2n1-ib", "r2n2-ib"]),
        ("", []),
    ],
)
def test_the_names_of_nodes_are_those_that_slurm_shortens(text, names):
    assert hostnames(text) == names


def end(seconds, shown=SHOWN):
    return ends({"rc": 0, "stdout": shown}, seconds, datetime.datetime(2026, 11, 28, 12, 0, 9))


def test_the_end_of_an_allocation_is_shown_with_the_time_that_is_left():
    assert end(0) == (
        "Slurm's job 7, in which the runs are steps, ends at 2026-11-28 13:06:09, in 1 h 6 min."
    )


def test_runs_that_take_longer_than_the_allocation_are_announced_before_the_first():
    assert end(7260).endswith(
        " The runs take 2 h 1 min, as earlier ones did: what is not measured by then is measured by the same "
        "command in another allocation."
    )


def test_an_allocation_without_an_end_has_none_to_show():
    assert end(7260, SHOWN.replace("2026-11-28T13:06:09", "Unknown")) == ""


def test_the_nodes_of_an_allocation_are_hosts_with_their_addresses_and_gpus():
    shown = SHOWN.replace("Nodes=NODE[1-4]", "Nodes=NODE[1-2]").replace(
        "MinCPUsNode=1 ", "MinCPUsNode=1   Nodes=login CPU_IDs=0 Mem=0 GRES= MinCPUsNode=1 "
    )
    nodes = "NodeName=NODE1 Arch=x86_64 NodeAddr=10.11.0.2 NodeHostName=NODE1\n"
    assert hosts(shown, nodes) == {
        "NODE1": {"node_address": "10.11.0.2", "slots": 2},
        "NODE2": {"node_address": "NODE2", "slots": 2},
        "login": {"node_address": "login", "slots": 1},
    }
