# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Case -> jobs: what each node of a run is told, and the one command that starts them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def make_jobs(
    case: Mapping[str, Any],
    repeat: int,
    campaign: str,
    members: Sequence[Mapping[str, Any]],
    port: int,
) -> list[dict[str, Any]]:
    """Return the jobs of one run, one per node in task_index order.

    `members` are the case's nodes in task_index order, as in matrix.plan and with `host`, the
    inventory's host that acts for the node, and `work`, where its jobs live. `port` is the first port
    to use. Nodes that share an address get consecutive ports (two gRPC servers cannot share one on
    a host, not even on different 127.0.0.x) and nodes that share a machine get its GPUs dealt in order.
    Each job: `{"node", "host", "task_index", "run", "dir", "env": {name: text}}`.
    Raises ValueError for a node whose place of jobs is not known.
    """
    homeless = [node["name"] for node in members if not node["work"]]
    if homeless:
        raise ValueError(f"{', '.join(homeless)}: no directory for jobs is known")
    run = f"{campaign}/{case['name']}/{repeat}"
    ports = [port + earlier for earlier in _earlier(members, "address")]
    before = _earlier(members, "machine")
    hosts = ",".join(node["address"] for node in members)
    workers = ",".join(f"{node['address']}:{p}" for node, p in zip(members, ports, strict=True))
    jobs = []
    for index, node in enumerate(members):
        directory = f"{node['work']}/{node['name']}/{run}"
        first = before[index] * case["gpus"]
        devices = range(first, first + case["gpus"]) if case["device"] == "gpu" else ()
        env = {
            "SCALEBOOK_RUN": run,
            "NODE": node["name"],
            "TASK_INDEX": index,
            "NNODES": case["nodes"],
            "GPUS_PER_NODE": case["gpus"],
            "WORLD_SIZE": case["devices"],
            "DEVICE": case["device"],
            "CUDA_VISIBLE_DEVICES": ",".join(map(str, devices)),
            "HOSTS": hosts,
            "WORKER_HOSTS": workers,
            "PORT": ports[index],
            "MASTER_ADDR": members[0]["address"],
            "MASTER_PORT": ports[0],
            "BSZ": case["bsz"],
            "GLOBAL_BATCH": case["global_batch"],
            "ACCUMULATION": case["accumulation"],
            "DTYPE": case["dtype"],
            "XLA": "true" if case["xla"] else "false",
            "MODEL": case["model"],
            "STEPS": case["warmup"] + case["window"],
            "JOB_DIR": directory,
        }
        jobs.append(
            {
                "node": node["name"],
                "host": node["host"],
                "task_index": index,
                "run": run,
                "dir": directory,
                "env": {name: str(value) for name, value in env.items()},
            }
        )
    return jobs


def watch(
    workload: Mapping[str, Any], case: Mapping[str, Any], task_index: int, stall: int, rendezvous: int
) -> dict[str, Any]:
    """Return the limits that run_node holds a node's output against, and how it tells a step line.

    A node that shows no steps has none: it says nothing from its first lines to its last, and when the gang
    hangs, the first node falls silent.
    """
    log = workload["log"]
    if task_index and log.get("nodes") == "first":
        return {}
    return {
        "stall": int(stall),
        "rendezvous": int(rendezvous),
        "literal": log["literal"],
        "pattern": log["step"],
        "warmup": case["warmup"],
        "last": case["warmup"] + case["window"],
    }


def env_file(env: Mapping[str, str]) -> str:
    """Return `env` as the text of job.env, one KEY=VALUE per line; a value never spans lines."""
    for name, value in env.items():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError(f"{name}: a value of job.env cannot span lines: {value!r}")
    return "".join(f"{name}={value}\n" for name, value in env.items())


def gang_command(
    jobs: Sequence[Mapping[str, Any]],
    members: Sequence[Mapping[str, Any]],
    mpirun: str,
    run_node: Sequence[str],
    processes: int = 1,
    options: Sequence[str] = (),
) -> list[str]:
    """Return the mpirun command line of one gang (design §4).

    `run_node` is the command that runs one node's part (interpreter and file), `processes` how
    many of it a node starts. Nodes of one machine with a local connection are ranks on localhost;
    otherwise each node is a host of its own, in task_index order.
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
        placing = ["--host", hosts, "-np", total, "--map-by", f"ppr:{processes}:node"]
        for name, value in settings.items():
            placing += ["--mca", name, value]
    return [
        mpirun,
        *placing,
        # Otherwise one node after the other is given a second to end; run_node needs none.
        "--mca",
        "odls_base_sigkill_timeout",
        "0",
        "--bind-to",
        "none",
        "-x",
        "SCALEBOOK_GANG",
        *options,
        *run_node,
        "--processes",
        str(processes),
        *(f"{job['node']}={job['dir']}" for job in jobs),
    ]


def _earlier(members: Sequence[Mapping[str, Any]], key: str) -> list[int]:
    """Return for each node how many before it have the same `key`."""
    seen: Counter[Any] = Counter()
    earlier = []
    for node in members:
        earlier.append(seen[node[key]])
        seen[node[key]] += 1
    return earlier
