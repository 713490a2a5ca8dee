"""Speedups: what is divided by what, what counts, and what is said when something is odd."""

import pytest
from ansible.module_utils.scalebook.contracts import RECORD_SCHEMA, message
from ansible.module_utils.scalebook.judge import flags, runs, weak_scaling
from ansible.module_utils.scalebook.pages.catalogue import sentence
from ansible.module_utils.scalebook.throughput import measure
from ansible.module_utils.scalebook.workload import Workload
from dlperf_figures import SPEEDS_BY_SIZE
from report_records import case
from row_runs import run

WORKLOADS = {
    "tf2_bert": Workload(family="bert", compiler="XLA"),
    "torch_bert": Workload(compiler="torch.compile"),
}


def table(*cases_and_rates, planned=()):
    cases, made = [], []
    for of, rates in cases_and_rates:
        cases.append(of)
        made += [run(of, repeat, rate) for repeat, rate in enumerate(rates, 1)]
    return weak_scaling.tabulate(cases, made, planned, WORKLOADS)


def only(result):
    (row,) = result["rows"]
    return row


def codes(row):
    return [mark["code"] for mark in row["flags"]]


@pytest.fixture
def published():
    return table(*((case(*shape), rates) for shape, rates in reversed(SPEEDS_BY_SIZE.items())))


def test_dlperfs_table_comes_out_to_the_last_digit(published):
    printed = [
        (r["nodes"], r["devices"], r["dlperf"]["median_speed"], r["dlperf"]["speedup"])
        for r in published["rows"]
    ]
    assert printed == [
        (1, 1, 112.99, 1.0),
        (1, 2, 204.16, 1.81),
        (1, 4, 402.02, 3.56),
        (1, 8, 805.43, 7.13),
        (2, 16, 1239.3, 10.97),
        (4, 32, 2244.38, 19.86),
    ]


def test_dlperfs_runs_carry_no_mark(published):
    assert [mark for row in published["rows"] for mark in row["flags"]] == []


def test_efficiency_is_speedup_over_devices(published):
    assert published["rows"][-1]["efficiency"] == pytest.approx(2244.38 / 112.99 / 32)


def test_five_repeats_show_their_range_and_no_interval(published):
    row = published["rows"][1]
    assert (row["min"], row["max"], row["interval"], row["speedup_interval"]) == (202.48, 204.96, None, None)
    assert row["speedup_range"] == [202.48 / 114.95, 204.96 / 111.67]


def test_six_repeats_show_an_interval():
    rows = table((case(), [100.0, 101, 99, 100, 102, 98]), (case(1, 2), [200.0, 201, 199, 200, 198, 202]))[
        "rows"
    ]
    assert rows[1]["interval"] == [198, 202]
    low, high = rows[1]["speedup_interval"]
    assert 1.9 < low < rows[1]["speedup"] < high < 2.1


def test_1n1g_has_no_range_of_its_speedup_over_itself(published):
    row = published["rows"][0]
    assert (row["speedup"], row["speedup_range"], row["speedup_interval"]) == (1.0, None, None)


def test_without_1n1g_the_speedup_is_not_available_never_1():
    row = only(table((case(2, 8), [1239.3] * 3)))
    assert (row["speedup"], row["efficiency"], row["dlperf"]["speedup"]) == (None, None, None)
    assert codes(row) == ["no-baseline"]


def test_a_baseline_without_a_good_run_is_no_baseline():
    result = table((case(), [None, None, None]), (case(2, 1), [150.0] * 3))
    assert result["rows"][1]["speedup"] is None


@pytest.mark.parametrize(
    "other",
    [
        {"dtype": "fp16"},
        {"xla": True},
        {"bsz": 32},
        {"accumulation": 2},
        {"model": "large"},
        {"workload": "horovod_bert"},
        {"device": "cpu"},
        {"window": 50},
        {"settings": {"seq": 512}},
    ],
)
def test_what_did_other_work_is_never_divided(other):
    base, odd = case(), case(2, 1, **other)
    odd["name"] += "-odd"
    result = table((base, [100.0] * 3), (odd, [400.0] * 3))
    by_name = {row["case"]: row for row in result["rows"]}
    assert len(result["groups"]) == 2
    assert by_name[odd["name"]]["speedup"] is None


