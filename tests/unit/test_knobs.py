"""The knobs of a campaign: text and typed values mean the same, and a wrong one is refused by name."""

import pytest
from ansible.module_utils.scalebook.knobs import KnobError, as_list, check_names, read_knobs, safe_name

WORKLOAD = {
    "title": "A trainer",
    "models": {"cpu": "tiny", "gpu": "base"},
    "model_names": ["tiny", "base"],
    "dtypes": {"cpu": ["fp32"], "gpu": ["fp32", "fp16"]},
    "xla": [False, True],
    "bsz": {"cpu": 16, "gpu": 32},
}


@pytest.mark.parametrize("value", ["32,64", "[32,64]", "[32, 64]", [32, 64], ["32", "64"], " 32 , 64 "])
def test_all_spellings_of_a_list_mean_the_same(value):
    assert read_knobs({"bsz": value}, WORKLOAD, "cpu")["bsz"] == [32, 64]


def test_one_value_is_a_list_of_one():
    assert as_list("64") == ["64"]
    assert as_list(64) == [64]


@pytest.mark.parametrize(
    ("text", "truth"), [("true", True), ("False", False), (True, True), ("on", True), ("0", False)]
)
def test_a_switch_reads_as_ansible_reads_it(text, truth):
    assert read_knobs({"xla": text}, WORKLOAD, "cpu")["xla"] == [truth]


def test_what_is_not_given_is_the_workload_s_own():
    knobs = read_knobs({"bsz": None, "dtype": ""}, WORKLOAD, "gpu")
    assert (knobs["bsz"], knobs["dtype"], knobs["model"], knobs["repeats"]) == ([32], ["fp32"], "base", 3)
    assert knobs["nodes"] is None


@pytest.mark.parametrize(
    ("knob", "value"),
    [
        ("bsz", "0"),
        ("bsz", "-1"),
        ("bsz", "NaN"),
        ("bsz", "1e9"),
        ("bsz", "64.5"),
        ("bsz", True),
        ("bsz", "32,"),
        ("bsz", "٣"),
        ("nodes", "1000000000"),
        ("gpus", "0x8"),
        ("repeats", "0"),
        ("dtype", "fp8"),
        ("xla", "maybe"),
        ("model", "huge"),
        ("force", "perhaps"),
        ("bsz", "$(reboot)"),
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_what_is_allowed(knob, value):
    with pytest.raises(KnobError, match=rf"^{knob}=.*: allowed are "):
        read_knobs({knob: value}, WORKLOAD, "cpu")


def test_all_bad_values_are_named_at_once():
    with pytest.raises(KnobError, match=r"bsz=0: .*; .*repeats=x: "):
        read_knobs({"bsz": 0, "repeats": "x"}, WORKLOAD, "cpu")


def test_a_value_named_twice_is_refused():
    with pytest.raises(KnobError, match="32 is named twice"):
        read_knobs({"bsz": "32,32"}, WORKLOAD, "cpu")


def test_a_switch_that_the_workload_lacks_is_refused():
    with pytest.raises(KnobError, match="xla=true: A trainer has no such switch"):
        read_knobs({"xla": True}, {**WORKLOAD, "xla": [False]}, "cpu")


def test_a_misspelt_variable_is_refused_with_the_nearest_name():
    with pytest.raises(KnobError, match=r"bzs: .*did you mean bsz\?"):
        check_names(["bzs"], ["tf2_bert"])


@pytest.mark.parametrize("name", ["bsz", "tf2_bert_seq_length", "ansible_user", "stack_name", "compare"])
def test_a_variable_that_something_reads_is_let_pass(name):
    check_names([name], ["tf2_bert"], ["compare"])


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "; rm -rf", "$(x)", "{{ 7 }}", "", ".hidden", "a..b", "x" * 101, "-rf"]
)
def test_a_name_that_could_be_a_path_or_a_command_is_refused(name):
    with pytest.raises(KnobError, match="host name="):
        safe_name("host name", name)
