# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The declaration of a workload: what is loaded from a role, what is refused, and how values are put in."""

import json
import shutil

import pytest
import yaml
from ansible.module_utils.scalebook.workload import Workload, WorkloadError
from ansible.module_utils.scalebook.workloads import load_workloads
from role_files import ROLES

RULE = {"name": "it", "literal": "it", "pattern": "(?P<value>it)"}


def changed(folder, role="hf_mlm", **keys):
    """Copy a role's meta/ below `folder` with keys of the declaration changed; None takes one out."""
    shutil.copytree(ROLES / role / "meta", folder / role / "meta")
    file = folder / role / "meta/workload.yml"
    declaration = {**yaml.safe_load(file.read_text()), **keys}
    file.write_text(yaml.safe_dump({key: value for key, value in declaration.items() if value is not None}))
    return [str(folder)]


def values(**other):
    of_mlm = {"eval_samples": "1024", "length": 512, "tf32": "yes", "report_to": "none", "own_data": ""}
    of_mlm.update({"checkpointing": "no", "epochs": "2", "train_samples": 2048.0}, **other)
    return {f"hf_mlm_{name}": value for name, value in of_mlm.items()}


@pytest.fixture
def hf_mlm():
    return load_workloads([str(ROLES)])["hf_mlm"]


def test_a_role_without_a_declaration_is_not_a_workload():
    assert "node" not in load_workloads([str(ROLES)])


def test_a_declaration_has_the_name_and_the_directory_of_its_role(hf_mlm):
    assert (hf_mlm.name, hf_mlm.path) == ("hf_mlm", str(ROLES / "hf_mlm"))


def test_the_types_of_settings_are_those_of_the_argument_specs(hf_mlm):
    types = {"eval_samples": "int", "length": "int", "tf32": "bool", "report_to": "str", "own_data": "str"}
    types.update(checkpointing="bool", epochs="int", train_samples="int")
    assert hf_mlm.setting_types == {f"hf_mlm_{name}": kind for name, kind in types.items()}


def test_the_first_of_two_roles_of_a_name_counts_as_for_ansible(tmp_path):
    paths = [*changed(tmp_path, title="Mine"), str(ROLES)]
    assert load_workloads(paths)["hf_mlm"].title == "Mine"
    assert load_workloads(paths[::-1])["hf_mlm"].title != "Mine"


def test_a_changed_file_is_read_again(tmp_path):
    paths = changed(tmp_path)
    load_workloads(paths)
    file = tmp_path / "hf_mlm/meta/workload.yml"
    file.write_text(file.read_text().replace("Hugging Face Trainer", "Another title"))
    assert "Another title" in load_workloads(paths)["hf_mlm"].title