def test_a_failed_run_is_left_out_marked_and_named():
    result = table((case(), [128.0, None, 128.0]))
    row = only(result)
    assert row["median"] == 128.0
    assert flags.flag("runs", good=2, planned=3) in row["flags"]
    assert result["uncounted"] == [
        {
            "case": row["case"],
            "label": "1n1g",
            "repeat": 2,
            "status": "failed",
            "reason": "rank 1 on NODE2 died of signal 9",
            "source": None,
            "last_lines": [],
        }
    ]


def test_fewer_than_three_good_repeats_are_provisional():
    row = only(table((case(), [128.0, 127.0])))
    assert row["status"] == "provisional"
    assert "provisional" in codes(row)


def test_three_good_repeats_are_not_provisional():
    assert only(table((case(), [128.0, 127.0, 129.0])))["status"] == "ok"


def test_no_good_repeat_is_a_row_without_a_number():
    row = only(table((case(), [None, None])))
    assert row["status"] == "incomplete"
    assert (row["median"], row["speedup"], row["dlperf"], row["interval"]) == (None, None, None, None)
    assert row["flags"] == [flags.flag("incomplete", repeats=flags.repeats(2))]


def test_a_planned_run_without_a_record_is_missing_not_forgotten():
    of = case()
    planned = [{"case": of["name"], "repeat": repeat} for repeat in (1, 2, 3)]
    result = table((of, [128.0, 128.0]), planned=planned)
    assert (only(result)["good"], only(result)["planned"]) == (2, 3)
    assert [(u["repeat"], u["status"]) for u in result["uncounted"]] == [(3, "missing")]


def test_one_repeat_has_no_range_of_its_speedup():
    rows = table((case(), [100.0]), (case(1, 2), [190.0, 191.0]))["rows"]
    assert (rows[1]["speedup"], rows[1]["speedup_range"]) == (1.905, None)


@pytest.mark.parametrize(("speedup", "marked"), [(8.0, False), (8.15, False), (8.17, True), (8.89, True)])
def test_more_than_2_percent_above_linear_is_marked(speedup, marked):
    result = table((case(), [100.0] * 3), (case(1, 8), [100.0 * speedup] * 3))
    assert ("superlinear" in codes(result["rows"][1])) is marked


def superlinear(base_rates, **other):
    result = table((case(**other), base_rates), (case(1, 8, **other), [1000.0] * 3))
    (flag,) = result["rows"][1]["flags"]
    return sentence(flag["message"])


def test_the_cause_of_too_much_speedup_is_a_baseline_of_too_few_repeats():
    assert "1n1g has only 1 repeat)" in superlinear([100.0])


def test_the_cause_of_too_much_speedup_is_a_baseline_that_wanders():
    assert "the repeats of 1n1g differ by 20.0 %" in superlinear([90.0, 100.0, 110.0])


def test_the_cause_of_too_much_speedup_is_gradient_accumulation():
    text = superlinear([100.0] * 3, accumulation=32)
    assert text == (
        "speedup 10.00 on 8 devices is more than linear; likely: "
        "gradient accumulation: the window holds few all-reduces or none"
    )


def test_the_cause_of_too_much_speedup_unknown_names_the_usual_two():
    text = superlinear([100.0] * 3)
    assert "baseline too slow" in text
    assert "gradient accumulation" in text


def test_an_outlier_is_marked_and_kept():
    row = only(table((case(), [100.0, 100.1, 70.0, 99.9, 100.05])))
    assert row["outliers"] == [3]
    assert row["good"] == 5
    assert row["median"] == 100.0


@pytest.mark.parametrize(("slowest", "marked"), [(90.0, False), (89.9, True)])
def test_repeats_that_differ_by_more_than_10_percent_are_marked(slowest, marked):
    row = only(table((case(), [slowest, 100.0, 100.0])))
    assert ("scattered" in codes(row)) is marked


def test_repeats_that_differ_by_an_outlier_alone_are_not_scattered():
    assert codes(only(table((case(), [100.0, 100.1, 70.0, 99.9, 100.05])))) == ["outlier"]


def test_two_readings_of_one_run_more_than_2_percent_apart_are_marked():
    of = case()
    made = [run(of, 1), run(of, 2, differs=0.031), run(of, 3, differs=-0.019)]
    row = only(weak_scaling.tabulate([of], made))
    assert row["flags"] == [flags.flag("time-sources-differ", percent=3.1, repeats=[2])]


