# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Nodes that print what acceptance.yml asks them for, at rates that a test gives."""

import json
import random

import acceptance_report
from run_module import ROOT, call_module

NODES = [f"NODE{index}" for index in range(1, 9)]
EXPECTED = ROOT / "data/expected.yml"


class Site:
    """Eight nodes that print what they are asked for; `rates` gives parts and links a rate below 1."""

    def __init__(self, folder, nodes=NODES, name="AMD EPYC", devices=("CPU",), **options):
        self.source, self.folder = random.Random(48), folder
        self.nodes, self.name, self.devices = nodes, name, devices
        # Nodes, each with the share of its rate that a group with it has; and those below a switch that
        # carries what so many of them send at the same time.
        self.straggling, self.shared, self.carried = {}, set(), 1
        self.broken_groups = set()
        self.rates, self.traces, self.broken, self.nccl = {}, {}, {}, ""
        self.options = {
            "path": str(folder),
            "nodes": nodes,
            "expected": str(EXPECTED),
            "seconds": 60,
            **options,
        }
        self.asked = []

    def rate(self, *part):
        return 100 * self.rates.get(part, 1) * (1 + 0.003 * self.source.gauss(0, 1))

    def together(self, group, at_once):
        """Return the rate of a group of nodes, `at_once` are all groups that measure at the same time."""
        shared = self.shared & {node for each in at_once for node in each}
        rate = 1.5 * min(self.straggling.get(node, 1) for node in group)
        return rate * min(1, self.carried / len(shared)) if self.shared & {*group} else rate

    def line(self, node, step):
        """Return what a node prints of a step."""
        pair = step.get("nodes", [node])
        line = {"at": step["at"], "name": None, "rates": {}, "traces": {}, "problems": {}}
        if len(pair) == 1:
            line["name"] = self.name
            line["rates"] = {device: {"copy": self.rate(node, device)} for device in self.devices}
            line["traces"] = {
                device: f"{self.traces.get(node, 'aa bb')} torch 2.13" for device in self.devices
            }
        elif node == pair[0] and len(pair) == 2 and "group" not in step:
            ways = {"forward": pair, "backward": pair[::-1]}
            line["rates"] = {way: self.rate(*ends) for way, ends in ways.items()}
            if len(self.devices) > 1:
                line["rails"] = {
                    way: [self.rate(*ends, rail) for rail in range(len(self.devices))]
                    for way, ends in ways.items()
                }
            if self.nccl:
                line["nccl"] = self.nccl
        elif "group" in step and tuple(pair) in self.broken_groups:
            line["problems"] = {"node": "refused"}
        elif node == pair[0]:
            line["rates"] = {"all_reduce": self.together(pair, step.get("group", [pair]))}
        return line

    def printed(self, steps):
        """Return what all nodes printed of their steps, as the task has it."""
        return {node: self.of_node(node, of_node) for node, of_node in steps.items()}

    def of_node(self, node, steps):
        """Return what a node printed; what is broken of several nodes is printed by none of them."""
        if node in self.broken:
            return self.broken[node]
        broken = [tuple(step.get("nodes", ())) for step in steps]
        why = next((self.broken[group] for group in broken if group in self.broken), {"rc": 0})
        lines = [self.line(node, step) for step in steps if tuple(step.get("nodes", ())) not in self.broken]
        return {**why, "stdout": "a warning\n" + "\n".join(map(json.dumps, lines))}

    def report(self, **options):
        result = call_module(acceptance_report, **{**self.options, **options})
        assert "failed" not in result, result
        return result

    def judged(self):
        """Return acceptance.json and the last result, after all that had to be measured, as the role does."""
        result = self.report(again=False)
        while result["steps"]:
            steps = result["steps"]
            groups = [
                tuple(step.get("nodes", [node]))
                for node, of_node in steps.items()
                for step in of_node
                if "group" not in step
            ]
            self.asked.append(
                tuple(len({*filter(lambda each: len(each) == size, groups)}) for size in (1, 2))
            )  # noqa: B023
            result = self.report(outputs=self.printed(steps), steps=steps)
        return json.loads((self.folder / "acceptance.json").read_text()), result
