"""The matrix: which cases a campaign has, what they are called, and which cannot run."""

import time
from dataclasses import replace

import pytest
from ansible.module_utils.scalebook.contracts import case_name, make_case
from ansible.module_utils.scalebook.plan import matrix
from ansible.module_utils.scalebook.plan.matrix import powers_of_two
from ansible.module_utils.scalebook.plan.parameters import ParameterError
from ansible.module_utils.scalebook.report.plan_lines import describe, why_nothing_runs
from cases import cluster, machine, plan, read_parameters
from declared import with_epoch, with_settings, workload
from role_files import declaration

WORKLOAD = workload(dtype_hints={"cpu": {"fp16": "fp16 is slow here"}})


def labels(planned):
    return [case["label"] for case in planned["cases"]]


def test_the_default_matrix_is_dlperf_s_table():
    planned = plan({}, WORKLOAD, cluster(4), "tf2_bert", "gpu")
    assert labels(planned) == ["1n1g", "1n2g", "1n4g", "1n8g", "2n8g", "4n8g"]


def test_every_combination_of_given_values_is_a_case():
    given = {"bsz": "32,64", "dtype": "fp32,fp16", "xla": "true,false", "nodes": "1,2", "gpus": "4,8"}
    assert len(plan(given, WORKLOAD, cluster(2), "tf2_bert", "gpu")["cases"]) == 32


def test_the_global_batch_is_that_of_all_devices():
    case = plan({"bsz": 64, "nodes": 4, "gpus": 8}, WORKLOAD, cluster(4), "tf2_bert", "gpu")["cases"][0]
    assert (case["devices"], case["global_batch"]) == (32, 2048)


def test_the_global_batch_is_that_of_an_update():
    given = {"bsz": 8, "nodes": 1, "gpus": 2, "accumulation": 3}
    [case] = plan(given, replace(WORKLOAD, accumulation=1), cluster(1), "torch_bert", "gpu")["cases"]
    assert case["global_batch"] == 48


def test_accumulation_of_a_workload_without_it_is_skipped_with_the_reason():
    planned = plan({"nodes": 1, "gpus": 1, "accumulation": 4}, WORKLOAD, cluster(1), "tf2_bert", "gpu")
    assert planned["cases"] == []
    assert "tf2_bert has no gradient accumulation: leave out accumulation" in why_nothing_runs(planned)


def test_repeats_are_interleaved_over_the_cases():
    runs = plan({"nodes": "1,2", "gpus": 1, "repeats": 2}, WORKLOAD, cluster(2), "f", "gpu")["runs"]
    assert [run["repeat"] for run in runs] == [1, 1, 2, 2]
    assert runs[0]["case"] == runs[2]["case"] != runs[1]["case"]


def test_the_same_matrix_is_the_same_campaign():
    first, second = (plan({"bsz": bsz}, WORKLOAD, cluster(2), "f", "gpu") for bsz in ("64", [64]))
    assert first == second


def test_another_matrix_is_another_campaign():
    names = {plan({"bsz": bsz}, WORKLOAD, cluster(2), "f", "gpu")["campaign"] for bsz in (32, 64)}
    assert len(names) == 2


def test_more_repeats_go_on_with_the_same_campaign():
    names = {plan({"repeats": n}, WORKLOAD, cluster(2), "f", "gpu")["campaign"] for n in (3, 5)}
    assert len(names) == 1


@pytest.mark.parametrize(
    "change", [{"bsz": 32}, {"window": 50}, {"settings": {"seq_length": 64}}, {"xla": True}]
)
def test_a_changed_case_has_another_name(change):
    values = {"workload": "f", "model": "m", "dtype": "fp32", "xla": False, "bsz": 64, "nodes": 1, "gpus": 1}
    assert make_case(values)["name"] != make_case({**values, **change})["name"]


