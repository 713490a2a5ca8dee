# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A workload is one role: what it shares comes from the kit, and nothing outside it knows its name."""

import re
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook import kit_log
from ansible.module_utils.scalebook.plan.declared import role_variables, roles_with
from ansible.module_utils.scalebook.workloads import load_workloads

ROOT = Path(__file__).resolve().parents[3]
ROLES = sorted(path for top in ("roles", "tests/roles") for path in (ROOT / top).iterdir() if path.is_dir())
WORKLOADS = load_workloads([str(ROOT / "roles"), str(ROOT / "tests/roles")])
NAMES = {role.name for role in ROLES}
YAML = sorted(
    path
    for place in ("roles", "tests/roles", "playbooks")
    for path in (ROOT / place).rglob("*")
    if path.suffix in (".yml", ".j2") and path.is_file()
)
PROGRAMS = sorted(
    path
    for pattern in ("module_utils/**/*.py", "library/*.py", "*_plugins/*.py")
    for path in ROOT.glob(pattern)
)

# What still breaks a rule: `<role>: <what>`. Entries may only be removed; one that is no longer true fails.
PRIVATE = set()
CONDITIONS = set()
# A comparison of the workload that was asked for, with whatever.
SWITCH = re.compile(r"(?<![\w.])(framework|workload)\b[^}\n]*?[=!]=")


def role_of(path):
    """Return the name of the role that a file belongs to, "" outside of the roles."""
    parts = path.relative_to(ROOT).parts
    start = parts.index("roles") + 1 if "roles" in parts else len(parts)
    return parts[start] if start < len(parts) else ""


def private_variables(own, text):
    """Return the internal variables of other roles in a file of the role `own`, as `<own>: <variable>`."""
    found = set()
    for name in re.findall(r"\b__[a-z0-9_]+", text):
        # The longest name counts: __horovod_bert_x is not a variable of role horovod.
        owner = max((role for role in NAMES if name.startswith(f"__{role}_")), key=len, default=own)
        if owner != own:
            found.add(f"{own}: {name}")
    return found


def conditions(own, text):
    """Return the workloads that a file outside of their roles compares a variable with."""
    words = r"""\b(?:framework|workload)\b[^{}\n]{0,40}?(?:==|!=|\bin\b)\s*[\[(]?['"]([a-z0-9_]+)['"]"""
    return set(re.findall(words, text)) & set(WORKLOADS) - {own}


def conditions_of(paths):
    return {
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for name in conditions(role_of(path), path.read_text())
    }


def test_no_link_leads_from_one_role_to_another():
    links = [path for role in ROLES for path in role.rglob("*") if path.is_symlink()]
    assert [
        str(path) for path in links if role_of(path.parent.resolve() / path.readlink()) != role_of(path)
    ] == []


def test_no_role_reads_the_internal_variables_of_another():
    found = set().union(
        *(private_variables(role_of(path), path.read_text()) for path in YAML if role_of(path))
    )
    assert found == PRIVATE


def test_no_condition_names_a_workload_outside_its_role():
    assert conditions_of([*YAML, *PROGRAMS]) == CONDITIONS


def test_no_role_asks_which_workload_runs():
    asked = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in YAML
        if role_of(path)
        for match in SWITCH.finditer(path.read_text())
    ]
    assert asked == []


@pytest.mark.parametrize("role", ROLES, ids=lambda role: role.name)
def test_a_role_is_a_workload_if_and_only_if_it_has_a_node_script(role):
    assert (role / "templates/run.sh.j2").exists() == (role.name in WORKLOADS)


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_workload_has_at_most_eight_files_that_somebody_wrote(name):
    """README.md is generated, and a lock is made of the packages that its .in names."""
    role = Path(WORKLOADS[name].path)
    made = {"README.md", ".txt", ".in", ".pyc"}
    files = [path for path in role.rglob("*") if path.is_file() and not made & {path.name, path.suffix}]
    assert len(files) <= 8


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_a_workload_detects_its_device_with_the_kit(name):
    tasks = "".join(path.read_text() for path in Path(WORKLOADS[name].path).glob("tasks/*.yml"))
    assert "--list-gpus" not in tasks


