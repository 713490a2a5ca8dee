# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs as TensorFlow 2.3's BERT writes them, made to order; and DLPerf's 30 logs of seed figures.

The line formats are those of the recordings below tests/data/tf2_bert.
"""

import json
from datetime import datetime, timedelta
from pathlib import Path

from declared import workload
from dlperf_figures import SPEEDS

WORKLOAD = workload(
    name="tf2_bert",
    settings=["tf2_bert_checkpointing"],
    setting_types={"tf2_bert_checkpointing": "bool"},
    title="TensorFlow 2 official BERT pretraining",
    log={
        "literal": "Train Step: ",
        "step": r"(?P<time>\d{4} \d\d:\d\d:\d\d\.\d{6}) .*Train Step: (?P<step>\d+)/(?P<last>\d+)"
        r"\s+/ loss = (?P<loss>\S+)",
        "time": "absl",
    },
    sanity=[
        {
            "name": "devices",
            "literal": "Number of cores used",
            "pattern": r"Number of cores used :\s+(?P<value>\d+)",
            "expect": "devices",
        },
        {
            "name": "num_workers",
            "literal": "num_workers = ",
            "pattern": r"num_workers = (?P<value>\d+)",
            "expect": "nodes",
            "min_nodes": 2,
        },
        {"name": "end", "literal": "Training Summary", "pattern": "Training Summary", "where": "end"},
    ],
    oom=["OOM when allocating", "CUDA_ERROR_OUT_OF_MEMORY", "std::bad_alloc", "Killed"],
)


def step_line(step, at, last=120, loss="7.02980375289917"):
    """Return one step line; `at` is a datetime."""
    return (
        f"I{at:%m%d %H:%M:%S.%f} 139968644926336 model_training_utils.py:505] Train Step: {step}/{last}"
        f"  / loss = {loss}  masked_lm_accuracy = 0.071429  lm_example_loss = 6.310000"
        f"  next_sentence_accuracy = 0.562500  next_sentence_loss = 0.690000\n"
    )


def step_times(per_step, start=None, count=120, warm=3.0):
    """Return the times of steps 1..count: the first ones slower, as compiling makes them."""
    start = start or datetime(2020, 8, 26, 18, 6, 39, 31755)
    slow = timedelta(seconds=per_step * warm)
    quick = timedelta(seconds=per_step)
    times = []
    at = start
    for step in range(1, count + 1):
        at += slow if step <= 10 else quick
        times.append(at)
    return times


def log_text(times, devices=1, nodes=1, task_index=0, last=None, loss="7.02980375289917", first=1):
    """Return a whole log: what TensorFlow says first, a line per time, what it says last."""
    last = last or len(times)
    begin = ""
    if nodes > 1:
        hosts = ", ".join(f"'10.11.0.{2 + node}:11111'" for node in range(nodes))
        begin = (
            "INFO:tensorflow:MultiWorkerMirroredStrategy with cluster_spec = "
            f"{{'worker': [{hosts}]}}, task_type = 'worker', task_id = {task_index}, "
            f"num_workers = {nodes}, local_devices = ('/job:worker/task:{task_index}',), "
            "communication = CollectiveCommunication.AUTO\n"
        )
    lines = [step_line(step, at, last, loss) for step, at in enumerate(times, first)]
    end = times[-1] if times else datetime(2020, 8, 26, 18, 6, 39)
    summary = (
        f"I{end + timedelta(seconds=1):%m%d %H:%M:%S.%f} 139968644926336 model_training_utils.py:97]"
        " Training Summary: \n{'total_training_steps': 120, 'train_loss': 6.75}\n"
    )
    return f"{begin}***** Number of cores used :  {devices}\n" + "".join(lines) + summary


def log_of_speed(speed, nodes=1, gpus=1, bsz=64, start=None, **other):
    """Return the text of a log whose steps 21 to 120 ran at `speed` samples/s, all devices together."""
    per_step = nodes * gpus * bsz / speed
    times = step_times(per_step, start)
    # The window's length to the microsecond; the roundings of a hundred steps would add up.
    times[119] = times[19] + timedelta(seconds=per_step * 100)
    return log_text(times, devices=nodes * gpus, nodes=nodes, **other)


def write_tree(root):
    """Write DLPerf's 30 logs below `root`/bz64 as its scripts lay them out, and return that directory."""
    tree = Path(root) / "bz64"
    for label, speeds in SPEEDS.items():
        nodes, gpus = (int(part) for part in label[:-1].split("n"))
        (tree / label).mkdir(parents=True)
        for repeat, speed in enumerate(speeds, 1):
            (tree / label / f"bert_b64_fp32_{repeat}.log").write_text(log_of_speed(speed, nodes, gpus))
    return tree


def stamped(text, at=5123.0, wall=1795219345.0, every=0.0, times=None, exit_record=None, node="NODE1"):
    """Return `text` as run_node writes it: each line stamped, its own lines around it.

    `times` are monotonic seconds, one per line of `text`; without them each line is `every` later.
    """
    lines = text.splitlines(keepends=True)
    said = [f'SCALEBOOK {{"event": "start", "node": "{node}", "task_index": 0, "host": "h1", "pid": 1}}\n']
    said += lines
    stamps = times or [at + index * every for index in range(len(lines))]
    stamps = [stamps[0] if stamps else at, *stamps]
    if exit_record is not None:
        said.append(f"SCALEBOOK {json.dumps(exit_record)}\n")
        stamps.append(stamps[-1])
    return "".join(
        f"{stamp:.6f} {wall + stamp - at:.6f} {line}" for stamp, line in zip(stamps, said, strict=True)
    )


def exit_record(node="NODE1", task_index=0, status="exited", rc=0, **other):
    """Return run_node's exit record."""
    record = {
        "event": "exit",
        "node": node,
        "task_index": task_index,
        "host": f"host{task_index + 1}",
        "rc": rc,
        "signal": None,
        "status": status,
        "reason": None,
        "started": 1795219345.0,
        "ended": 1795219405.0 + task_index,
        "seconds": 60.0,
        "lines": 123,
    }
    return {**record, **other}