def test_a_setting_that_counts_in_compiled_cases_alone_makes_no_other_case_of_the_rest():
    def names(mode):
        declared = with_settings(replace(WORKLOAD, xla_settings={"true": {"mode": "default"}}), mode=mode)
        planned = plan({"xla": "false,true"}, declared, cluster(1, 1), "tf2_bert", "gpu")
        return [case["name"] for case in planned["cases"]]

    (plain, compiled), (other_plain, other_compiled) = names("default"), names("fast")
    assert plain == other_plain and compiled != other_compiled


def test_a_case_is_named_as_dlperf_names_it():
    values = {
        "workload": "f",
        "model": "m",
        "dtype": "fp16",
        "xla": True,
        "bsz": 64,
        "nodes": 125,
        "gpus": 8,
    }
    assert case_name(make_case(values)).startswith("f-m-125n8g-b64-fp16-xla-")


def test_a_node_count_that_does_not_fit_is_skipped_next_to_those_that_do():
    planned = plan({"nodes": "1,9", "gpus": 8}, WORKLOAD, cluster(4), "f", "gpu")
    assert labels(planned) == ["1n8g"]
    assert planned["skipped"][0]["reason"] == "needs 9 nodes, the inventory has 4"


def test_a_node_count_is_refused_when_none_fits():
    with pytest.raises(ParameterError, match="nodes=9: allowed are 1 to 4"):
        plan({"nodes": 9}, WORKLOAD, cluster(4), "f", "gpu")


def test_a_gpu_count_is_refused_when_none_fits():
    with pytest.raises(ParameterError, match="gpus=16: allowed are 1 to 8"):
        plan({"gpus": 16}, WORKLOAD, cluster(4), "f", "gpu")


def test_a_dtype_that_the_device_lacks_is_skipped_with_its_hint():
    planned = plan({"dtype": "fp16"}, WORKLOAD, machine(2, 1), "f", "cpu")
    assert planned["cases"] == []
    assert {entry["reason"] for entry in planned["skipped"]} == {"fp16 is slow here"}


def test_force_runs_a_dtype_all_the_same():
    assert labels(plan({"dtype": "fp16", "force": "true"}, WORKLOAD, machine(2, 1), "f", "cpu")) == [
        "1n1g",
        "2n1g",
    ]


def test_nodes_of_one_machine_share_its_gpus():
    planned = plan({"nodes": "1,2,4", "gpus": "2,4"}, WORKLOAD, machine(4, 8), "f", "gpu")
    assert labels(planned) == ["1n2g", "1n4g", "2n2g", "2n4g", "4n2g"]
    assert planned["skipped"][0]["reason"] == "needs 16 GPUs of one machine for 4 nodes, it has 8"


def test_an_inventory_without_nodes_is_refused():
    with pytest.raises(ParameterError, match="no host in the group `nodes`"):
        plan({}, WORKLOAD, [], "f", "gpu")


@pytest.mark.parametrize("name", ["a;reboot", "$(x)", "../up", "{{ x }}"])
def test_a_host_name_that_is_none_is_refused(name):
    with pytest.raises(ParameterError, match="host name="):
        plan({}, WORKLOAD, [{**cluster(1)[0], "name": name}], "f", "gpu")


def test_a_node_listed_twice_is_refused():
    with pytest.raises(ParameterError, match="listed twice"):
        plan({}, WORKLOAD, cluster(1) * 2, "f", "gpu")


def test_powers_of_two_end_with_all():
    assert powers_of_two(125) == [1, 2, 4, 8, 16, 32, 64, 125]
    assert powers_of_two(1) == [1]


def test_the_matrix_of_125_nodes_expands_at_once():
    began = time.monotonic()
    planned = plan({"bsz": "32,64,96", "xla": "true,false", "repeats": 7}, WORKLOAD, cluster(125), "f", "gpu")
    assert len(planned["runs"]) == 7 * 6 * 11
    assert time.monotonic() - began < 2


