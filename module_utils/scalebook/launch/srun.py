# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Node jobs -> the command line of srun that starts them all, as one step of the user's allocation."""

from __future__ import annotations

from collections.abc import Sequence

from ansible.module_utils.scalebook.contracts import Node, NodeJob

PASSED_ON = ("SCALEBOOK_JOB", "HOME", "USER", "LOGNAME", "LANG", "PATH")
"""Variables of run_job that the node jobs have too; without a list srun passes on the whole environment."""


def step_command(
    jobs: Sequence[NodeJob],
    members: Sequence[Node],
    run_node: Sequence[str],
    processes: int,
    options: Sequence[str],
    allocation: str,
) -> list[str]:
    """Return the command that starts the node jobs of one run in the Slurm job `allocation`.

    The other arguments are those of jobs.job_command.  The step has the directory of the first node's job as
    its name, by which slurm_step.py finds it.  srun keeps the order of the nodes only with the distribution
    `arbitrary`, which needs a node's name once for each of its processes.
    """
    spread = [node["name"] for node in members for _ in range(processes)]
    return [
        "srun",
        f"--jobid={allocation}",
        f"--job-name={jobs[0]['dir']}",
        f"--ntasks={len(spread)}",
        "--distribution=arbitrary",
        f"--nodelist={','.join(spread)}",
        "--kill-on-bad-exit=1",
        # Otherwise it would wait for what else runs in the allocation, and for a processor for each process.
        "--overlap",
        "--overcommit",
        "--cpu-bind=none",
        "--input=none",
        "--chdir=/",
        f"--export={','.join(PASSED_ON)}",
        *options,
        *run_node,
        "--processes",
        str(processes),
        *(f"{job['node']}={job['dir']}" for job in jobs),
    ]
