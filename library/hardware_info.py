#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: hardware_info
short_description: Describe the hardware and the system of a node
description:
  - Returns what MLPerf's system description asks for, as far as the machine says it. A value that cannot be
    read is absent.
  - Returns too what tells the machine from all others.
  - Reads /proc, /sys, the network devices and nvidia-smi only, so it needs neither root nor a package.
options: {}
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Describe the hardware
  hardware_info: {}
  register: found
"""

RETURN = r"""
hardware:
  description: >-
    The keys system, kernel, processor, sockets, cores, threads, memory_gib, virtual, networks (a list of
    name, kind and speed_gbit), gpus (a list of name, memory_mib, power_limit_w, pcie_generation and
    pcie_width), gpu_links (how many pairs of GPUs each kind of link connects, as nvidia-smi topo names it),
    gpu_topology (its matrix), driver and cuda (the newest CUDA that the driver runs).
  returned: success
  type: dict
  sample: {system: "Ubuntu 18.04", processor: "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz", cores: 40}
identity:
  description: >-
    The keys machine (a digest of /etc/machine-id, which is confidential), container (a digest of the layer
    and the name of a container), board (a digest of the UUID that root alone can read), addresses
    (digests of the permanent hardware addresses of network devices), gpus (UUIDs) and boot (the boot_id of
    the kernel).
  returned: success
  type: dict
  sample: {machine: 0f3c9d1a2b4e5f60, addresses: [9a8b7c6d5e4f3a2b], gpus: [GPU-1c2d3e4f]}
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.node import hardware_facts


def argument_spec() -> Dict[str, Any]:
    return {}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    try:
        result = hardware_facts.run(module.params, module.check_mode)
    except (OSError, ValueError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