@pytest.mark.parametrize(("unsteady", "marked"), [(1, False), (2, True), (3, True)])
def test_a_case_is_unsteady_when_half_its_runs_are(unsteady, marked):
    of = case()
    made = [run(of, i, steady="warm-up-not-over" if i <= unsteady else None) for i in (1, 2, 3)]
    assert (codes(only(weak_scaling.tabulate([of], made))) == ["warm-up-not-over"]) is marked


def test_step_times_are_pooled_over_the_good_runs():
    of = case()
    made = [run(of, 1, steps=[0.1] * 50), run(of, 2, steps=[0.3] * 50)]
    steps = only(weak_scaling.tabulate([of], made))["steps"]
    assert (steps["count"], steps["p50"], steps["p95"]) == (100, pytest.approx(0.2), 0.3)


def test_a_step_of_several_devices_is_compared_with_the_slowest_of_as_many_steps_of_one():
    one, two, four = case(1, 1), case(1, 2), case(1, 4)
    made = [run(one, 1, steps=[0.1, 0.3]), run(two, 1, steps=[0.35]), run(four, 1, steps=[0.4])]
    rows = weak_scaling.tabulate([one, two, four], made)["rows"]
    # The longest of two such steps is the short one in a quarter of all pairs, of four in a sixteenth.
    expected = [None, pytest.approx(0.25), pytest.approx(0.2875)]
    assert [row["steps"]["slowest"] for row in rows] == expected


def test_without_steps_of_1n1g_there_is_no_slowest_of_them():
    two = case(1, 2)
    steps = only(weak_scaling.tabulate([two], [run(two, 1, steps=[0.1, 0.2])]))["steps"]
    assert (steps["mean"], steps["slowest"]) == (pytest.approx(0.15), None)


def test_what_a_step_takes_longer_is_split_into_waiting_and_the_rest():
    one, four = case(1, 1), case(1, 4)
    made = [run(one, 1, steps=[0.1, 0.3]), run(four, 1, steps=[0.4])]
    alone, steps = (row["steps"] for row in weak_scaling.tabulate([one, four], made)["rows"])
    # 0.2 s alone, 0.2875 s where four such devices only wait for each other, 0.4 s in fact.
    assert weak_scaling.longer_parts(steps, alone) == pytest.approx((0.0875 / 0.4, 0.1125 / 0.4))


def test_rows_are_ordered_by_devices_as_numbers():
    result = table(*((case(nodes, 1), [100.0] * 3) for nodes in (16, 2, 1, 125)))
    assert [row["label"] for row in result["rows"]] == ["1n1g", "2n1g", "16n1g", "125n1g"]


def test_a_heading_names_what_identifies_the_group_and_a_legend_what_tells_it_apart():
    result = table((case(), [100.0] * 3), (case(dtype="fp16", xla=True), [100.0] * 3))
    assert [sentence(group["title"]) for group in result["groups"]] == [
        "tf2_bert base fp32 b64",
        "tf2_bert base fp16 XLA b64",
    ]
    assert [sentence(group["short"]) for group in result["groups"]] == ["fp32", "fp16 XLA"]


def test_a_heading_names_only_the_settings_that_differ_within_a_workload():
    of = {"workload": "torch_bert", "dtype": "bf16"}
    sizes = ({"bucket_mb": mb, "seq_length": 128} for mb in (25, 200))
    others = [case(settings={"seq_length": 128})]
    made = table(*((one, [100.0] * 3) for one in [*(case(**of, settings=size) for size in sizes), *others]))
    titles = ["tf2_bert base fp32 b64", *(f"torch_bert base bf16 b64 bucket_mb={mb}" for mb in (200, 25))]
    assert [sentence(group["title"]) for group in made["groups"]] == titles
    assert [sentence(group["short"]) for group in made["groups"]][1:] == [
        f"torch_bert bf16 bucket_mb={mb}" for mb in (200, 25)
    ]


def test_a_heading_names_the_window_where_a_workload_has_several():
    windows = [case(window=100), case(window=200), case(workload="torch_bert", window=40)]
    titles = [sentence(group["title"]) for group in table(*((of, [100.0] * 3) for of in windows))["groups"]]
    assert [title.partition("b64")[2] for title in titles] == [" window 100", " window 200", ""]


