# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The cable of a node: the interface of this machine that is the other end of the node's eth0."""

import re

from .base import ClusterError, run
from .nodes import Cluster


def find(cluster: Cluster, number: int) -> str:
    """Return the name of this machine's interface that leads to the node.

    Only ports of the cluster's own bridge are considered: interface numbers seen in a node must
    never be taken for those of the machine's own interfaces.
    """
    name = cluster.name(number)
    data = cluster.engine.inspect("container", name)
    if not data or not data["State"]["Running"]:
        raise ClusterError(f"{name} does not run: tests/cluster/up starts it")
    inside = run(
        ["nsenter", "-t", str(data["State"]["Pid"]), "-n", "ip", "-o", "link", "show", "eth0"], check=False
    )
    peer = re.search(r"eth0@if(\d+):", inside.stdout)
    ports = run(["ip", "-o", "link", "show", "master", cluster.bridge], check=False)
    for line in ports.stdout.splitlines():
        port = re.match(r"(\d+): ([^:@]+)", line)
        if peer and port and port[1] == peer[1]:
            return port[2]
    raise ClusterError(f"{name} is not plugged into {cluster.bridge}: tests/cluster/up plugs it in")


def switch(cluster: Cluster, number: int, state: str) -> None:
    """Pull the cable (`down`) or plug it in again (`up`). The node keeps addresses and routes."""
    run(["ip", "link", "set", find(cluster, number), state])
