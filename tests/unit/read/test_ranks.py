# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs in which a launcher tagged the lines of several ranks."""

import pytest
from ansible.module_utils.scalebook.read import ranks
from dlperf_logs import log_of_speed
from imports import DATA, import_log, rate

TAGS = {
    "mpirun": "[1,{0}]<stdout>:",
    "mpirun, stderr": "[1,{0}]<stderr>:",
    "mpirun 5": "[1,{0}]<stdout>: ",
    "mpirun with its time": "Mon Nov 23 03:07:12 2026[1,{0}]<stdout>:",
    "prterun": "[prterun-gpu-1-4711@1,{0}]<stdout>: ",
    "horovodrun": "[{0}]<stderr>:",
    "horovodrun with its time": "Mon Nov 23 03:07:12 2026[{0}]<stderr>:",
    "srun": "{0}: ",
    "srun of more than ten": " {0}: ",
    "Intel MPI": "[{0}] ",
    "PyTorch": "[rank{0}]:",
    "torchrun": "[default{0}]:",
    "pdsh": "gpu-{0}.cluster: ",
    "pdsh by address": "10.11.0.{0}: ",
    "pdsh and srun": "gpu-1: {0}: ",
    "Docker Compose": "worker-{0}  | ",
    "kubectl": "[pod/bert-worker-{0}/trainer] ",
    "pdsh and mpirun": "gpu-1: [1,{0}]<stdout>:",
    "pdsh and PyTorch": "gpu-1: [rank{0}]:",
    "twice": "[1,{0}]<stdout>:[1,{0}]<stdout>:",
    "coloured": "\x1b[36m[1,{0}]<stdout>:\x1b[0m",
    "coloured, after the colour of srun": "\x1b[1;31m{0}: \x1b[0m",
}


def mixed(tag, *logs, end="\n"):
    """Return one log of several, line by line in turn, each line with the tag of its rank."""
    lines = [log.splitlines() for log in logs]
    turns = zip(*lines, strict=False)
    return "".join(tag.format(rank) + line + end for turn in turns for rank, line in enumerate(turn))


def two(speed=256.0):
    return log_of_speed(speed, gpus=2)


@pytest.mark.parametrize("tag", TAGS.values(), ids=TAGS)
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_the_lines_of_the_first_rank_are_read(tag, end):
    record = import_log("tf2_bert", mixed(tag, two(), two(), end=end), "1n2g/bert_b64_fp32_1.log")
    assert rate(record) == pytest.approx(256.0)
    assert len(record["nodes"][0]["steps"]) == 120


def test_a_note_says_whose_steps_count():
    record = import_log(
        "tf2_bert", mixed("[1,{0}]<stdout>:", two(), two(), two()), "1n2g/bert_b64_fp32_1.log"
    )
    note = "launcher's tags: the steps of rank 0 count, those of rank 1, rank 2 agree"
    assert record["notes"] == [f"logs/1n2g/bert_b64_fp32_1.log: {note}"]


def test_ranks_come_in_the_order_of_their_numbers():
    logs = {10: two(), 2: two(), 9: two()}
    text = "".join(f"{rank}: {line}\n" for rank, log in logs.items() for line in log.splitlines())
    record = import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")
    assert "the steps of rank 2 count" in record["notes"][0]


def test_hosts_come_in_their_natural_order():
    text = mixed("n1{0}: ", two(), two()).replace("n11: ", "n9: ")
    assert "the steps of n9 count" in import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")["notes"][0]


def test_a_first_rank_without_steps_is_passed_over():
    text = "[1,0]<stdout>:starting\n" + mixed("[1,{0}]<stdout>:", two(), two()).replace("[1,0]", "[1,7]")
    assert "the steps of rank 1 count" in import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")["notes"][0]


