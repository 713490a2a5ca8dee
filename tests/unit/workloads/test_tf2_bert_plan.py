# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The cases of tf2_bert that are planned on CPUs."""

import pytest
from cases import cluster, plan
from declared import with_settings
from role_files import declaration


@pytest.mark.parametrize(("version", "planned"), [("2.20", []), ("2.3.0", ["fp16"])])
def test_forced_fp16_with_xla_on_a_cpu_is_planned_where_xla_computes_it(version, planned):
    """XLA of TensorFlow 2.20 computes fp16 in fp32 there."""
    workload = with_settings(declaration("tf2_bert"), version=version, steps_per_loop=1)
    given = {"dtype": "fp16", "gpus": 1, "xla": True, "force": True}
    made = plan(given, workload, cluster(1), "tf2_bert", "cpu")
    assert [case["dtype"] for case in made["cases"]] == planned


def test_a_window_that_does_not_end_with_a_call_is_refused():
    workload = with_settings(declaration("tf2_bert"), version="2.3.0", steps_per_loop=8)
    made = plan({"gpus": 1, "warmup": 16, "window": 100}, workload, cluster(1), "tf2_bert", "cpu")
    assert [skipped["reason"] for skipped in made["skipped"]] == [
        "warmup=16 and window=100 must be multiples of tf2_bert_steps_per_loop=8"
    ]
