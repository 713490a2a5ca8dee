# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""horovod_bert for real: Horovod's release is built for torch, and the devices of a node train together.

Its run on two hosts is in test_several_workloads.py.
"""

import frameworks
import pytest

pytestmark = pytest.mark.slow


def test_the_devices_of_a_node_train_together_in_fp16_by_way_of_the_host(horovod_bert, tmp_path):
    """Takes half a minute. With this rate, they have learnt the classes by then."""
    place = {"on_hosts": False, "campaign_port": 24760}
    case = {"nodes": 1, "gpus": 2, "slots": 2, "dtype": "fp16", "bsz": 4}
    learn = {"horovod_bert_learning_rate": 0.002, "horovod_bert_eval_samples": 101}
    learn["horovod_bert_through_host"] = True
    frameworks.bench(tmp_path, workload="horovod_bert", **case, **place, **learn)
    record, _ = frameworks.record_of(tmp_path)
    assert (record["status"], record["reason"]) == ("ok", None)
    assert [node["steps"] for node in record["nodes"]] == [list(range(1, 121))]
    evaluated = record["self_reported"]
    assert evaluated["eval_samples"] == "101" and float(evaluated["eval_accuracy"]) > 0.9