def test_two_ranks_on_one_line_are_two_lines():
    text = mixed("[1,{0}]<stdout>:", two(), two()).replace("\n[1,1]", "[1,1]")
    assert rate(import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")) == pytest.approx(256.0)


def test_one_rank_with_tags_is_read_as_without():
    record = import_log("tf2_bert", mixed("[1,0]<stdout>:", two()), "1n2g/bert_b64_fp32_1.log")
    assert (rate(record), record["notes"]) == (pytest.approx(256.0), [])


def test_ranks_without_tags_stay_refused():
    record = import_log("tf2_bert", mixed("", two(), two()), "1n2g/bert_b64_fp32_1.log")
    assert record["reason"].endswith(
        "is not plausible: step 1 is logged twice: two ranks or two runs in one file"
    )


def test_a_step_without_a_tag_among_tagged_ones_is_refused():
    text = mixed("[1,{0}]<stdout>:", two(), two()).replace("[1,1]<stdout>:I", "I", 1)
    assert "is logged twice" in import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")["reason"]


def test_two_runs_of_one_rank_are_refused():
    text = mixed("[1,{0}]<stdout>:", two(), two())
    record = import_log("tf2_bert", text + text, "1n2g/bert_b64_fp32_1.log")
    assert "rank 0: step 1 is logged twice" in record["reason"]


def test_ranks_that_are_more_than_a_tenth_apart_did_not_train_together():
    record = import_log("tf2_bert", mixed("[1,{0}]<stdout>:", two(), two(128.0)), "1n2g/bert_b64_fp32_1.log")
    assert record["reason"].endswith(
        "rank 0 and rank 1 did not train together: rank 1 takes 100.000 s for the window, not 50.000 s"
    )


def test_ranks_that_are_a_little_apart_are_noted():
    record = import_log("tf2_bert", mixed("[1,{0}]<stdout>:", two(), two(246.0)), "1n2g/bert_b64_fp32_1.log")
    assert "the window of rank 0 is more than 2% off that of rank 1" in record["notes"][0]


def test_a_rank_that_stops_early_is_refused():
    short = "\n".join(two().splitlines()[:60])
    text = mixed("[1,{0}]<stdout>:", two(), short) + "".join(
        f"[1,0]<stdout>:{line}\n" for line in two().splitlines()[60:]
    )
    record = import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")
    assert record["reason"].endswith("did not train together: rank 1 stops at step 59")


def test_ranks_are_compared_over_a_window_of_more_steps_than_are_kept(monkeypatch):
    monkeypatch.setattr(ranks, "KEPT", 1 << 10)
    assert rate(
        import_log("tf2_bert", mixed("{0}: ", two(), two()), "1n2g/bert_b64_fp32_1.log")
    ) == pytest.approx(256.0)
    record = import_log("tf2_bert", mixed("{0}: ", two(), two(128.0)), "1n2g/bert_b64_fp32_1.log")
    assert "did not train together" in record["reason"]


def test_ranks_that_all_stop_early_are_incomplete():
    short = "\n".join(two().splitlines()[:60])
    record = import_log("tf2_bert", mixed("{0}: ", short, short), "1n2g/bert_b64_fp32_1.log")
    assert record["reason"].endswith("stops at step 59, step 120 is required")


def test_words_before_a_colon_are_no_hosts_where_the_steps_need_them():
    line = "step: {0}, total_loss: 9.7, mlm_loss: 8.9, nsp_loss: 0.7, throughput: 64.0, epoch: 0 {1}\n"
    text = "".join(line.format(step, 1000 + step / 2) * 2 for step in range(1, 131))
    assert "is logged twice" in import_log("oneflow_bert", text, "1n1g/bert_b32_fp32_1.log")["reason"]


def test_a_log_of_horovodrun_in_which_both_ranks_print_steps_counts():
    log = (DATA / "horovod_bert" / "horovodrun_1n2g.log").read_bytes()
    record = import_log("horovod_bert", log, "1n2g/tiny_b4_fp32_1.log", device="cpu")
    # Steps 20 to 120 of rank 0 end at 1795842336.467634 and 1795842339.404082: 100 steps of 8 samples.
    assert rate(record) == pytest.approx(800 / 2.936448, rel=1e-9)
    note = "launcher's tags: the steps of rank 0 count, those of rank 1 agree"
    assert record["notes"] == [f"logs/1n2g/tiny_b4_fp32_1.log: {note}"]


def test_a_rank_that_shows_another_number_of_devices_is_named():
    text = mixed("[{0}]<stderr>:", two(), two()).replace(
        "[1]<stderr>:***** Number of cores used :  2", "[1]<stderr>:***** Number of cores used :  1"
    )
    record = import_log("tf2_bert", text, "1n2g/bert_b64_fp32_1.log")
    difference = "rank 1 shows devices 1, rank 0 shows 2: they may not be of one run"
    assert record["notes"][0] == f"logs/1n2g/bert_b64_fp32_1.log: {difference}"
    assert rate(record) == pytest.approx(256.0)
