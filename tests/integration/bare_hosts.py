# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Four hosts over ssh that were bare, provisioned for tf2_bert by the command that a user types.

What this machine has installed for its own local nodes is shown to the hosts at the same path, and each
writes for itself: four hosts would else install 850 MB each.
"""

from container_nodes import ROOT, Nodes, shown
from local_nodes import HOME, provision
from nets import free_net

NODES = Nodes(
    free_net("10.11.15", "10.12.15", "10.13.15", "10.14.15"),
    ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"),
    ANSIBLE_ROLES_PATH=f"{ROOT}/roles:{ROOT}/tests/roles",
)


def play(playbook, inventory=None, **variables):
    return NODES.playbook(playbook, HOME, inventory=inventory, ok=False, **variables)


def start():
    """Start the hosts and provision them; return the finished ansible-playbook."""
    provision("tf2_bert")
    NODES.up(*shown(HOME / "openmpi", HOME / "tf2_bert"))
    return play("provision.yml")
