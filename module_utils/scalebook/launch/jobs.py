# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Case -> node jobs: what each node of a run is given, and the one command that starts them all."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict

from ansible.module_utils.scalebook.contracts import VARIABLES, Case, Message, Node, NodeJob, message
from ansible.module_utils.scalebook.launch.srun import step_command
from ansible.module_utils.scalebook.workload import Workload


def make_jobs(case: Case, repeat: int, campaign: str, members: Sequence[Node], port: int) -> list[NodeJob]:
    """Return the node jobs of one run, one per node in task_index order.

    `members` are the case's nodes in task_index order, `port` is the first port to use.  Nodes that share
    an address get consecutive ports (two gRPC servers cannot share one on a host, not even on different
    127.0.0.x), and nodes that share a machine get its GPUs in order.  Raises ValueError for a node whose
    directory for jobs is not known.
    """
    homeless = [node["name"] for node in members if not node.get("work")]
    if homeless:
        raise ValueError(f"{', '.join(homeless)}: no directory for jobs is known")
    run = f"{campaign}/{case['name']}/{repeat}"
    ports = [port + earlier for earlier in _earlier([node["address"] for node in members])]
    before = _earlier([node["machine"] for node in members])
    hosts = ",".join(node["address"] for node in members)
    workers = ",".join(f"{node['address']}:{p}" for node, p in zip(members, ports, strict=True))
    jobs: list[NodeJob] = []
    for index, node in enumerate(members):
        directory = f"{node['work']}/{node['name']}/{run}"
        first = before[index] * case["gpus"]
        devices = range(first, first + case["gpus"]) if case["device"] == "gpu" else ()
        values: Mapping[str, Any] = case
        env = {
            **{variable: values[name] for name, variable in VARIABLES.items() if name in values},
            "SCALEBOOK_RUN": run,
            "NODE": node["name"],
            "TASK_INDEX": index,
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, devices)),
            "HOSTS": hosts,
            "WORKER_HOSTS": workers,
            "PORT": ports[index],
            "MASTER_ADDR": members[0]["address"],
            "MASTER_PORT": ports[0],
            "STEPS": case["warmup"] + case["window"],
            "JOB_DIR": directory,
            # Trainers print local time: a change to or from summer time would count as time of training.
            "TZ": "UTC",
        }
        jobs.append(
            {
                "node": node["name"],
                "host": node["host"],
                "task_index": index,
                "run": run,
                "dir": directory,
                "env": {name: text_of(value) for name, value in env.items()},
            }
        )
    return jobs


class Layout(TypedDict):
    """Where a run goes: its nodes in task_index order, the hosts that act for them, and their node jobs.

    `skipped` is the reason why it is skipped, "" when it may start; `note` is for its record. `local_logs`
    are those of nodes that are this machine.
    """

    skipped: str
    note: str
    members: list[Node]
    names: list[str]
    hosts: list[str]
    jobs: list[NodeJob]
    jobs_of: dict[str, list[NodeJob]]
    local_logs: dict[str, str]


def layout(
    case: Case,
    repeat: int,
    campaign: str,
    members: Sequence[Node],
    port: int,
    skipped: str = "",
    note: str = "",
) -> Layout:
    """Return where a run goes; one that is skipped has no jobs. For the other arguments see make_jobs."""
    jobs = [] if skipped else make_jobs(case, repeat, campaign, members, port)
    hosts = list(dict.fromkeys(node["host"] for node in members))
    return {
        "skipped": skipped,
        "note": note,
        "members": list(members),
        "names": [node["name"] for node in members],
        "hosts": hosts,
        "jobs": jobs,
        "jobs_of": {host: [job for job in jobs if job["host"] == host] for host in hosts},
        "local_logs": {
            job["node"]: f"{job['dir']}/{job['node']}.log"
            for job, node in zip(jobs, members, strict=False)
            if node["machine"] == "localhost"
        },
    }


