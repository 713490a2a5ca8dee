# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What `ansible-doc` shows of a module is what the module takes."""

import importlib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PATHS = [*ROOT.glob("library/*.py"), *ROOT.glob("roles/*/library/*.py")]
MODULES = sorted(path.stem for path in PATHS)
DESCRIBING = {"description", "version_added", "notes"}


def strip(options):
    """Return documented options without their prose, nested ones too, as an argument spec."""
    spec = {}
    for name, fields in options.items():
        spec[name] = {key: value for key, value in fields.items() if key not in DESCRIBING}
        if "suboptions" in spec[name]:
            spec[name]["options"] = strip(spec[name].pop("suboptions"))
    return spec


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


def test_documented_options_equal_the_argument_spec(module):
    documented = strip(yaml.safe_load(module.DOCUMENTATION)["options"])
    assert plain(documented) == plain(module.argument_spec())


def test_every_option_is_described(module):
    options = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert [name for name, fields in options.items() if not fields.get("description")] == []


def test_examples_use_options_that_exist(module):
    tasks = yaml.safe_load(module.EXAMPLES)
    spec = module.argument_spec()
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
