# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The nodes: one network, one container each."""

import concurrent.futures
import dataclasses
import ipaddress
import json
import secrets
import socket
import time

from . import leftovers, nodefiles
from .access import Access
from .base import LABEL, STATE, ClusterError, run, say, write
from .engine import Engine
from .hostsettings import HostSettings

DEFAULT_NET = "10.11.0"
MOST = 4
# Seconds for a node to make its host keys and greet: two when the machine is idle.
PATIENCE = 90


@dataclasses.dataclass
class Kind:
    """What a node is created from.

    image: its image's name. host: what it takes over from this machine. known_bundle: the CA bundle of the
    image. files: {path below /: text} besides.
    """

    image: str
    host: HostSettings
    known_bundle: str
    files: dict


class Cluster:
    """Up to four nodes on one subnet.

    net: first three numbers of the subnet, node k has address net.(k+1). The default net's files lie
    in .scalebook/test-cluster itself; another net is a second, independent cluster in a folder below.
    """

    def __init__(self, engine: Engine, net: str = DEFAULT_NET) -> None:
        try:
            self.subnet = str(ipaddress.IPv4Network(f"{net}.0/24"))
        except ValueError:
            raise ClusterError(f"--net {net!r}: give three numbers such as {DEFAULT_NET}") from None
        self.engine = engine
        self.net = net
        self.folder = STATE if net == DEFAULT_NET else STATE / net
        self.bridge = f"sb{net}"
        self.network = ""  # its name, once it is there
        self.access = Access(self.folder, net)

    def name(self, number: int) -> str:
        """Return the container's name; the host name inside is always NODE<number>."""
        return f"NODE{number}" if self.net == DEFAULT_NET else f"NODE{number}.{self.net}"

    def address(self, number: int) -> str:
        return f"{self.net}.{number + 1}"

    def mac(self, number: int) -> str:
        """Return the node's MAC address.

        The same after every start: its peers remember it for half a minute and would talk to nobody.
        """
        return "02:42:" + ":".join(f"{int(part):02x}" for part in self.address(number).split("."))

    # -- network ---------------------------------------------------------------------------------

    def networks(self) -> list:
        """Return the names of this cluster's networks: one, or none."""
        label = f"label={LABEL}={self.folder}"
        return self.engine("network", "ls", "--filter", label, "--format", "{{.Name}}").stdout.split()

    def ensure_network(self, mtu: int) -> str:
        """Make the bridge unless it is there, and return the network's name.

        A new network has a new name: Podman's list of addresses in use goes by name, and a killed run
        leaves addresses in it that no command frees.
        """
        names = self.networks()
        if names:
            return names[0]
        leftovers.remove_idle_bridge(self.bridge)
        self._refuse_taken_subnet()
        name = f"scalebook-test-{self.net}-{secrets.token_hex(3)}"
        options = ["--driver", "bridge", "--subnet", self.subnet, "--gateway", f"{self.net}.1"]
        options += ["--label", f"{LABEL}={self.folder}"]
        if self.engine.name == "podman":
            # The MTU of the way out: 1500 bytes would be dropped without a word where that has 1400.
            options += ["--disable-dns", "--opt", f"mtu={mtu}"]
        else:
            options += ["--opt", f"com.docker.network.bridge.name={self.bridge}"]
            options += ["--opt", f"com.docker.network.driver.mtu={mtu}"]
        self.engine("network", "create", *options, name)
        if self.engine.name == "podman":
            self._name_bridge(name)
        return name

    def _name_bridge(self, name: str) -> None:
        """Give the bridge our own name in Podman's record of the network.

        Podman's choice, podman1 and so on, may be that of another Podman's network which is not up
        just now; `network create --interface-name` is not there before Podman 4.6.
        """
        record = STATE / "networks" / f"{name}.json"
        text = record.read_text()
        write(record, json.dumps({**json.loads(text), "network_interface": self.bridge}, indent=2))

    def _refuse_taken_subnet(self) -> None:
        wanted = ipaddress.IPv4Network(self.subnet)
        for line in run(["ip", "-4", "-o", "addr", "show"]).stdout.splitlines():
            fields = line.split()
            if ipaddress.IPv4Interface(fields[3]).network.overlaps(wanted):
                raise ClusterError(
                    f"{self.subnet} is taken: interface {fields[1]} has {fields[3]}. If that is another "
                    "checkout's test cluster, run its tests/cluster/down; else choose a subnet: --net 10.12.0"
                )

    # -- containers ------------------------------------------------------------------------------

    def existing(self) -> dict:
        """Return {container name: inspect data} of this cluster's containers."""
        label = f"label={LABEL}={self.folder}"
        names = self.engine("ps", "-a", "--filter", label, "--format", "{{.Names}}").stdout.split()
        found = {name: self.engine.inspect("container", name) for name in names}
        return {name: data for name, data in found.items() if data}

    def ensure_node(self, number: int, found: dict | None, kind: Kind, mounts: list) -> str:
        """Start one node and return what was done: kept, restarted or created."""
        name, address = self.name(number), self.address(number)
        if found:
            done = self._revive(number, found)
            if done:
                return done
            self._remove([name])
        elif self.engine.name == "podman":
            # A killed `podman create` leaves storage of this name that does not belong to a container.
            self.engine("rm", "-f", name, check=False)
        elif self.engine.inspect("container", name):
            raise ClusterError(f"a container {name} that is not ours is in the way: rename or remove it")
        self._create(number, kind, mounts)
        self.engine("start", name)
        if not answers(address, PATIENCE):
            last = self.engine("logs", "--tail", "5", name, check=False)
            raise ClusterError(f"sshd on {name} does not answer:\n  {(last.stdout + last.stderr).strip()}")
        return "created"

    def _revive(self, number: int, found: dict) -> str | None:
        """Make a container that exists answer again; say what it took, None when nothing helped."""
        name, address = self.name(number), self.address(number)
        if found["State"]["Status"] in ("created", "configured", "initialized"):
            return None  # never started: an interrupted `up` may not have given it its files
        paused = found["State"].get("Paused")
        if paused:
            self.engine("unpause", name, check=False)
        elif not found["State"]["Running"]:
            self.engine("start", name, check=False)
            return "started" if answers(address, PATIENCE) else None
        plugged = self.network in (found["NetworkSettings"].get("Networks") or {})
        if not plugged:
            same = ["--ip", address]
            if self.engine.name == "podman":
                same += ["--mac-address", self.mac(number)]
            self.engine("network", "connect", *same, self.network, name, check=False)
        if answers(address, 3):
            return "kept" if plugged and not paused else "repaired"
        # A link that is down or a filter inside: both end with the container's network.
        self.engine("stop", "-t", "1", name, check=False)
        self.engine("start", name, check=False)
        return "restarted" if answers(address, PATIENCE) else None

    def _create(self, number: int, kind: Kind, mounts: list) -> None:
        name, host = self.name(number), kind.host
        argv = ["create", "--name", name, "--hostname", f"NODE{number}", "--init", "--stop-timeout", "1"]
        argv += ["--network", self.network, "--ip", self.address(number), "--mac-address", self.mac(number)]
        argv += ["--shm-size", "256m", "--label", f"{LABEL}={self.folder}"]
        if self.engine.name == "podman":
            # --no-hosts: an /etc/hosts that is a mount could not be replaced by a role.
            argv += ["--no-hosts", "--systemd=false", "--cgroup-parent", "/scalebook-test"]
        else:
            argv += ["--ulimit", "nofile=1024:4096"]
        for key, value in host.env.items():
            argv += ["--env", f"{key}={value}"]
        for mount in [*(f"{folder}:{folder}:ro" for folder in host.folders), *mounts]:
            argv += ["--volume", mount]
        self.engine(*argv, kind.image)
        public_key = self.access.key.with_suffix(".pub").read_text()
        files = nodefiles.contents(host, public_key, kind.known_bundle) | kind.files
        if self.engine.name == "podman":
            # As Debian's installer leaves it: the host's own name is a loopback address.
            files["etc/hosts"] = f"127.0.0.1 localhost\n127.0.1.1 NODE{number}\n::1 localhost ip6-localhost\n"
        self.engine("cp", "-", f"{name}:/", data=nodefiles.pack(files))

    def _host_keys(self, number: int) -> list:
        """Read a node's public host keys inside it, not over the network that they are to secure."""
        read = ["sh", "-c", "cat /etc/ssh/ssh_host_*_key.pub"]
        return self.engine("exec", self.name(number), *read).stdout.splitlines()

    # -- up and down -----------------------------------------------------------------------------

    def up(self, kinds: list, fresh: bool, mounts: list) -> None:
        """Make exactly NODE1..NODE<n> answer over ssh, one for each kind; create missing ones."""
        count = len(kinds)
        self.access.ensure_key()
        found = self.existing()
        wanted = [self.name(number) for number in range(1, count + 1)]
        surplus = [name for name in found if fresh or name not in wanted]
        if surplus:
            say("removing " + " ".join(sorted(surplus)))
            self._remove(surplus)
            found = {name: data for name, data in found.items() if name not in surplus}
        try:
            self._bring_up(kinds, mounts, found)
        except ClusterError as error:
            # What a killed run left behind can prevent a repair, but not the creation of new nodes.
            say(f"creating all nodes again, because: {error}")
            self._remove(list(self.existing()))
            self._bring_up(kinds, mounts, {})
        nodes = {f"NODE{number}": number for number in range(1, count + 1)}
        self.access.write(
            {node: self.address(number) for node, number in nodes.items()},
            {node: self._host_keys(number) for node, number in nodes.items()},
        )
        for node in nodes:
            seen = self.access.hostname(node)
            if seen != node:
                raise ClusterError(f"the host at {node}'s address calls itself {seen!r}")

    def _bring_up(self, kinds: list, mounts: list, found: dict) -> None:
        if not found:
            self._remove_networks()
        self.network = self.ensure_network(kinds[0].host.mtu)
        with concurrent.futures.ThreadPoolExecutor(MOST) as pool:
            work = {
                number: pool.submit(self.ensure_node, number, found.get(self.name(number)), kind, mounts)
                for number, kind in enumerate(kinds, 1)
            }
        for number, future in work.items():
            say(f"{self.name(number)} {self.address(number)}: {future.result()}")

    def down(self) -> list:
        """Remove containers, network and the files that lead to them; return the names removed."""
        self.access.remove()
        names = sorted(self.existing())
        self._remove(names)
        self._remove_networks()
        return names

    def _remove_networks(self) -> None:
        for name in self.networks():
            self.engine("network", "rm", name)

    def _remove(self, names: list) -> None:
        patience = ["-t", "0"] if self.engine.name == "podman" else []
        with concurrent.futures.ThreadPoolExecutor(MOST) as pool:
            list(pool.map(lambda name: self.engine("rm", "-f", *patience, name), names))


def answers(address: str, seconds: float) -> bool:
    """Tell whether an ssh server greets at the address within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((address, 22), timeout=2) as connection:
                connection.settimeout(2)
                if connection.recv(4) == b"SSH-":
                    return True
        except OSError:
            time.sleep(0.1)
    return False