def test_modules_make_the_same_workload_of_the_data_that_they_are_given(hf_mlm):
    resolved = hf_mlm.resolve(values())
    assert Workload.from_data(json.loads(json.dumps(resolved.as_data()))) == resolved


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"family": None}, "the key family is missing"),
        ({"colour": "blue"}, "unknown key 'colour'; allowed are "),
        ({"dlperf": {"framework": "PyTorch"}}, "dlperf: unknown key 'framework'"),
        ({"dlperf": {"frameworks": ["PyTorch"]}}, "dlperf: give frameworks and models"),
        ({"dlperf": {"frameworks": "PyTorch", "models": {}}}, "dlperf.frameworks: .* is not a list of texts"),
        ({"dlperf": {"frameworks": [], "models": {}, "settings": {}}}, "dlperf: unknown key 'settings'"),
        ({"epoch": None}, "give either warmup and window, or epoch"),
        ({"warmup": 20, "window": 100}, "give either warmup and window, or epoch"),
        ({"epoch": {"epochs": "hf_mlm_epochs"}}, "epoch: give epochs and samples"),
        ({"settings": ["tf2_bert_seq_length"]}, "a setting is a variable of the role hf_mlm"),
        ({"refuses": [{"when": "gpus % 2"}]}, r"refuses\[0\].why: is not a text"),
        ({"refuses": [{"when": "gpus % 2", "why": "{cores} cores"}]}, "refuses: gpus % 2, model .*: 'cores'"),
        (
            {"refuses": [{"when": "gpus > 2", "why": "x"}]},
            "refuses: gpus > 2, model .*: .* does not compare",
        ),
        ({"settings_before": {"colour": "blue"}}, "settings_before: colour is not a setting"),
        ({"was": {"workload": "torch_bert"}}, "was: give workload and settings"),
        ({"was": {"settings": {"colour": "blue"}}}, "was.workload: is not a text"),
        ({"xla_settings": {"true": {"colour": "blue"}}}, "xla_settings: colour is not a setting"),
        ({"xla_settings": {True: {"length": 1}}}, 'xla_settings: True is neither "true" nor "false"'),
        ({"size": "seq_length"}, "size: 'seq_length' is neither a setting nor a whole number above 0"),
        ({"drives_all_devices": "yes"}, "drives_all_devices: 'yes'; allowed are true, false"),
        ({"reserves_gpu_memory": "no"}, "reserves_gpu_memory: 'no'; allowed are true, false"),
        ({"size": 0}, "size: 0 is neither a setting nor a whole number above 0"),
        ({"settings": ["hf_mlm_seqlength"]}, "hf_mlm_seqlength: .* has no such variable"),
        ({"settings": "hf_mlm_length"}, "settings: 'hf_mlm_length' is not a list of texts"),
        ({"title": ""}, "title: is not a text"),
        ({"models": {"cpu": "huge"}}, "models.cpu: 'huge'; allowed are tiny, bert-base, deberta-v3-base"),
        ({"dtypes": {"tpu": ["fp32"]}}, "dtypes: unknown key 'tpu'; allowed are cpu, gpu"),
        ({"xla": ["no"]}, "xla: .* is not a list of true and false"),
        ({"bsz": {"cpu": 0}}, "bsz.cpu: 0 is not a whole number from 1 on"),
        ({"accumulation": 0}, "accumulation: 0 is not a whole number from 1 on"),
        ({"processes_per_node": "cpus"}, "processes_per_node: 'cpus'; allowed are gpus and whole numbers"),
        ({"processes_per_node": {"launcher": {"job": 1}}}, "processes_per_node: launcher is not a setting"),
        ({"log": {"literal": "step=", "step": "("}}, "log.step: '\\(' is not a regular expression"),
        ({"sanity": [{**RULE, "expect": "settings.colour"}]}, "sanity: colour is not a setting"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_file(tmp_path, keys, message):
    with pytest.raises(WorkloadError, match=f"hf_mlm/meta/workload.yml: .*{message}"):
        load_workloads(changed(tmp_path, **keys))


def test_the_size_of_a_sample_is_a_number_or_the_value_of_a_setting():
    assert Workload(size=224).sample_size({}) == 224
    assert Workload(size="length").sample_size({"length": 512}) == 512
    assert Workload(size="length").sample_size({}) is None  # logs that were imported
    assert Workload().sample_size({"length": 512}) is None


def test_every_workload_whose_operations_follow_a_size_declares_it():
    declarations = load_workloads([str(ROLES)]).values()
    assert [each.name for each in declarations if each.flops and each.size is None] == []


def test_a_mode_of_the_compiler_makes_no_other_case_where_nothing_is_compiled():
    declarations = load_workloads([str(ROLES)])
    with_mode = [name for name, each in declarations.items() if f"{name}_compile_mode" in each.settings]
    assert {"torch_bert", "torch_gpt2", "torch_resnet50"} <= set(with_mode)
    assert [name for name in with_mode if "compile_mode" not in declarations[name].idle_settings(False)] == []


def test_settings_without_effect_have_the_value_of_the_role():
    for name, each in load_workloads([str(ROLES)]).items():
        defaults = yaml.safe_load((ROLES / name / "defaults/main.yml").read_text())
        for idle in (each.idle_settings(False), each.idle_settings(True)):
            assert idle == {setting: defaults[f"{name}_{setting}"] for setting in idle}


def test_a_file_that_is_not_yaml_is_refused(tmp_path):
    paths = changed(tmp_path)
    (tmp_path / "hf_mlm/meta/workload.yml").write_text("title: [")
    with pytest.raises(WorkloadError, match="workload.yml: is not YAML"):
        load_workloads(paths)


def test_settings_are_named_without_the_role_and_have_the_types_of_their_variables(hf_mlm):
    settings = hf_mlm.resolve(values()).setting_values
    read = {"eval_samples": 1024, "length": 512, "tf32": True, "checkpointing": False}
    assert settings == {**read, "report_to": "none", "own_data": ""}
    assert [type(value) for value in settings.values()] == [int, int, bool, bool, str, str]


def test_the_values_of_an_epoch_are_numbers(hf_mlm):
    resolved = hf_mlm.resolve(values())
    assert (resolved.values["hf_mlm_epochs"], resolved.values["hf_mlm_train_samples"]) == (2, 2048)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"length": "wide"}, "hf_mlm_length=wide: it must be a whole number"),
        ({"length": 1.5}, "hf_mlm_length=1.5: it must be a whole number"),
        ({"length": True}, "hf_mlm_length=True: it must be a whole number"),
        ({"tf32": "ture"}, "hf_mlm_tf32=ture: allowed are true and false"),
    ],
)
def test_a_value_of_another_type_is_refused_by_the_name_of_its_variable(hf_mlm, other, message):
    with pytest.raises(WorkloadError, match=message):
        hf_mlm.resolve(values(**other))


@pytest.mark.parametrize("value", ["many", "nan", "inf", True])
def test_a_number_is_finite(value):
    declaration = load_workloads([str(ROLES.parent / "tests/roles")])["scripted"]
    with pytest.raises(WorkloadError, match=f"scripted_step={value}: it must be a number"):
        declaration.resolve({"scripted_step": value})


def test_a_variable_without_a_value_is_named(hf_mlm):
    with pytest.raises(WorkloadError, match="hf_mlm: the variable hf_mlm_eval_samples is not set"):
        hf_mlm.resolve({})