def test_the_plan_as_text_says_what_is_measured_already():
    planned = plan({"nodes": "1,2", "gpus": 1, "repeats": 2}, WORKLOAD, cluster(2), "f", "gpu")
    text = describe(planned, [(planned["cases"][0]["name"], 1)])
    assert "2 cases x 2 repeats = 4 runs, 1 already measured" in text
    assert "(1 of 2 measured)" in text


def test_the_plan_as_text_warns_when_there_will_be_no_speedup():
    assert "speedups will be n/a" in describe(plan({"nodes": 2, "gpus": 8}, WORKLOAD, cluster(2), "f", "gpu"))


def test_more_runs_than_anybody_waits_for_are_refused():
    with pytest.raises(ParameterError, match="make 1000000 runs; allowed are 100000"):
        plan({"bsz": list(range(1, 201)), "repeats": 1000}, WORKLOAD, cluster(2), "tf2_bert", "cpu")


def test_the_plan_keeps_the_variables_of_workloads_that_were_given():
    declared = with_settings(WORKLOAD, seq_length=128, clip=1.0)
    made = matrix.plan(
        read_parameters({}, tf=declared),
        {"tf": declared},
        cluster(1),
        "cpu",
        extra_names=("tf_clip", "bsz"),
    )
    assert made["variables"] == {"tf_clip": 1.0}


def test_the_plan_keeps_the_variables_of_a_data_set_that_were_given():
    """oneflow_resnet50_images=16 alone is refused: there are 64 files without oneflow_resnet50_files."""
    name = "oneflow_resnet50"
    declared = declaration(name)
    declared = declared.resolve(dict.fromkeys(declared.variables, "4"))
    given = (f"{name}_images", f"{name}_files", f"{name}_learning_rate")
    made = matrix.plan(
        read_parameters({}, **{name: declared}), {name: declared}, cluster(1), "cpu", "", given
    )
    assert made["variables"] == {f"{name}_images": 4, f"{name}_files": 4}


# Several workloads

TWO = {
    "tf": WORKLOAD,
    "torch": workload(
        title="Another",
        models={"cpu": "small", "gpu": "base"},
        model_names=["small", "base"],
        dtypes={"cpu": ["fp32", "bf16"], "gpu": ["fp32", "bf16"]},
        xla=[False],
        bsz={"cpu": 8, "gpu": 256},
        accumulation=2,
    ),
}


def two(**given):
    return plan(given, TWO, cluster(2), None, "gpu")


def test_each_workload_has_its_own_defaults():
    cases = two(topology="1n1g")["cases"]
    assert [(case["workload"], case["bsz"], case["accumulation"]) for case in cases] == [
        ("tf", 32, 1),
        ("torch", 256, 2),
    ]


def test_runs_of_all_workloads_are_interleaved():
    planned = two(topology="1n1g,2n8g", repeats=2)
    workload = {case["name"]: case["workload"] for case in planned["cases"]}
    assert [(run["repeat"], workload[run["case"]]) for run in planned["runs"]] == [
        (1, "tf"),
        (1, "tf"),
        (1, "torch"),
        (1, "torch"),
        (2, "tf"),
        (2, "tf"),
        (2, "torch"),
        (2, "torch"),
    ]


def test_what_one_of_the_workloads_does_not_have_is_skipped_with_the_reason():
    planned = two(topology="1n1g", dtype="fp16,bf16", xla="true", model="base")
    reasons = {(entry["case"]["workload"], entry["reason"]) for entry in planned["skipped"]}
    assert labels(planned) == ["1n1g"]
    assert reasons == {
        ("tf", "tf has no bf16: it has fp32, fp16"),
        ("torch", "torch has no fp16: it has fp32, bf16"),
        ("torch", "torch has no compiler"),
    }


def test_a_model_that_one_of_the_workloads_does_not_have_is_skipped():
    planned = two(topology="1n1g", model="tiny")
    assert [case["workload"] for case in planned["cases"]] == ["tf"]
    assert planned["skipped"][0]["reason"] == "torch has no model tiny: it has small, base"


