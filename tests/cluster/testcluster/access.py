# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Access to the nodes: the key of the control node, the nodes' host keys, ssh_config and the inventory."""

import hashlib
import shlex
from pathlib import Path

from .base import RUN, run, write

_INVENTORY = """\
---
# Written by tests/cluster/up, removed by tests/cluster/down.
nodes:
  hosts:
{hosts}
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: '{key}'
    ansible_ssh_common_args: >-
      {options}
    ansible_control_path: '{control}/%%C'
    slots: 1
    scalebook_home: /opt/scalebook
"""


class Access:
    """The files of one cluster's folder that lead to its nodes."""

    def __init__(self, folder: Path, net: str) -> None:
        self.folder = folder
        self.key = folder / "id_ed25519"
        self.known_hosts = folder / "known_hosts"
        self.ssh_config = folder / "ssh_config"
        self.inventory = folder / "inventory"
        # Sockets of connections that Ansible keeps open. Their paths must stay below 108 bytes.
        self._sockets = RUN / net

    def ensure_key(self) -> None:
        """Create the key pair of the control node if it does not exist."""
        if self.key.exists() and self.key.with_suffix(".pub").exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self.key.unlink(missing_ok=True)
        comment = "scalebook test cluster"
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(self.key)])

    def write(self, addresses: dict, host_keys: dict) -> None:
        """Write all files. Both dicts by node name: its address, its public host keys (lines)."""
        known = "".join(
            f"{node},{address} {' '.join(key.split()[:2])}\n"
            for node, address in addresses.items()
            for key in sorted(host_keys[node])
        )
        write(self.known_hosts, known)
        # Other host keys mean a new cluster: close the connections that are open to the old one.
        control = self._sockets / hashlib.sha256(known.encode()).hexdigest()[:6]
        self._close_connections(but=control)
        control.mkdir(mode=0o700, parents=True, exist_ok=True)
        options = {
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
        }
        blocks = [f"Host {node} {ip}\n  HostName {ip}\n" for node, ip in addresses.items()]
        common = {"User": "root", "IdentityFile": str(self.key), **options}
        blocks.append("Host *\n" + "".join(f'  {key} "{value}"\n' for key, value in common.items()))
        write(self.ssh_config, "".join(blocks))
        inventory = _INVENTORY.format(
            hosts="\n".join(f"    {node}: {{ansible_host: {ip}}}" for node, ip in addresses.items()),
            key=self.key,
            options="\n      ".join(f"-o {key}={shlex.quote(value)}" for key, value in options.items()),
            control=control,
        )
        write(self.inventory / "hosts.yml", inventory)

    def hostname(self, node: str) -> str:
        """Ask a node its name over ssh, as any user of these files would."""
        done = run(["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", node, "hostname"], timeout=30)
        return done.stdout.strip()

    def remove(self) -> None:
        """Close all connections and remove all files but the key."""
        self._close_connections()
        for path in (self.inventory / "hosts.yml", self.ssh_config, self.known_hosts):
            path.unlink(missing_ok=True)
        if self.inventory.is_dir() and not any(self.inventory.iterdir()):
            self.inventory.rmdir()

    def _close_connections(self, but: Path | None = None) -> None:
        """End the ssh connections that Ansible keeps open to the nodes, each through its own socket."""
        for folder in self._sockets.iterdir() if self._sockets.is_dir() else []:
            if folder == but:
                continue
            for path in folder.iterdir():
                run(["ssh", "-o", f"ControlPath={path}", "-O", "exit", "node"], check=False, timeout=10)
                path.unlink(missing_ok=True)
            folder.rmdir()
