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

    def line(self, node, pair=()):
        if pair in self.broken or node in self.broken:
            return self.broken.get(pair) or self.broken[node]
        line = {"name": None, "rates": {}, "traces": {}, "problems": {}}
        if pair and node == pair[0]:
            ways = {"forward": pair, "backward": pair[::-1]}
            line["rates"] = {way: self.rate(*ends) for way, ends in ways.items()}
            if len(self.devices) > 1:
                line["rails"] = {
                    way: [self.rate(*ends, rail) for rail in range(len(self.devices))]
                    for way, ends in ways.items()
                }
        elif not pair:
            line["name"] = self.name
            line["rates"] = {device: {"copy": self.rate(node, device)} for device in self.devices}
            line["traces"] = {
                device: f"{self.traces.get(node, 'aa bb')} torch 2.13" for device in self.devices
            }
        if self.nccl and pair and node == pair[0]:
            line["nccl"] = self.nccl
        return {"rc": 0, "stdout": "a warning\n" + json.dumps(line)}

    def report(self, **options):
        result = call_module(acceptance_report, **{**self.options, **options})
        assert "failed" not in result, result
        return result

    def judged(self):
        """Return acceptance.json and the last result, after all that had to be measured, as the role does."""
        result = self.report(again=False)
        while result["alone"] or result["rounds"]:
            alone = result["alone"]
            if alone:
                result = self.report(outputs={node: self.line(node) for node in alone})
            rounds = result["rounds"]
            self.asked.append((len(alone), sum(map(len, rounds))))
            for pairs in rounds:
                outputs = {node: self.line(node, tuple(pair)) for pair in pairs for node in pair}
                self.report(outputs=outputs, pairs=pairs, evaluate=False)
            result = self.report()
        return json.loads((self.folder / "acceptance.json").read_text()), result