def directories(
    jobs: Iterable[NodeJob],
    workload: Workload,
    case: Case,
    limits: Mapping[str, int],
    script: str,
    settings: Mapping[str, Any],
    command: Sequence[str] = (),
    container: Mapping[str, Any] | None = None,
) -> dict[str, dict[str, str]]:
    """Return {directory: {file: content}} of node jobs.

    `script` is the text of run.sh; `limits` are arguments of `watch`, `settings` those of `telemetry`. The
    first node has the `command` that starts all jobs, for run_job. `container` is what container.py is given.
    """
    return {
        job["dir"]: {
            "job.env": env_file(variables(job, workload, case)),
            "watch.json": json.dumps(watch(workload, case, job["task_index"], **limits)),
            "telemetry.json": json.dumps(telemetry(**settings)),
            "run.sh": script,
            **({"container.json": json.dumps(container)} if container else {}),
            **({"launch.json": json.dumps(list(command))} if command and job["task_index"] == 0 else {}),
        }
        for job in jobs
    }


def variables(job: NodeJob, workload: Workload, case: Case) -> dict[str, str]:
    """Return the environment of a node job.

    A trainer may read the sizes of its model from MODEL_SIZE, so that they are those of the declaration.
    """
    sizes = workload.flops.models.get(case["model"], {}) if workload.flops else {}
    return {**job["env"], "MODEL_SIZE": json.dumps(sizes)}


ARGUMENT = 128 << 10
"""Bytes that Linux allows one argument of a program to have (MAX_ARG_STRLEN), with its closing NUL."""

ARGUMENTS = 2 << 20
"""Bytes that all arguments of a program have together, with the usual limit for the stack of 8 MB."""


def too_long(command: Sequence[str], environment: Mapping[str, str]) -> Message | None:
    """Return why Linux would not start `command`, or a node's part with this `environment`; None if it does.

    The list of srun's nodes may be longer than an argument: run_job then puts it into a file.
    """
    arguments = [word for word in command if not word.startswith("--nodelist=")]
    values = [f"{name}={value}" for name, value in environment.items()]
    for what, words in (("argument", arguments), ("variable", values)):
        sizes = [len(word.encode(errors="surrogateescape")) + 1 for word in words]
        if max(sizes, default=0) > ARGUMENT:
            return message(f"launch.long-{what}", size=max(sizes), limit=ARGUMENT)
        if sum(sizes) + 8 * len(sizes) > ARGUMENTS - ARGUMENT:  # what is left is for other variables
            return message(f"launch.many-{what}s", size=sum(sizes), limit=ARGUMENTS - ARGUMENT)
    return None