def test_what_the_rules_forbid_is_recognised():
    assert private_variables("hf_mlm", "{{ __torch_bert_device }}") == {"hf_mlm: __torch_bert_device"}
    assert private_variables("horovod_bert", "{{ __horovod_bert_x }}") == set()
    assert conditions("", "when: workload == 'tf2_bert'") == {"tf2_bert"}
    assert conditions("", "when: framework | default('x') in ['torch_bert']") == {"torch_bert"}
    assert conditions("tf2_bert", "when: workload == 'tf2_bert'") == set()
    assert SWITCH.search("{{ 1 if workload | default('x') != 'y' }}")


def test_the_declarations_are_yaml_that_needs_no_template():
    for workload in WORKLOADS.values():
        text = (Path(workload.path) / "meta/workload.yml").read_text()
        assert "{{" not in text and yaml.safe_load(text)["title"]


def test_a_campaign_compares_what_is_installed_with_what_it_needs():
    """An environment that an earlier lock made would count under the version that the variables name."""
    assert "include_tasks: wanted" in (ROOT / "roles/workload/tasks/prepare.yml").read_text()


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_has_no_tasks_but_those_that_its_declaration_names(name):
    """Role workload is what the playbooks call."""
    own = {path.stem for path in (Path(WORKLOADS[name].path) / "tasks").glob("*.yml")}
    assert own & {"main", "install", "prepare", "mirror"} == set(WORKLOADS[name].install.get("tasks", ()))


@pytest.mark.parametrize(
    "path",
    [path for path in YAML if path.suffix == ".yml" and "PYTHONNOUSERSITE" in path.read_text()],
    ids=str,
)
def test_a_python_that_may_not_see_the_users_modules_does_not_see_those_of_pythonpath(path):
    """A run has neither (run_head.sh): what a check could import there, a run could not."""
    text = path.read_text()
    assert text.count("PYTHONPATH") >= text.count("PYTHONNOUSERSITE")


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_a_workload_declares_the_variables_of_others_that_its_role_reads(workload):
    public = role_variables([str(ROOT / "roles")])
    texts = [path.read_text() for path in YAML if role_of(path) == workload and path.parent.name == "tasks"]
    named = {name for text in texts for name in re.findall(r"(?<![\w])[a-z]\w+", text) if name in public}
    others = tuple(f"{name}_" for name in WORKLOADS if name != workload)
    # An instance, or what a role leaves, is not for users.
    read = {name for name in named if name.startswith(others) and not name.startswith(f"{workload}_")}
    given = ("_instance", "_install", "_installs", "_locked")
    assert {name for name in read if not name.endswith(given)} <= set(WORKLOADS[workload].reads)
    assert set(WORKLOADS[workload].reads) <= public.keys()


def declared(name):
    return yaml.safe_load((Path(WORKLOADS[name].path) / "meta/workload.yml").read_text())


@pytest.mark.parametrize("name", [name for name in WORKLOADS if "kit" in declared(name)["log"]])
def test_a_workload_of_the_kit_lists_no_rule_that_the_kit_has(name):
    kit = {rule["name"]: rule["pattern"] for rule in kit_log.sanity(declared(name)["log"]["kit"], "all")}
    if "accumulation" not in declared(name):
        del kit["accumulation"]  # some print it anyway
    own = declared(name).get("sanity", ())
    assert [rule["name"] for rule in own if rule["pattern"].strip() in kit.get(rule["name"], "")] == []


def test_no_formula_of_operations_stands_in_two_declarations():
    formulas = [declared(name).get("flops", {}).get("sample") for name in WORKLOADS]
    formulas += [model["sample"] for model in yaml.safe_load((ROOT / "data/models.yml").read_text()).values()]
    assert len(formulas) - formulas.count(None) == len(set(formulas) - {None})


def test_what_any_role_installs_is_for_root_alone():
    """Below scalebook_home, directories have the names of roles; a role may have no tasks/main.yml."""
    text = (ROOT / "playbooks/tasks/root_only.yml").read_text()
    (file,) = re.findall(r"scalebook_roles\('([^']+)'\)", text)
    frameworks = {each.install["framework"] for each in WORKLOADS.values() if "framework" in each.install}
    assert {*WORKLOADS, *frameworks} - set(
        roles_with([str(ROOT / "roles"), str(ROOT / "tests/roles")], file)
    ) == set()
