# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The speed by the steps of a log against the speed that the log itself prints."""

import re
from datetime import datetime, timedelta

import pytest
from ansible.module_utils.scalebook.throughput import mean_in_window
from cases import case
from imports import DATA, import_case, import_log, rate

DEEPSPEED = ("deepspeed_bert", "bing_bert")


def timer_log(rest, seconds=0.32, count=130, micro=None):
    """Return a log of DeepSpeed's timer: `rest` is what stands behind the step, or makes it from a step."""
    lines = []
    for step in range(1, count + 1):
        at = datetime(2021, 5, 29, 19, 53) + timedelta(seconds=seconds * step)
        counted = f"epoch=0/micro_step={step * micro}/global_step={step}" if micro else f"0/{step}"
        said = rest(step) if callable(rest) else rest
        stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}"
        lines.append(f"[{stamp}] [INFO] [timer.py:157:stop] {counted}, {said}\n")
    return "".join(lines)


def running_mean(warm, seconds, samples=64):
    """Return what DeepSpeed prints of steps of `seconds`, the first twenty of which took `warm`."""

    def at(step):
        taken = sum(warm if each <= 20 else seconds for each in range(3, step + 1))
        return f"SamplesPerSec={samples * (step - 2) / taken if taken else '-inf'}"

    return at


# DeepSpeed's steps


@pytest.mark.parametrize("workload", DEEPSPEED)
def test_the_micro_steps_of_deepspeed_before_078_are_counted_as_such(workload):
    record = import_case("deepspeed_bert/imports/deepspeed_gas2_07", workload, accumulation=2)
    assert rate(record) == pytest.approx(200.0)
    assert record["notes"] == ["its steps are micro-steps: the window has 50 steps of the optimizer"]


@pytest.mark.parametrize("workload", DEEPSPEED)
def test_micro_steps_take_as_long_whatever_their_number_in_a_step(workload):
    record = import_case("deepspeed_bert/imports/deepspeed_accelerate", workload, accumulation=4)
    assert rate(record) == pytest.approx(151.44, abs=0.01)


@pytest.mark.parametrize("workload", DEEPSPEED)
@pytest.mark.parametrize(("log", "accumulation"), [("deepspeed_gas4_09", 4), ("deepspeed_accelerate", 1)])
def test_steps_of_the_optimizer_and_logs_without_accumulation_count_as_before(workload, log, accumulation):
    record = import_case(f"deepspeed_bert/imports/{log}", workload, accumulation=accumulation)
    assert rate(record) == pytest.approx(151.44, abs=0.01)


@pytest.mark.parametrize("workload", DEEPSPEED)
def test_accumulation_that_the_steps_show_and_the_case_lacks_is_refused(workload):
    record = import_case("deepspeed_bert/imports/deepspeed_gas4_09", workload)
    assert record["reason"].endswith("shows accumulation 4, the case has accumulation 1")


def test_a_mean_rate_tells_micro_steps_whatever_the_first_steps_took():
    log = timer_log(running_mean(3.0, 0.32))
    assert rate(import_log("bing_bert", log, accumulation=8)) == pytest.approx(200.0, abs=0.1)


def test_rates_of_steps_of_the_optimizer_alone_do_not_contradict_micro_steps():
    def at(step):
        return (
            f"{running_mean(3.0, 0.32)(step).replace('Samples', 'RunningAvgSamples')}, CurrSamplesPerSec=90.0"
        )

    record = import_log("deepspeed_bert", timer_log(at), accumulation=10)
    assert rate(record) == pytest.approx(200.0, abs=0.1)
    assert record["notes"][0].startswith("two readings differ by 55.0%")


@pytest.mark.parametrize("printed", [800, 320])
def test_steps_of_a_form_for_micro_steps_that_its_rate_contradicts_are_refused(printed):
    record = import_log("deepspeed_bert", timer_log(f"SamplesPerSec={printed}"), accumulation=4)
    assert record["status"] == "refused"
    assert record["reason"].endswith(
        "seems to count micro-steps, 4 to a step, which its own rate contradicts: "
        f"by its steps the rate is 200.0, by its own lines {printed}.0"
    )


def test_micro_steps_without_a_rate_that_tells_are_refused():
    record = import_log("bing_bert", timer_log("SamplesPerSec=-inf"), accumulation=2)
    assert record["reason"].endswith("2 to a step, and prints no rate that tells")


def test_lines_of_both_forms_are_two_runs():
    record = import_log(
        "deepspeed_bert", timer_log("SamplesPerSec=200", count=60) + timer_log("SamplesPerSec=200", micro=2)
    )
    assert "two runs in one file" in record["reason"]


def test_deepspeed_078_prints_the_rate_of_a_micro_step_and_its_steps_count():
    """Its timer counted steps of the optimizer and samples of micro-steps."""
    record = import_log(
        "deepspeed_bert",
        timer_log("RunningAvgSamplesPerSec=200, CurrSamplesPerSec=200", micro=4),
        accumulation=4,
    )
    assert rate(record) == pytest.approx(800.0)
    assert "two readings differ by 75.0%" in record["notes"][0]


# Any workload


def oneflow(throughput, seconds=1.0):
    at = 1598056519.0
    return "".join(
        f"step: {step}, total_loss: 9.7, mlm_loss: 8.9, nsp_loss: 0.7, pred_acc: 0.6, "
        f"throughput: {throughput}, epoch: 0 {at + step * seconds}\n"
        for step in range(1, 131)
    )


