"""The parameters: text and typed values mean the same, and every mistake is refused by name."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from ansible.module_utils.scalebook.judge.baseline import BaselineError, read_limit
from ansible.module_utils.scalebook.plan.parameters import (
    NAMES,
    PLAYBOOKS,
    TABLE,
    Context,
    ParameterError,
    as_list,
    parts,
    read,
    reference,
    rows_of,
    safe_name,
    taken_from,
)
from ansible.module_utils.scalebook.throughput import READINGS
from declared import with_epoch, workload

BENCH = Path(__file__).resolve().parents[3] / "scripts/bench"

TRAINER = workload(stack="old")
OTHER = replace(
    workload(title="Another", stack="new", dtypes={"cpu": ["bf16"]}, xla=[False]), settings=("other_mode",)
)
COMPILED = replace(
    TRAINER, title="A compiled one", xla_settings={"true": {"mode": "default"}, "false": {"mb": 25}}
)
TUNER = replace(with_epoch(workload(title="A tuner", xla=[False]), 2, 960), reads=("other_python",))
KNOWN = Context(
    {"tf2_bert": TRAINER, "other": OTHER, "tuner": TUNER, "compiled": COMPILED},
    {"old": {"tf2_bert": {}}, "new": {"other": {}}},
    {
        "campaign_takeover": "bool",
        "campaign_timeout": "int",
        "tf2_bert_seq_length": "int",
        "x_rate": "float",
        "horovod_framework": "str",
        "x_kind": "str",
        "campaign_mpirun_options": "list",
        "stack_check_may_differ": "list",
        "x_settings": "dict",
        "campaign_port": "int",
        "mirror_sha256": "str",
        "other_mode": "str",
        "other_seed": "str",
        "other_python": "str",
        "compiled_mode": "str",
        "compiled_mb": "int",
    },
    nodes=4,
    choices={"x_kind": ["plain", "fused"]},
)


def given(playbook="bench", **values):
    return read([playbook], values, values, KNOWN)


def refusal(playbook="bench", **values):
    with pytest.raises(ParameterError) as error:
        given(playbook, **values)
    return str(error.value)


@pytest.mark.parametrize("value", ["32,64", "[32,64]", "[32, 64]", [32, 64], ["32", "64"], " 32 , 64 "])
def test_all_spellings_of_a_list_mean_the_same(value):
    assert given(bsz=value)["bsz"] == [32, 64]


@pytest.mark.parametrize(
    ("value", "batches"), [("max", ["max"]), ("max,64", ["max", 64]), ([64, "max"], [64, "max"])]
)
def test_a_batch_is_a_number_or_max(value, batches):
    assert given(bsz=value)["bsz"] == batches


@pytest.mark.parametrize("value", ["Max", "maximum", "max8", "0", "-8", "max,max"])
def test_any_other_word_is_no_batch(value):
    assert "bsz" in refusal(bsz=value)


@pytest.mark.parametrize("value", ["0", "65", "many", "max"])
def test_the_runs_of_a_search_have_a_limit(value):
    assert refusal(bsz="max", bsz_max_runs=value) == (
        f"bsz_max_runs={value}: allowed are whole numbers from 1 to 64"
    )


def test_max_is_refused_where_every_window_is_an_epoch():
    assert "bsz=max: the window of A tuner is an epoch" in refusal(workload="tuner", bsz="max,8")
    assert given(workload="tuner,tf2_bert", bsz="max")["bsz"] == ["max"]


def test_one_value_is_a_list_of_one():
    assert as_list("64") == ["64"]
    assert as_list(64) == [64]


@pytest.mark.parametrize(
    ("value", "seconds"), [("0", 0), (0, 0), ("0.5", 0.5), (2, 2), (60.0, 60), (None, 1)]
)
def test_an_interval_is_seconds_and_0_switches_it_off(value, seconds):
    assert given(telemetry_interval=value)["telemetry_interval"] == seconds


def test_ranks_are_bound_unless_it_is_declined():
    assert [given()["binding"], given(binding="none")["binding"]] == ["numa", "none"]


@pytest.mark.parametrize(("value", "rate"), [("14451", 14451.0), (0.5, 0.5), ("3.25", 3.25)])
def test_a_claimed_rate_is_a_number_above_0(value, rate):
    assert given("claim", tokens_per_second=value)["tokens_per_second"] == rate


@pytest.mark.parametrize(("value", "share"), [("80%", 80.0), ("95", 95.0), (62.5, 62.5), ("1 %", 1.0)])
def test_a_share_is_read_in_per_cent(value, share):
    assert given(min_utilisation=value)["min_utilisation"] == share


@pytest.mark.parametrize(
    ("text", "truth"), [("true", True), ("False", False), (True, True), ("on", True), ("0", False)]
)
def test_a_boolean_reads_as_ansible_reads_it(text, truth):
    assert given(xla=text)["xla"] == [truth]


def test_a_parameter_that_is_not_given_has_its_default_or_none():
    values = given(bsz=None, dtype="")
    assert (values["workload"], values["dtype"], values["repeats"]) == (["tf2_bert"], ["fp32"], 5)
    assert (values["bsz"], values["nodes"], values["model"]) == (None, None, None)
    assert (values["plan_only"], values["preflight"], values["device"]) == (False, True, "auto")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bsz", "0"),
        ("bsz", "-1"),
        ("bsz", "NaN"),
        ("bsz", "1e9"),
        ("bsz", "64.5"),
        ("bsz", True),
        ("bsz", "32,"),
        ("bsz", "٣"),
        ("bsz", "$(reboot)"),
        ("nodes", "1000000000"),
        ("gpus", "0x8"),
        ("repeats", "0"),
        ("repeats", "1,2"),
        ("warmup", "-1"),
        ("window", "0"),
        ("dtype", "fp8"),
        ("model", "huge"),
        ("device", "tpu"),
        ("launcher", "sbatch"),
        ("binding", "socket"),
        ("workload", "../x"),
        ("stack_name", "../../x"),
        ("topology", "8g1n"),
        ("topology", "0n1g"),
        ("campaign", "../../up"),
        ("compare", "everything"),
        *(("report_language", value) for value in ("de", "ZH", "en,zh", True)),
        *(("max_regression", value) for value in ("much", "300%", "100%", "3", "0%", "1")),
        *(("min_utilisation", value) for value in ("0.8", "0", "101%", "most", "80,90", "nan", True)),
        ("telemetry_interval", "-1"),
        ("telemetry_interval", "0.05"),
        ("telemetry_interval", "61"),
        ("telemetry_interval", "1s"),
        ("telemetry_interval", "1,2"),
        ("telemetry_interval", "nan"),
        ("telemetry_interval", "٣"),
        ("telemetry_interval", True),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_the_allowed_ones(name, value):
    assert refusal(**{name: value}).startswith(f"{name}=")
    assert "allowed" in refusal(**{name: value})


@pytest.mark.parametrize(
    ("playbook", "name"),
    [
        (playbook, row.name)
        for playbook in PLAYBOOKS
        for row in rows_of([playbook]).values()
        if row.kind == "bool"
    ],
)
@pytest.mark.parametrize("value", ["ture", "maybe", "2"])
def test_a_misspelt_boolean_is_refused_in_every_playbook(playbook, name, value):
    assert f"{name}={value}: allowed are true and false" in refusal(playbook, **{name: value})


def test_a_misspelt_boolean_of_a_role_is_refused():
    assert refusal(campaign_takeover="ture") == "campaign_takeover=ture: allowed are true and false"
    assert "whole numbers" in refusal(campaign_timeout="1h")
    assert "numbers" in refusal(x_rate="fast")
    assert given(
        campaign_takeover="yes", campaign_timeout="60", x_rate="1e-3", tf2_bert_seq_length="{{ 64 }}"
    )


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_a_value_that_a_role_does_not_offer_is_refused_in_every_playbook(playbook):
    assert "x_kind=fussed: allowed are plain, fused (did you mean fused?)" in refusal(
        playbook, x_kind="fussed"
    )


@pytest.mark.parametrize("value", ["plain", "fused", "", "{{ other }}"])
def test_a_value_that_a_role_offers_is_accepted(value):
    given(x_kind=value)


@pytest.mark.parametrize(
    ("name", "value"), [("campaign_timeout", -1), ("campaign_timeout", "-5"), ("x_rate", "-0.5")]
)
def test_a_number_of_a_role_is_not_negative(name, value):
    assert f"{name}={value}: allowed are" in refusal(**{name: value})


ALONE = KNOWN._replace(stacks={"old": {"cuda": {}, "nccl": {}, "openmpi": {}}, "new": {"openmpi": {}}})


def test_components_are_installed_without_a_workload():
    values = {"provision_components": "cuda,openmpi", "stack_name": "old"}
    components = read(["provision"], values, values, ALONE)
    assert (components["provision_components"], components["workload"]) == (["cuda", "openmpi"], [])
    # A workload of the inventory is for the other times.
    assert read(["provision"], {**values, "workload": "other"}, values, ALONE)["workload"] == []


@pytest.mark.parametrize(
    ("values", "reasons"),
    [
        (
            {"provision_components": "cuda,python"},
            ["provision_components=python: allowed are cuda, nccl, openmpi"],
        ),
        ({"provision_components": "cuda"}, ["provision_components=cuda: give stack_name too, new or old"]),
        (
            {"provision_components": "cuda", "stack_name": "new"},
            ["provision_components=cuda: stack_name=new has no cuda; old has"],
        ),
        (
            {"provision_components": "nccl", "workload": "other", "provision_cuda": "true", "mirrro": "x"},
            ["leave out workload=other", "leave out provision_cuda=true", "give stack_name", "mirrro: "],
        ),
    ],
)
def test_components_that_cannot_be_installed_are_refused_in_one_message(values, reasons):
    with pytest.raises(ParameterError) as error:
        read(["provision"], values, values, ALONE)
    assert [reason for reason in reasons if reason not in str(error.value)] == []


def test_what_is_removed_is_named_in_the_command_and_not_in_the_inventory():
    assert given("remove", workload="other,tuner")["workload"] == ["other", "tuner"]
    with pytest.raises(ParameterError, match="workload: give what is to be removed with -e"):
        read(["remove"], {"workload": "other"}, {}, KNOWN)


def test_the_micro_benchmarks_are_installed_as_a_workload_and_measured_by_their_own_playbook():
    assert refusal(workload="tf2_bert,microbench") == (
        "workload=microbench: bench.yml does not measure it; use ansible-playbook microbench.yml"
    )
    assert "microbench" not in refusal(workload="tensorflow")
    assert "workload=microbench: allowed are" in refusal("import", logs="x", workload="microbench", out="y")
    for playbook in ("provision", "preflight", "mirror"):
        assert given(playbook, workload="microbench")["workload"] == ["microbench"]
        assert ", microbench" in refusal(playbook, workload="tensorflow")


@pytest.mark.parametrize("port", [0, 65533, 99999999])
def test_a_port_leaves_room_for_those_of_all_nodes(port):
    assert refusal(campaign_port=port) == (
        f"campaign_port={port}: allowed are 1 to 65532, since each of the 4 nodes may need one"
    )
    assert given(campaign_port=65532)


@pytest.mark.parametrize(
    ("playbook", "alone", "other"),
    [
        ("provision", {"mirror_sha256": "ab12"}, {"mirror": "/mnt/mirror"}),
        ("bench", {"bsz_max_runs": "4"}, {"bsz": "max"}),
        ("bench", {"max_regression": "5%"}, {"baseline": "night1"}),
    ],
)
def test_a_parameter_that_counts_beside_another_alone_is_refused_without_it(playbook, alone, other):
    [(name, value)], [(needed, _)] = alone.items(), other.items()
    said = refusal(playbook, **alone)
    assert said.startswith(f"{name}={value}: only with {needed}=") and said.endswith("; give both or neither")
    given(playbook, **alone, **other)


@pytest.mark.parametrize("name", ["other_mode", "other_seed"])
def test_a_variable_of_a_workload_that_is_not_measured_is_refused(name):
    assert refusal(workload="tf2_bert", **{name: "fast"}) == (
        f"{name}=fast: a variable of other, which is not measured; "
        "leave it out, or use workload=tf2_bert,other"
    )


def test_a_variable_of_another_workload_that_the_measured_one_reads_is_taken():
    assert given(workload="tuner", other_python="3.11")
    assert given(workload="tuner,tf2_bert", other_python="3.11")
    assert refusal(workload="tf2_bert", other_python="3.11").startswith(
        "other_python=3.11: a variable of other"
    )


def test_a_variable_of_the_inventory_may_be_of_a_workload_that_is_not_measured():
    assert read(["bench"], {"workload": "tf2_bert", "other_mode": "fast"}, {"workload": "tf2_bert"}, KNOWN)


def test_variables_of_workloads_that_are_measured_are_taken():
    assert given(workload="tf2_bert,other", other_mode="fast")
    assert "other_mode" not in refusal(workload="othr", other_mode="fast")
    # One file of variables serves all nodes and workloads.
    assert given("provision", workload="tf2_bert", other_mode="fast")


@pytest.mark.parametrize(
    ("setting", "xla"), [({"compiled_mode": "fast"}, "true"), ({"compiled_mb": "50"}, "false")]
)
def test_a_setting_that_counts_with_one_xla_alone_is_refused_without_it(setting, xla):
    other = "false" if xla == "true" else "true"
    [(name, value)] = setting.items()
    said = f"{name}={value}: only with xla={xla}; give both or neither"
    assert refusal(workload="compiled", xla=other, **setting) == said
    assert given(workload="compiled", xla=xla, **setting)
    assert given(workload="compiled", xla="false,true", **setting)
    # One file of variables serves all playbooks.
    assert given("provision", workload="compiled", xla=other, **setting)


def test_the_default_of_a_setting_without_effect_may_be_given():
    assert given(workload="compiled", xla="false", compiled_mode="default")
    assert given(workload="compiled", xla="true", compiled_mb="25")


def test_all_mistakes_are_in_one_message():
    message = refusal(bsz=0, repeats="x", bzs=64, plan_only="ture", nodes=9, campaign_takeover="jes")
    for name in ("bsz=0", "repeats=x", "bzs:", "plan_only=ture", "nodes=9", "campaign_takeover=jes"):
        assert name in message


def test_a_value_that_is_named_twice_is_refused():
    assert "32 is named twice" in refusal(bsz="32,32")


@pytest.mark.parametrize(
    ("old", "playbook"),
    [
        ({"verify": "true"}, "verify"),
        ({"index": "true"}, "index"),
        ({"archive": "true", "sign_key": "key"}, "share"),
        ({"push": "mlflow", "push_to": "x"}, "share"),
        ({"logs": "bz64", "workload": "other", "out": "x", "window": 7}, "import"),
    ],
)
def test_what_report_did_before_is_refused_with_the_command_that_does_it(old, playbook):
    name, value = next(iter(old.items()))
    assert refusal("report", **old) == f"{name}: use ansible-playbook {playbook}.yml"
    if playbook != name:
        assert given(playbook, **old)[name] in (True, value)


@pytest.mark.parametrize("playbook", ["report", "verify", "share"])
def test_a_campaign_is_named_once(playbook):
    assert refusal(playbook, campaign="x", campaign_dir="y") == (
        "campaign=x campaign_dir=y: each names the campaign; leave out the one or the other"
    )


def test_a_report_of_a_campaign_takes_nothing_that_describes_logs():
    assert "window: report.yml has no such parameter" in refusal("report", campaign="after", window=7)


def test_a_signature_is_of_an_archive():
    assert given("share", sign_key="x")["archive"] is True
    assert "sign_key=x: only with archive=true" in refusal(
        "share", sign_key="x", archive="false", push="wandb", push_to="x"
    )


def test_what_shares_nothing_is_refused():
    assert refusal("share", archive="false").startswith("archive=false: nothing is left to do")
    assert given("share", archive="false", push="wandb", push_to="x")["archive"] is False


@pytest.mark.parametrize("one", [{"push": "mlflow"}, {"push_to": "results/mlflow"}])
def test_a_tracker_and_its_place_are_given_together(one):
    assert "give both, for example push=mlflow push_to=results/mlflow" in refusal("share", **one)


def test_a_report_takes_what_the_inventory_says_for_other_commands():
    assert read(["report"], {"workload": "other", "report_language": "zh"}, {}, KNOWN)["compare"] is None


def test_the_report_of_a_campaign_is_reported_its_directory():
    values = {"campaign": "night1", "campaign_dir": "/results/night1", "window": 7}
    assert read(["report", "bench"], values, {"campaign": "night1", "window": 7}, KNOWN)


def test_the_command_line_needs_no_ansible():
    # -S: without the packages of the environment.
    done = subprocess.run([sys.executable, "-S", BENCH, "--help"], capture_output=True, text=True)
    assert "--dtype" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "playbook", ["report", "import", "verify", "index", "microbench", "acceptance", "preflight"]
)
def test_every_report_has_a_language_of_the_catalogue(playbook):
    assert given(playbook)["report_language"] == "en"
    assert given(playbook, report_language="zh")["report_language"] == "zh"
    assert refusal(playbook, report_language="de").startswith("report_language=de: allowed are en, zh")


def test_the_readings_are_those_of_the_report():
    assert {row.choices for row in TABLE if row.name == "reading"} == {READINGS}


@pytest.mark.parametrize("value", ["3%", "3 %", "0.03", "99.9%", "100%", "3", "0", "1", "0.5"])
def test_a_slowdown_is_refused_here_if_and_only_if_the_report_would_refuse_it(value):
    try:
        read_limit(value)
    except BaselineError:
        assert "max_regression=" in refusal(max_regression=value, baseline="night1")
    else:
        assert given(max_regression=value, baseline="night1")["max_regression"] == value


def test_an_unknown_name_is_refused_with_the_nearest_one():
    assert "bzs: there is no parameter of this name; did you mean bsz?" in refusal(bzs=64)
    assert "did you mean campaign?" in refusal("report", campain="x")
    assert "did you mean nodes?" in refusal("microbench", nodez=2)
    assert "did you mean campaign_timeout?" in refusal(campaign_timout=60)


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_an_unknown_name_is_refused_in_every_playbook(playbook):
    assert "no parameter of this name" in refusal(playbook, bogus=1)


def test_a_parameter_of_another_playbook_is_refused_with_its_name():
    assert refusal(sign_key="x") == "sign_key: bench.yml has no such parameter, only share.yml"


@pytest.mark.parametrize("playbook", ["provision", "preflight", "mirror"])
def test_the_parameters_of_bench_are_accepted_where_a_file_of_variables_is_shared(playbook):
    values = {"workload": "tf2_bert,other", "bsz": "32,64", "nodes": "1,2", "campaign": "night1"}
    assert given(playbook, **values)["workload"] == ["tf2_bert", "other"]


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_framework_with_the_name_of_a_workload_is_answered_with_it(playbook):
    assert "framework: use workload=tf2_bert" in refusal(playbook, framework="tf2_bert")


@pytest.mark.parametrize(
    ("framework", "workloads"),
    [
        ("tensorflow", "tf2_bert, tf1"),
        ("TensorFlow 2", "tf2_bert"),
        ("torch", "torch_bert"),
        ("tf", "tf2_bert, tf1"),
        ("jax", "tf2_bert, tf1, torch_bert"),
        ("", "tf2_bert, tf1, torch_bert"),
    ],
)
def test_a_framework_is_answered_with_its_workloads(framework, workloads):
    named = {"tf2_bert": "TensorFlow 2", "tf1": "Horovod (TensorFlow 1)", "torch_bert": "PyTorch"}
    known = Context({name: replace(TRAINER, framework=each) for name, each in named.items()}, {}, {})
    with pytest.raises(ParameterError) as error:
        read(["bench"], {}, {"framework": framework}, known)
    assert str(error.value) == f"framework={framework}: use workload=; its workloads are {workloads}" or (
        str(error.value) == f"framework={framework}: use workload=; the workloads are {workloads}"
    )


def test_a_word_that_is_not_name_and_value_is_refused_with_the_list_that_was_meant():
    assert "'64, 128' is not NAME=VALUE: write lists without spaces, bsz=32,64,128" in refusal(
        bsz="32,", _raw_params="64, 128"
    )
    assert "'64' is not NAME=VALUE: write lists without spaces, bsz=32,64, and put" in refusal(
        _raw_params="64"
    )


@pytest.mark.parametrize(("value", "words"), [("foo", '["foo"]'), ("[--mca, btl]", '["--mca", "btl"]')])
def test_text_for_a_list_of_a_role_is_refused_with_the_list_that_was_meant(value, words):
    assert refusal(campaign_mpirun_options=value) == (
        f"campaign_mpirun_options={value}: it must be a list; give it as JSON, "
        f"""-e '{{"campaign_mpirun_options": {words}}}'"""
    )
    assert given(campaign_mpirun_options=["--mca", "btl"])
    assert given(campaign_mpirun_options="{{ options_of_this_network }}")


def test_a_list_of_names_that_its_role_splits_may_be_text():
    assert given(stack_check_may_differ="driver,kernel")


def test_text_for_fields_of_a_role_is_refused():
    assert refusal(x_settings="NCCL_DEBUG=INFO").startswith(
        "x_settings=NCCL_DEBUG=INFO: it must have fields; "
    )
    assert given(x_settings={"NCCL_DEBUG": "INFO"})


def test_the_name_of_a_stack_is_not_the_stack():
    assert refusal(stack="old") == "stack=old: did you mean stack_name=old?"
    assert given(stack={"tf2_bert": {}})


@pytest.mark.parametrize("name", ["ansible_user", "scalebook_home", "slots", "node_address"])
def test_variables_of_ansible_and_of_the_inventory_are_accepted(name):
    assert given(**{name: "x"})


def test_a_name_that_only_the_inventory_has_is_not_refused():
    assert read(["bench"], {"bsz": 8}, {}, KNOWN)["bsz"] == [8]


def test_a_dtype_that_one_of_the_workloads_has_is_accepted():
    assert given(workload="tf2_bert,other", dtype="fp16,bf16")["dtype"] == ["fp16", "bf16"]
    assert "dtype=bf16" in refusal(dtype="bf16")


def test_a_compiler_that_no_workload_has_is_refused():
    assert given(workload="tf2_bert,other", xla="true")["xla"] == [True]
    assert refusal(workload="other", xla="true") == "xla=true: not a value of Another"


def test_warmup_and_window_of_epochs_are_refused():
    assert given(warmup=5, window=10)["window"] == 10
    assert "A tuner is an epoch" in refusal(workload="tuner", window=10)
    assert given(workload="tuner,tf2_bert", window=10)["window"] == 10


def test_a_topology_excludes_nodes_and_gpus():
    assert given(topology="1n1g,4n8g")["topology"] == ["1n1g", "4n8g"]
    assert parts("4n8g") == (4, 8)
    assert "leave out nodes and gpus" in refusal(topology="1n1g", gpus=1)


def test_more_nodes_than_the_inventory_has_are_refused_in_plain_words():
    assert refusal(nodes=9) == "nodes=9: allowed are 1 to 4, the nodes of this inventory"
    assert "topology=8n1g: allowed are 1 to 4" in refusal(topology="8n1g")
    with pytest.raises(ParameterError, match="nodes=2: the only allowed value is 1, the nodes"):
        read(["bench"], {"nodes": 2}, {}, KNOWN._replace(nodes=1))


def test_more_nodes_than_the_inventory_has_are_refused_by_the_micro_benchmarks_too():
    assert refusal("microbench", nodes="9") == "nodes=9: allowed are 1 to 4, the nodes of this inventory"
    assert given("microbench", nodes="4")["nodes"] == 4


def test_a_stack_without_the_versions_of_a_workload_is_refused():
    assert given(workload="other", stack_name="new")
    assert "stack_name=new: it has no versions for tf2_bert" in refusal(stack_name="new")


def test_lists_of_bench_are_lists_in_the_report_that_follows():
    raw = {"nodes": "1,2", "bsz": "32,64", "workload": "tf2_bert,other"}
    assert read(["report", "bench"], raw, raw, KNOWN)["nodes"] == [1, 2]


def test_a_parameter_that_means_something_else_in_the_same_command_keeps_its_default():
    values = read(["report", "bench"], {"campaign": "a", "baseline": "b"}, {"campaign": "a"}, KNOWN)
    assert (values["campaign"], values["baseline"]) == (None, "b")


def test_the_names_of_bench_are_those_of_the_table():
    assert {"workload", "bsz", "topology", "warmup", "window", "plan_only", "preflight"} <= set(NAMES)
    assert "framework" not in NAMES


def test_every_row_names_known_playbooks_and_describes_itself():
    assert {playbook for row in TABLE for playbook in row.playbooks} == set(PLAYBOOKS)
    assert all(row.help and set(row.lists) <= set(row.playbooks) for row in TABLE)


def test_the_reference_is_that_of_the_table(request):
    """Made again by: scripts/bench --reference > docs/reference/parameters.md."""
    assert (request.config.rootpath / "docs/reference/parameters.md").read_text() == reference()


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "; rm -rf", "$(x)", "{{ 7 }}", "", ".hidden", "a..b", "x" * 101, "-rf"]
)
def test_a_name_that_could_be_a_path_or_a_command_is_refused(name):
    with pytest.raises(ParameterError, match="host name="):
        safe_name("host name", name)


OURS = KNOWN._replace(
    sources={"device": "group_vars/all.yml", "bsz": "group_vars/all.yml", "reading": "h.yml"}
)


def refusal_of(values, given):
    with pytest.raises(ParameterError) as error:
        read(["bench"], values, given, OURS)
    return str(error.value)


def test_a_wrong_value_of_the_inventory_names_its_file():
    said = refusal_of({"device": "mlx5_0", "bsz": 0}, {})
    assert said.endswith(
        "group_vars/all.yml sets device, bsz, parameters of scalebook: "
        "rename them there, or give other values with -e"
    )


def test_a_value_of_e_does_not_name_the_file_that_it_overrides():
    assert "group_vars" not in refusal_of({"device": "x"}, {"device": "x"})


def test_what_only_the_report_reads_is_refused_before_anything_is_measured():
    assert refusal_of({"reading": 3}, {}).startswith(
        "reading=3: allowed are stamps, printed. h.yml sets reading"
    )


def test_what_the_inventory_sets_is_reported_with_its_file():
    values = {"device": "cpu", "bsz": "16"}
    line = taken_from(["bench"], read(["bench"], values, {}, OURS), {}, OURS)
    assert line == "From the inventory, as -e does not say otherwise: bsz=16 device=cpu (group_vars/all.yml)"


def test_what_e_overrides_or_is_the_default_is_not_reported():
    values = {"device": "auto", "bsz": "16"}
    assert taken_from(["bench"], read(["bench"], values, values, OURS), {"bsz": "16"}, OURS) == ""


def test_a_value_that_one_node_alone_has_is_refused():
    known = KNOWN._replace(uneven={"bsz": "b has 32, a has none", "logs": "b has x, a has none"})
    with pytest.raises(ParameterError, match="^bsz: b has 32, a has none, and all nodes have one"):
        read(["bench"], {}, {}, known)


def test_a_value_that_one_node_alone_has_does_not_count_where_e_gives_another():
    known = KNOWN._replace(uneven={"bsz": "b has 32, a has none"})
    assert read(["bench"], {"bsz": "8"}, {"bsz": "8"}, known)["bsz"] == [8]


SECRET = "https://me:geheim-token@host.example/x"


@pytest.mark.parametrize(
    "name", ["bsz", "campaign", "baseline", "device", "telemetry_export", "nonsense", "bzs"]
)
def test_a_misplaced_secret_is_refused_and_not_shown(name):
    assert "geheim" not in refusal(**{name: SECRET})


def test_a_secret_is_given_to_a_tracker_only():
    assert given("share", push_to=SECRET, push="mlflow")["push_to"] == SECRET
    assert "may hold no password" in refusal("report", campaign_dir=SECRET)


def test_a_comma_between_parameters_is_refused_in_these_words():
    said = refusal(bsz="64,", dtype="fp64")
    assert said.startswith("bsz=64,: a comma at the end is not allowed; parameters have none between them")
    assert "dtype=fp64" in said


def test_a_dtype_is_refused_with_those_of_other_devices_and_workloads():
    assert "(tf2_bert has fp32 on CPUs and fp32, fp16 on GPUs; bf16 is of other)" in refusal(
        workload="tf2_bert", dtype="fp8"
    )


@pytest.mark.parametrize(("device", "where"), [("cpu", ""), ("auto", " on CPUs")])
def test_too_many_devices_are_refused_with_all_other_mistakes(device, where):
    values = {"gpus": "9", "device": device, "dtype": "fp64"}
    with pytest.raises(ParameterError) as error:
        read(["bench"], values, values, KNOWN._replace(slots=8))
    assert "dtype=fp64" in str(error.value)
    assert str(error.value).endswith(f"gpus=9: allowed are 1 to 8, the devices of each node{where}")


def test_more_devices_than_slots_are_no_mistake_where_the_nodes_may_have_gpus():
    values = {"gpus": "9"}
    assert read(["bench"], values, values, KNOWN._replace(slots=8))["gpus"] == [9]


LIMITED = workload(
    name="x", limits={"length": "8 to 512", "predictions": "1 to length - 3", "rate": "numbers above 0"}
)
LIMITED_TYPES = {"x_length": "int", "x_predictions": "int", "x_rate": "float", "x_kind": "str"}
DEFAULTS = {"x_length": 128, "x_predictions": 20, "x_rate": 0.1, "x_kind": "plain"}


def limited(playbook="bench", inventory=None, **extra):
    """Read the parameters where the role x has limits; `inventory` are values besides the extra variables."""
    values = {**DEFAULTS, **(inventory or {}), **extra}
    context = Context(
        {"x": LIMITED},
        {"modern": {}},
        LIMITED_TYPES,
        choices={"x_kind": ["plain", "fused"]},
        role_values=lambda names, stack: {name: {**values, "stack": stack}[name] for name in names},
    )
    given = {"workload": "x", **extra}
    return read([playbook], given, given, context)


@pytest.mark.parametrize("playbook", ["bench", "provision", "mirror"])
def test_all_values_outside_their_limits_are_refused_together(playbook):
    more = {"mirror": "there"} if playbook == "mirror" else {}
    assert limited(playbook, x_length="64", x_predictions="61", **more)
    with pytest.raises(ParameterError) as error:
        limited(playbook, x_length="64", x_predictions="62", x_rate="0", **more)
    assert str(error.value) == (
        "x_predictions=62: allowed are 1 to x_length - 3 (x_length=64); x_rate=0: allowed are numbers above 0"
    )


@pytest.mark.parametrize(
    ("inventory", "refusal"),
    [
        ({"x_length": 513}, "x_length=513: allowed are 8 to 512"),
        ({"x_predictions": 126}, "x_predictions=126: allowed are 1 to x_length - 3 (x_length=128)"),
        ({"x_length": "long"}, "x_length=long: allowed are whole numbers from 0 on"),
        ({"x_kind": "fussed"}, "x_kind=fussed: allowed are plain, fused (did you mean fused?)"),
        ({"x_kind": ""}, "x_kind=: allowed are plain, fused"),
    ],
)
def test_values_of_the_inventory_have_the_same_limits(inventory, refusal):
    with pytest.raises(ParameterError) as error:
        limited(inventory=inventory)
    assert str(error.value) == refusal


def test_a_mistake_of_an_extra_variable_is_named_once():
    with pytest.raises(ParameterError) as error:
        limited(x_length="long")
    assert str(error.value) == "x_length=long: allowed are whole numbers from 0 on"


def test_a_value_that_cannot_be_evaluated_is_refused():
    with pytest.raises(ParameterError) as error:
        limited(inventory={"x_length": ValueError("'nope' is undefined")})
    assert str(error.value) == "x_length: its value cannot be evaluated: 'nope' is undefined"
