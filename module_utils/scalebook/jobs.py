# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Case -> jobs: what each node of a run is told, and the one command that starts them all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def make_jobs(
    case: Mapping[str, Any],
    repeat: int,
    campaign: str,
    nodes: Sequence[Mapping[str, Any]],
    work: Mapping[str, str],
    port: int,
) -> list[dict[str, Any]]:
    """Return the jobs of one run, one per node in task_index order.

    `nodes` as in matrix.plan (inventory order: the index is the task_index), `work` maps a node
    to the directory its jobs live in, `port` is the first port to use. Nodes that share an
    address get consecutive ports (two gRPC servers cannot share one on a host, not even on
    different 127.0.0.x) and nodes that share a machine get its GPUs dealt in order.
    Each job: `{"node", "task_index", "run", "dir", "env": {name: text}}`.
    """
    run = f"{campaign}/{case['name']}/{repeat}"
    members = list(nodes[: case["nodes"]])
    ports = [port + _earlier(members, index, "address") for index in range(len(members))]
    hosts = ",".join(node["address"] for node in members)
    workers = ",".join(f"{node['address']}:{p}" for node, p in zip(members, ports, strict=True))
    jobs = []
    for index, node in enumerate(members):
        directory = f"{work[node['name']]}/{node['name']}/{run}"
        first = _earlier(members, index, "machine") * case["gpus"]
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
                "task_index": index,
                "run": run,
                "dir": directory,
                "env": {name: str(value) for name, value in env.items()},
            }
        )
    return jobs


def env_file(env: Mapping[str, str]) -> str:
    """Return `env` as the text of job.env, one KEY=VALUE per line; a value never spans lines."""
    for name, value in env.items():
        if "\n" in value or "\r" in value or "\0" in value:
            raise ValueError(f"{name}: a value of job.env cannot span lines: {value!r}")
    return "".join(f"{name}={value}\n" for name, value in env.items())


def gang_command(
    jobs: Sequence[Mapping[str, Any]],
    nodes: Sequence[Mapping[str, Any]],
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
    members = list(nodes[: len(jobs)])
    total = str(len(members) * processes)
    if all(node["machine"] == "localhost" for node in members):
        placing = ["--host", f"localhost:{total}", "-np", total, "--mca", "plm", "isolated"]
    else:
        hosts = ",".join(f"{node['address']}:{processes}" for node in members)
        # A silently dropped link is noticed in about 9 s with these, a dead node in about 1 s.
        keepalive = [
            "oob_tcp_keepalive_time",
            "3",
            "oob_tcp_keepalive_intvl",
            "1",
            "oob_tcp_keepalive_probes",
            "3",
        ]
        placing = ["--host", hosts, "-np", total, "--map-by", f"ppr:{processes}:node"]
        for name, value in zip(keepalive[::2], keepalive[1::2], strict=True):
            placing += ["--mca", name, value]
    return [
        mpirun,
        *placing,
        "--bind-to",
        "none",
        *options,
        *run_node,
        "--processes",
        str(processes),
        *(f"{job['node']}={job['dir']}" for job in jobs),
    ]


def _earlier(members: Sequence[Mapping[str, Any]], index: int, key: str) -> int:
    """Return how many nodes before `index` have the same `key`."""
    return sum(node[key] == members[index][key] for node in members[:index])