def text_of(value: Any) -> str:
    """Return a value as variables and parameters have it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def watch(
    workload: Workload,
    case: Case,
    task_index: int,
    stall: int,
    rendezvous: int,
    log: int = 0,
) -> dict[str, Any]:
    """Return the limits for a node's output, and how run_node recognises a step line.

    `log` are the MB that it may have, 0 for any number.  A node that prints no steps has no other limits: it
    is silent from its first lines to its last, and when the job hangs, the first node falls silent.
    """
    size, rules = {"log": int(log) * 10**6} if log else {}, workload.log
    if task_index and rules.first_node:
        return size
    return {
        **size,
        "stall": int(stall),
        "rendezvous": int(rendezvous),
        "silences": {each.text: each.silence for each in workload.failures if each.silence},
        "literal": rules.step.literal.decode(),
        "pattern": rules.step.pattern.pattern.decode(),
        "warmup": case["warmup"],
        "last": case["warmup"] + case["window"],
    }


def telemetry(interval: Any, directories: Sequence[str]) -> dict[str, Any]:
    """Return what a node's sampler is given: see parameter telemetry_interval, and whose disks are read.

    `directories` may be files and patterns of files, too.
    """
    places = {re.sub(r"/[^/]*[*?\[].*", "", place) or "/" for place in directories}
    # Numbers that went through a template are text on ansible-core 2.16.
    return {"interval": float(interval), "directories": sorted(places)}


def env_file(env: Mapping[str, str]) -> str:
    """Return `env` as the text of job.env, one KEY=VALUE per line; a value never spans lines."""
    for name, value in env.items():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError(f"{name}: a value of job.env cannot span lines: {value!r}")
    return "".join(f"{name}={value}\n" for name, value in env.items())


def processes_of(case: Case, workload: Workload) -> int:
    """Return how many processes of the node script a node starts: one, or one per GPU.

    Where that depends on a setting, such as the launcher, `processes_per_node` is
    `{setting: {value: number}}`.
    """
    processes = workload.processes_per_node
    if isinstance(processes, Mapping):
        [(setting, numbers)] = processes.items()
        processes = numbers[workload.setting_values[setting]]
    return case["gpus"] if processes == "gpus" else int(processes)


def start_command(
    launch: Mapping[str, Any],
    jobs: Sequence[NodeJob],
    members: Sequence[Node],
    case: Case,
    workload: Workload,
) -> list[str]:
    """Return the command line that starts all node jobs of a run.

    `launch` has the `launcher`, mpirun or srun, the `options` and the `run_node` for it, and what it needs:
    the path of `mpirun`, or the id of the `allocation`.
    """
    processes = processes_of(case, workload)
    run_node, options = launch["run_node"], launch["options"]
    if launch["launcher"] == "srun":
        return step_command(jobs, members, run_node, processes, options, launch["allocation"])
    return job_command(jobs, members, launch["mpirun"], run_node, processes, options)


def job_command(
    jobs: Sequence[NodeJob],
    members: Sequence[Node],
    mpirun: str,
    run_node: Sequence[str],
    processes: int = 1,
    options: Sequence[str] = (),
) -> list[str]:
    """Return the mpirun command line of one job, which starts all its node jobs.

    `run_node` is the command that runs one node job (interpreter and file), `processes` how many of it a
    node starts.  Nodes of one machine with a local connection are ranks on localhost; otherwise each
    node is a host, in task_index order.
    """
    total = str(len(members) * processes)
    if all(node["machine"] == "localhost" for node in members):
        placing = ["--host", f"localhost:{total}", "-np", total, "--mca", "plm", "isolated"]
    else:
        hosts = ",".join(f"{node['address']}:{processes}" for node in members)
        settings = {
            # A silently dropped link is noticed in about 9 s with these, a dead node in about 1 s.
            "oob_tcp_keepalive_time": "3",
            "oob_tcp_keepalive_intvl": "1",
            "oob_tcp_keepalive_probes": "3",
            "plm_rsh_args": "-o BatchMode=yes -o ConnectTimeout=5",
        }
        # A daemon that hangs is found and ended by the name of its job, as all other processes are.
        mark = f"SCALEBOOK_JOB={jobs[0]['dir']}"
        if re.fullmatch(r"[\w/.=+,@%-]+", mark):  # mpirun takes the words apart at blanks
            settings["orte_launch_agent"] = f"env {mark} orted"
        placing = ["--host", hosts, "-np", total, "--map-by", f"ppr:{processes}:node"]
        for name, value in settings.items():
            placing += ["--mca", name, value]
    return [
        mpirun,
        *placing,
        # Otherwise mpirun gives one node after the other a second to stop; run_node needs none.
        "--mca",
        "odls_base_sigkill_timeout",
        "0",
        "--bind-to",
        "none",
        "-x",
        "SCALEBOOK_JOB",
        *options,
        *run_node,
        "--processes",
        str(processes),
        *(f"{job['node']}={job['dir']}" for job in jobs),
    ]


def _earlier(values: Sequence[str]) -> list[int]:
    """Return for each value how many before it are the same."""
    counts: Counter[str] = Counter()
    earlier = []
    for value in values:
        earlier.append(counts[value])
        counts[value] += 1
    return earlier