def test_several_models_are_cases_of_one_campaign():
    planned = two(topology="1n1g,1n2g", model="small,base")
    assert [(case["model"], case["label"]) for case in planned["cases"] if case["workload"] == "torch"] == [
        *(("small", "1n1g"), ("small", "1n2g")),
        *(("base", "1n1g"), ("base", "1n2g")),
    ]


def test_the_plan_names_the_model_of_each_case_where_a_workload_has_several():
    assert "torch        small" in describe(two(topology="1n1g", model="small,base"))


def test_runs_without_binding_are_another_campaign():
    names = [two(topology="1n1g", binding=each)["campaign"] for each in (None, "numa", "none")]
    assert names[0] == names[1] != names[2]


def test_runs_of_two_launchers_are_different_campaigns():
    names = [two(topology="1n1g", launcher=each)["campaign"] for each in (None, "mpirun", "srun")]
    assert names[0] == names[1] != names[2]
    assert "-srun-" in names[2]


def test_the_name_of_the_campaign_holds_all_workloads():
    assert two(topology="1n1g")["campaign"].startswith("tf_torch-base-b32_256-fp32-")


def test_the_plan_as_text_names_the_workloads_and_lists_skipped_cases_once():
    text = describe(two(topology="1n1g,1n8g", dtype="fp32,fp16"))
    assert "run   tf " in text
    assert "skip  torch        1n1g,1n8g  b256  fp16  torch has no fp16: it has fp32, bf16" in text


# Exactly these points, and windows that are given


def test_a_topology_is_exactly_the_points_that_it_names():
    points = "1n1g,1n4g,1n8g,2n8g,4n8g"
    planned = plan({"topology": points}, WORKLOAD, cluster(4), "f", "gpu")
    assert labels(planned) == points.split(",")


def test_a_topology_of_which_nothing_fits_is_refused():
    with pytest.raises(ParameterError, match="topology=1n16g: allowed are 1 to 8, devices of each node"):
        plan({"topology": "1n16g"}, WORKLOAD, cluster(4), "f", "gpu")


def test_one_device_per_node_is_named_in_plain_words():
    with pytest.raises(ParameterError, match="gpus=2: the only allowed value is 1, the devices of each node"):
        plan({"gpus": 2}, WORKLOAD, cluster(4, slots=1), "f", "cpu")


def test_a_given_window_replaces_that_of_the_workload():
    case = plan({"warmup": 5, "window": 10, "topology": "1n1g"}, WORKLOAD, cluster(1), "f", "gpu")["cases"][0]
    assert (case["warmup"], case["window"]) == (5, 10)


def test_an_epoch_is_never_replaced_by_a_given_window():
    tuner = with_epoch(WORKLOAD, 2, 320)
    planned = plan(
        {"window": 10, "topology": "1n1g"}, {"tuner": tuner, "tf": WORKLOAD}, cluster(1), None, "gpu"
    )
    assert [case["workload"] for case in planned["cases"]] == ["tf"]
    assert planned["skipped"][0]["reason"] == "the window of tuner is an epoch, so window cannot be set"


# Estimates


def test_the_estimate_is_that_of_earlier_runs_of_the_same_cases():
    planned = plan({"nodes": "1,2", "gpus": 1, "repeats": 2}, WORKLOAD, cluster(2), "f", "gpu")
    first, second = (case["name"] for case in planned["cases"])
    assert "estimate: about 5 min for 4 runs" in describe(planned, (), {first: 60, second: 90})
    assert "about 2 min for 2 runs, as earlier runs took; 2 more runs without" in describe(
        planned, (), {first: 60}
    )
    assert "no run of these cases has been measured before" in describe(planned, (), {})


def test_why_nothing_runs_names_every_reason_once():
    planned = plan({"dtype": "fp16"}, WORKLOAD, machine(2, 1), "f", "cpu")
    assert why_nothing_runs(planned) == "There is nothing to run. f: fp16 is slow here."