def test_a_setting_that_one_case_lacks_is_named_where_it_is():
    made = table((case(), [100.0] * 3), (case(settings={"loader": "auto"}), [100.0] * 3))
    assert [sentence(group["title"]) for group in made["groups"]] == [
        "tf2_bert base fp32 b64 loader=auto",
        "tf2_bert base fp32 b64",
    ]


def test_the_compiler_of_a_workload_has_its_own_name():
    of = {"workload": "torch_bert", "dtype": "bf16"}
    result = table((case(**of), [100.0] * 3), (case(**of, xla=True), [100.0] * 3))
    assert [sentence(group["title"]) for group in result["groups"]] == [
        "torch_bert base bf16 b64",
        "torch_bert base bf16 torch.compile b64",
    ]
    assert [sentence(group["short"]) for group in result["groups"]] == ["no torch.compile", "torch.compile"]


def test_a_workload_without_a_declared_compiler_is_called_compiled():
    result = table((case(workload="other", xla=True), [100.0] * 3))
    assert sentence(result["groups"][0]["title"]) == "other base fp32 compiled b64"


def test_groups_are_ordered_by_model_family():
    others = [case(workload=name) for name in ("alpha", "torch_bert", "tf2_bert")]
    result = table(*((of, [100.0] * 3) for of in others))
    assert [(group["family"], group["workload"]) for group in result["groups"]] == [
        ("alpha", "alpha"),
        ("bert", "tf2_bert"),
        ("torch_bert", "torch_bert"),
    ]


def test_cpu_groups_say_so():
    result = table((case(device="cpu", model="tiny"), [100.0] * 3))
    assert sentence(result["groups"][0]["title"]) == "tf2_bert tiny on CPU fp32 b64"


def test_the_same_records_always_make_the_same_table(published):
    again = table(*((case(*shape), rates) for shape, rates in SPEEDS_BY_SIZE.items()))
    assert again == published


RECORD = {
    "schema": RECORD_SCHEMA,
    "case": case(),
    "repeat": 1,
    "status": "ok",
    "nodes": [
        {
            "node": "NODE1",
            "task_index": 0,
            "log": "NODE1.log",
            "steps": list(range(1, 121)),
            "times": [i * 0.5 for i in range(120)],
        }
    ],
}


@pytest.fixture
def rate(monkeypatch):
    """Return a function that makes every record measure at a rate."""

    def set_rate(value):
        monkeypatch.setattr(runs, "measure", lambda record: {**measure(record), "rate": value})

    return set_rate


def test_a_run_keeps_the_step_times_of_its_window():
    assert runs.digest(RECORD)["steps"] == [0.5] * 100


def test_a_record_that_is_not_ok_has_no_rate_whatever_its_steps_say():
    made = runs.digest({**RECORD, "status": "hung", "reason": "no step for 15 s on NODE2"})
    assert (made["rate"], made["reason"]) == (None, "no step for 15 s on NODE2")


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), None])
def test_a_rate_that_is_not_a_positive_number_refuses_the_run(rate, value):
    rate(value)
    made = runs.digest(RECORD)
    assert (made["status"], made["rate"]) == ("refused", None)


def test_a_record_that_says_ok_but_cannot_be_measured_is_refused_with_the_reason():
    made = runs.digest({**RECORD, "nodes": []})
    assert made["status"] == "refused"
    assert made["reason"] == message("run.unmeasured", why=message("reason.no-first-node"))


def test_a_gap_in_the_window_gives_no_step_times_rather_than_wrong_ones():
    node = {**RECORD["nodes"][0], "steps": [*range(1, 50), *range(51, 122)]}
    assert runs.step_seconds({**RECORD, "nodes": [node]}, "times") == []


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "is not a record"),
        ({**RECORD, "schema": 4}, "schema 4"),
        ({**RECORD, "status": "fine"}, "status 'fine'"),
        ({**RECORD, "repeat": "1"}, "repeat '1'"),
        ({**RECORD, "case": None}, "no case"),
        ({**RECORD, "case": {**case(), "bsz": "64"}}, "case.bsz is '64'"),
        ({**RECORD, "case": {**case(), "devices": 7}}, "case.devices is 7"),
    ],
)
def test_a_record_that_is_not_one_is_refused(record, said):
    with pytest.raises(runs.RecordError, match=said):
        runs.check_record(record)
