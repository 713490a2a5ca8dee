# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What `ansible-doc` shows of a module is what the module takes."""

import ast
import importlib
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.scalebook.evaluate.read import TABLES
from ansible.module_utils.scalebook.pages.catalogue import LANGUAGES
from ansible.module_utils.scalebook.throughput import READINGS
from run_module import control_node

ROOT = Path(__file__).resolve().parents[3]
PATHS = [*ROOT.glob("library/*.py"), *ROOT.glob("roles/*/library/*.py")]
MODULES = sorted(path.stem for path in PATHS)
OF_NODES = [name for name in MODULES if not (ROOT / f"action_plugins/{name}.py").exists()]


def documented(module):
    return control_node.spec_of(yaml.safe_load(module.DOCUMENTATION)["options"])


def plain(spec):
    """Return an argument spec without what documentation writes the same as absent, or has no word for."""
    return {
        name: {
            key: plain(value) if key == "options" else value
            for key, value in fields.items()
            if key != "no_log"
            and not (key == "required" and value is False)
            and not (key == "default" and value is None)
        }
        for name, fields in spec.items()
    }


@pytest.fixture(params=MODULES)
def module(request):
    return importlib.import_module(request.param)


def test_no_two_modules_have_the_same_name():
    assert len(set(MODULES)) == len(MODULES)


def test_the_documentation_names_the_module(module):
    documentation = yaml.safe_load(module.DOCUMENTATION)
    assert documentation["module"] == module.__name__
    assert documentation["short_description"] and documentation["description"]


@pytest.mark.parametrize("name", OF_NODES)
def test_documented_options_equal_the_argument_spec(name):
    module = importlib.import_module(name)
    assert plain(documented(module)) == plain(module.argument_spec())


def test_a_module_of_the_control_node_has_no_options_but_the_documented():
    modules = [importlib.import_module(name) for name in MODULES if name not in OF_NODES]
    assert [
        each.__name__ for each in modules if hasattr(each, "argument_spec") or hasattr(each, "main")
    ] == []
    assert [each.__name__ for each in modules if not hasattr(each, "run")] == []


def logic_of(source):
    """Return the lines of a module of the control node that do more than call one function of the package."""
    words = ("DOCUMENTATION", "EXAMPLES", "RETURN")
    for node in ast.parse(source).body:
        is_run = isinstance(node, ast.FunctionDef) and node.name == "run"
        body = node.body if is_run else [node]
        for each in body:
            imports = isinstance(each, (ast.Import, ast.ImportFrom)) and not is_run
            text = isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant)
            named = isinstance(each, ast.Assign) and each.targets[0].id in words and not is_run
            unused = is_run and ast.unparse(each) == "del check"
            called = is_run and isinstance(each, ast.Return) and isinstance(each.value, ast.Call)
            if not (imports or text or named or unused or called):
                yield each.lineno


@pytest.mark.parametrize("name", [name for name in MODULES if name not in OF_NODES])
def test_a_module_of_the_control_node_only_calls_a_function(name):
    assert [*logic_of((ROOT / f"library/{name}.py").read_text())] == []


@pytest.mark.parametrize("name", [path.stem for path in ROOT.glob("library/*.py") if path.stem in OF_NODES])
def test_a_module_of_the_nodes_only_calls_a_function(name):
    tree = ast.parse((ROOT / f"library/{name}.py").read_text())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert set(functions) == {"argument_spec", "main"}
    assert [type(node) for node in functions["main"].body] == [ast.Assign, ast.Try, ast.Expr]
    assert [len(node.body) for node in ast.walk(functions["main"]) if isinstance(node, ast.Try)] == [1]
    assert not any(isinstance(node, (ast.ClassDef, ast.AnnAssign)) for node in tree.body)


@pytest.mark.parametrize(
    "code", ["LIMIT = 3", "def other(): ...", "def run(params, check):\n  x = 1\n  return f(x)"]
)
def test_logic_in_a_module_is_found(code):
    assert [*logic_of(code)]


@pytest.mark.parametrize(
    ("module", "option", "choices"),
    [
        ("speedup_report", "report_language", LANGUAGES),
        ("results_index", "report_language", LANGUAGES),
        ("microbench_report", "report_language", LANGUAGES),
        ("results_verify", "report_language", LANGUAGES),
        ("log_import", "report_language", LANGUAGES),
        ("preflight_report", "report_language", LANGUAGES),
        ("acceptance_report", "report_language", LANGUAGES),
        ("speedup_report", "reading", READINGS),
    ],
)
def test_the_choices_of_an_option_are_those_that_there_are(module, option, choices):
    assert documented(importlib.import_module(module))[option]["choices"] == list(choices)


def test_an_evaluation_may_show_every_published_table():
    asked = documented(importlib.import_module("evaluation"))["evaluation"]["options"]
    assert asked["published"]["choices"] == list(TABLES)


def test_every_option_is_described(module):
    options = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert [name for name, fields in options.items() if not fields.get("description")] == []


def test_examples_use_options_that_exist(module):
    tasks = yaml.safe_load(module.EXAMPLES)
    spec = documented(module)
    assert tasks
    for task in tasks:
        assert task["name"]
        given = set(task[module.__name__])
        assert given <= set(spec)
        assert {name for name, fields in spec.items() if fields.get("required")} <= given


def test_what_is_returned_is_described(module):
    returned = yaml.safe_load(module.RETURN)
    assert returned
    assert [
        name for name, fields in returned.items() if not {"description", "returned", "type"} <= set(fields)
    ] == []
