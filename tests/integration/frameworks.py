# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Workloads, as the tests use them: installed on this machine, and shown to four hosts."""

import json
from functools import partial

import local_nodes
from container_nodes import Nodes, shown
from local_nodes import HOME, ROOT, changed, turn
from nets import free_net

NODES = Nodes(free_net("10.11.19", "10.12.19", "10.13.19", "10.14.19"))


class Framework:
    """A framework, the folder that it is installed below, and what plays on it are given."""

    def __init__(self, name, parts, home=HOME, install=None, **given):
        self.name = name
        self.home = home
        self.parts = [home / part for part in parts]
        self.given = {"workload": name, **given}
        self.to_install = {**self.given, **(install or {})}
        self.said = ""
        self.play = partial(local_nodes.play, scalebook_home=str(home), **self.given)
        self.on_hosts = partial(NODES.playbook, home=home, **self.given)

    def install(self):
        """Install what is not there yet; keep what provisioning says that finds all in place."""
        provision = partial(
            local_nodes.play, "provision.yml", scalebook_home=str(self.home), **self.to_install
        )
        with turn(self.home):
            self.said = provision()
            if changed(self.said):
                self.said = provision()

    def provision_hosts(self):
        return self.on_hosts("provision.yml", **self.to_install)


TF2_BERT = Framework("tf2_bert", ["openmpi", "tf2_bert"])
TORCH_BERT = Framework("torch_bert", ["openmpi", "torch_bert"])
HF_MLM = Framework("hf_mlm", ["openmpi", "hf_mlm"])
DEEPSPEED_BERT = Framework(
    "deepspeed_bert",
    ["openmpi", "deepspeed_bert"],
    home=ROOT / ".scalebook/test-deepspeed",
    deepspeed_bert_device="cpu",
    device="cpu",
)
# Its build, by far the longest part, is without optimization and with MPI alone; the wheel is kept, and built
# again only when its recipe has changed.
HOROVOD_BERT = Framework(
    "horovod_bert",
    ["openmpi", "torch_bert", "horovod/pytorch"],
    home=ROOT / ".scalebook/test-horovod_bert",
    install={
        "horovod_bert_device": "cpu",
        "horovod_operations": ["MPI"],
        "horovod_environment": {"HOROVOD_DEBUG": "1"},
    },
    device="cpu",
)
ALL = (TF2_BERT, TORCH_BERT, HF_MLM, DEEPSPEED_BERT, HOROVOD_BERT)


def start_hosts(frameworks):
    """Make the four hosts, with the packages of role node and what is installed here of these frameworks."""
    NODES.up("--ready", *shown(*dict.fromkeys(part for framework in frameworks for part in framework.parts)))


def record_of(results):
    """Return the record of the one run below `results`, and the folder that it lies in."""
    (path,) = results.glob("*/runs/*/1/result.json")
    return json.loads(path.read_text()), path.parent
