# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How logs are read is checked with the rest of the declaration, when a campaign is planned."""

import copy

import pytest
from ansible.module_utils.scalebook.workload import ADDED, Workload, WorkloadError
from declared import vary, workload
from dlperf_logs import WORKLOAD
from role_files import declaration

DECLARED = workload()


def changed(path, value, declared=WORKLOAD.data):
    """Return the declaration with one entry changed, or taken out when `value` is None."""
    declared = copy.deepcopy(declared)
    *parents, last = path
    place = declared
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return declared


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("log",), None, "the key log is missing"),
        (("log",), "x", "log: is not a dict"),
        (("log", "literal"), "", "log.literal: is not a text"),
        (("log", "literal"), "a\nb", "log.literal: must lie within one line"),
        (("log", "step"), "Train Step: (?P<step>", "log.step: .* is not a regular expression"),
        (("log", "step"), r"Train Step: (\d+)", "log.step: the pattern has no group `step`"),
        (("log", "step"), r"(?P<step>\d+)", "log.time: give the format if and only if"),
        (("log", "time"), None, "log.time: give the format if and only if"),
        (("log", "time"), "swatch", "log.time: 'swatch'; allowed are absl, datetime, clock"),
        (("log", "steps"), "x", "log: unknown key 'steps'"),
        (("log", "nodes"), "some", "log.nodes: 'some'; allowed are all, first"),
        (("log", "rate"), {"scope": "world"}, "log.rate.scope: 'world'; allowed are global, rank"),
        (("log", "rate"), {"scope": "rank"}, "log.rate: give literal and pattern, or a group `rate`"),
        (("log", "rate"), {"literal": "x", "pattern": "x"}, "log.rate.pattern: the pattern has no group"),
        (
            ("log", "step"),
            r"(?P<time>x) (?P<step>\d+) (?P<rate>\d) (?P<latency>\d)",
            "log.step: a group `latency` stands for the rate, which is given too",
        ),
        (("log", "own"), {"literal": "x", "pattern": "x"}, "log.own.pattern: the pattern has no group"),
        (("log", "own"), {"literal": "x", "pattern": "(?P<rate>x)", "scope": "node"}, "log.own.scope"),
        (("log", "falling_loss"), 0, "log.falling_loss: 0 is not a whole number from 1 on"),
        (("log", "mean_after"), 2, "log.mean_after: give it if and only if log.step has a group `mean`"),
        (("log", "forms"), ["x"], r"log.forms\[0\]: is not a dict"),
        (("log", "forms"), [{"nodes": "first"}], r"log.forms\[0\]: unknown key 'nodes'"),
        (("log", "forms"), [{"literal": "x", "step": "x"}], r"log.forms\[0\].step: the pattern has no group"),
        (("log", "unread"), ["x"], r"log.unread\[0\]: is not a dict"),
        (("log", "unread"), [{"literal": "x", "pattern": "x"}], r"log.unread\[0\].program: is not a text"),
        (("self_reported",), {"literal": "x", "rate": 1}, "self_reported.rate: is not a text"),
        (("sanity", 2, "program"), "maybe", r"sanity\[2\].program: 'maybe'; allowed are true, false"),
        (("warmup",), "many", "warmup: 'many' is not a whole number from 0 on"),
        (("window",), 0, "window: 0 is not a whole number from 1 on"),
        (("sanity", 0, "expect"), "colour", r"sanity\[0\].expect: unknown 'colour'"),
        (("sanity", 0, "equals"), "nodes", r"sanity\[0\].equals: give it or expect"),
        (("sanity", 2, "equals"), "nodes", r"sanity\[2\].pattern: the pattern has no group `value`"),
        (("sanity", 0, "pattern"), r"used :\s+\d+", r"sanity\[0\].pattern: the pattern has no group `value`"),
        (("sanity", 1, "min_nodes"), "x", r"sanity\[1\].min_nodes: 'x' is not a whole number"),
        (("sanity", 1, "name"), "devices", "sanity: a name is used twice"),
        (("sanity", 2, "where"), "middle", r"sanity\[2\].where: 'middle'; allowed are any, end"),
        (("sanity", 2), "Training Summary", r"sanity\[2\]: is not a dict"),
        (("sanity", 2, "device"), "tpu", r"sanity\[2\].device: 'tpu'; allowed are cpu, gpu"),
        (("sanity", 2, "min_devices"), 0, r"sanity\[2\].min_devices: 0 is not a whole number from 1 on"),
        (("sanity", 2, "means"), {"False": False}, r"sanity\[2\].means: .* is not a dict of texts"),
        (("sanity", 2, "unless"), "", r"sanity\[2\].unless: is not a text"),
        (("sanity", 2, "if"), "", r"sanity\[2\].if: is not a text"),
        (("oom",), [""], "oom: .* is not a list of texts"),
        (
            ("install",),
            {"checkout": {"into": "x", "submodules": ["x"]}},
            "install.checkout.submodules: .* is not a dict of texts",
        ),
        (("failures",), ["x"], r"failures\[0\]: is not a dict"),
        (("failures",), [{"literal": "x"}], r"failures\[0\].why: is not a text"),
        (("failures",), [{"literal": "x", "why": "y", "fix": "z"}], r"failures\[0\]: unknown key 'fix'"),
        (("failures",), [{"literal": "x", "why": "y", "silence": 0}], r"failures\[0\].silence: 0 is not a"),
    ],
)
def test_a_wrong_declaration_is_refused_by_the_name_of_its_key(path, value, message):
    with pytest.raises(WorkloadError, match=message):
        Workload.from_data(changed(path, value))


def test_a_formula_of_a_log_names_what_cases_have():
    rule = {"name": "it", "literal": "it", "pattern": "(?P<value>.)", "equals": "nodes // colour"}
    with pytest.raises(WorkloadError, match="sanity: nodes // colour, model .*: the case has no colour"):
        Workload.from_data(changed(("sanity", 0), rule))


def test_a_loss_that_must_fall_has_to_be_read():
    with pytest.raises(WorkloadError, match="log.falling_loss: log.step has no group `loss`"):
        vary(DECLARED, log={**DECLARED.data["log"], "falling_loss": 2})


def test_numbers_of_templates_may_be_text():
    assert Workload.from_data(changed(("window",), "50")).need == 70


def places(value, path=()):
    """Yield the path of every value of a declaration."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places(each, (*path, key))


@pytest.mark.parametrize("name", ["torch_resnet50", "mxnet_resnet50", "hf_mlm", "horovod_tf1_bert"])
@pytest.mark.parametrize("value", [7, "x", [], {}, [[]], {"x": 7}, {"x": []}, {"x": {"y": {"z": 1}}}, True])
def test_whatever_stands_in_a_declaration_is_read_or_refused_with_a_reason(name, value):
    declared = declaration(name).as_data()
    for path in places({key: each for key, each in declared.items() if key not in ADDED}):
        try:
            Workload.from_data(changed(path, value, declared))
        except WorkloadError as error:
            assert str(error)