@pytest.mark.parametrize(
    ("throughput", "reason"),
    [
        (32.0, "8 times as much, and the case has devices 8"),
        (2048.0, "8 times less, and the case has devices 8"),
        (51.2, "5 times as much, so batch, devices or accumulation of the log are not those of the case"),
    ],
)
def test_a_whole_factor_between_a_log_and_its_own_rate_is_refused(throughput, reason):
    record = import_log("oneflow_bert", oneflow(throughput), "1n8g/bert_b32_fp32_1.log")
    assert record["status"] == "refused"
    assert record["reason"].endswith(
        f"by its steps the rate is 256.0, by its own lines {throughput:.1f}: {reason}"
    )


@pytest.mark.parametrize("throughput", [200.0, 320.0, 768.0])
def test_another_difference_is_a_note(throughput):
    record = import_log("oneflow_bert", oneflow(throughput), "1n8g/bert_b32_fp32_1.log")
    assert rate(record) == pytest.approx(256.0)
    assert record["notes"][0].startswith("two readings differ by ")


def test_a_factor_that_the_log_shows_is_another_unit_of_its_rate():
    shown = "ONEFLOW_BERT world_size=8 nodes=1 node_rank=0 \n"
    record = import_log("oneflow_bert", shown + oneflow(32.0), "1n8g/bert_b32_fp32_1.log")
    assert rate(record) == pytest.approx(256.0)


TF2 = (DATA / "tf2_bert" / "1n_mirrored.log").read_text()
TF2_FILE = "1n1g/tiny_b16_fp32_1.log"


def test_time_history_that_agrees_over_the_same_steps_makes_no_note():
    record = import_log("tf2_bert", TF2, TF2_FILE)
    assert (round(rate(record), 2), record["notes"]) == (230.41, [])


def benchmark_metric(text):
    return re.sub(
        r"TimeHistory: ([\d.]+) seconds, ([\d.]+) examples/second between steps \d+ and (\d+)",
        r"BenchmarkMetric: {'num_batches':\3, 'time_taken': \1,'examples_per_second': \2}",
        text,
    )


def faster(text, factor):
    """Return a log of TensorFlow 2 whose own rates are this many times those of its steps."""
    return re.sub(r"[\d.]+(?= examples/second)", lambda own: f"{float(own[0]) * factor:.2f}", text)


@pytest.mark.parametrize("form", [str, benchmark_metric])
@pytest.mark.parametrize("factor", [0.8, 1.2, 36.7])
def test_time_history_that_contradicts_the_steps_is_a_note(form, factor):
    record = import_log("tf2_bert", form(faster(TF2, factor)), TF2_FILE)
    assert [note for note in record["notes"] if re.search(r"by times and [\d.]+ by its own lines", note)]


def test_a_whole_factor_between_the_steps_and_time_history_is_refused():
    record = import_log("tf2_bert", faster(TF2, 0.25), TF2_FILE)
    assert "4 times as much, so batch, devices or accumulation of the log" in record["reason"]


@pytest.mark.parametrize(("own", "notes"), [(30.0, 0), (600.0, 1)])
def test_a_rate_with_the_first_steps_may_be_lower_but_not_higher(own, notes):
    text = re.sub(r".*TimeHistory: .*\n", "", TF2)
    line = f"I0101 TimeHistory: 12.34 seconds, {own} examples/second between steps 0 and 100\n"
    at = text.index("\n", text.index("Train Step: 100/")) + 1
    record = import_log("tf2_bert", text[:at] + line + text[at:], TF2_FILE)
    assert len(record["notes"]) == notes


def test_the_rate_of_an_estimator_is_that_of_one_rank():
    text = (DATA / "horovod_tf1_bert" / "2n1g-NODE1.log").read_text()
    slower = re.sub(r"(?<=examples/sec: )[\d.]+", lambda own: f"{float(own[0]) * 0.7:.3f}", text)
    notes = [
        import_log("horovod_tf1_bert", log, "2n1g/tiny_b16_fp32_1.log")["notes"] for log in (text, slower)
    ]
    assert (notes[0], "by its own lines" in notes[1][0]) == ([], True)


def test_the_rate_of_a_whole_training_may_not_be_higher_than_that_of_the_window():
    text = (DATA / "hf_mlm" / "1n1g-NODE1.log").read_text()
    higher = text.replace("'train_samples_per_second': '67.67'", "'train_samples_per_second': '267.67'")
    case_of = {"accumulation": 4, "warmup": 10, "window": 54}
    notes = [
        import_log("hf_mlm", log, "1n1g/tiny_b16_fp32_1.log", **case_of)["notes"] for log in (text, higher)
    ]
    assert [any("by its own lines" in note for note in each) for each in notes] == [False, True]


def test_the_mean_over_the_window_follows_from_two_means():
    means = {20: 10.0, 120: 20.0}
    assert mean_in_window(list(means), list(means.values()), 2, case()) == pytest.approx(
        100 / (118 / 20 - 1.8)
    )


@pytest.mark.parametrize(
    "means", [{20: 10.0}, {120: 10.0}, {20: float("nan"), 120: 1.0}, {20: 0.1, 120: 10.0}]
)
def test_means_that_do_not_reach_over_the_window_give_none(means):
    assert mean_in_window(list(means), list(means.values()), 2, case()) is None


def test_a_closing_line_that_contradicts_the_steps_is_a_note():
    steps = "".join(f"TORCH_BERT step={step}/120 loss=7.0 time={1000 + step / 4}\n" for step in range(1, 121))
    record = import_log("torch_bert", f"{steps}TORCH_BERT samples_per_second=128.0 x=1\n")
    assert rate(record) == 256.0
    assert record["notes"] == ["the rate is 256.00 by times and 128.00 by its closing line"]
