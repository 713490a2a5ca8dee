# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""An argument that holds a case, a row or another contract is annotated with the contract.

The names come from the classes of contracts.py, the arguments from the source: mypy checks what an annotation
says, and of `Mapping[str, Any]` there is nothing to check.
"""

import ast
import re
import typing
from pathlib import Path

import pytest
from ansible.module_utils.scalebook import contracts

ROOT = Path(__file__).resolve().parents[3]
PLACES = (
    "module_utils/scalebook",
    "library",
    "roles",
    *(f"{kind}_plugins" for kind in ("callback", "filter")),
)
UNTYPED = re.compile(r"\b(?:Mapping|[dD]ict)\[str, Any\]")
NOT_THAT = {
    # (file, function, argument): why it has another type.
    **{
        ("filter_plugins/scalebook.py", filtered, "workload"): "from a playbook"
        for filtered in ("job_dirs", "launch_command", "container_of")
    },
}


def names_of_contracts():
    """Return the names of arguments with a contract: `node_job`, `job`, and the same of several."""
    names = {"workload", "workloads", "declaration"}
    for name, kind in vars(contracts).items():
        if typing.is_typeddict(kind):
            words = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
            for word in (words, words.rpartition("_")[2]):
                names |= {word, word + "s"}
    return names


def untyped(text, names):
    """Yield (function, argument) of the arguments with one of the names that have no contract."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                annotation = ast.unparse(argument.annotation) if argument.annotation else ""
                if argument.arg in names and UNTYPED.search(annotation):
                    yield node.name, argument.arg


def all_untyped():
    names = names_of_contracts()
    return {
        (str(path.relative_to(ROOT)), *place)
        for directory in PLACES
        for path in sorted((ROOT / directory).rglob("*.py"))
        for place in untyped(path.read_text(), names)
    }


def test_the_names_are_those_of_the_contracts():
    assert {
        "case",
        "row",
        "record",
        "run",
        "group",
        "finding",
        "job",
        "plan",
        "cases",
    } <= names_of_contracts()


def test_an_argument_that_holds_a_contract_has_its_type():
    assert all_untyped() - set(NOT_THAT) == set()


def test_every_exception_is_needed():
    assert set(NOT_THAT) - all_untyped() == set()


@pytest.mark.parametrize(
    "text",
    [
        "def f(case: Mapping[str, Any]): ...",
        "def f(*, rows: Sequence[dict[str, Any]]): ...",
        "class C:\n    def f(self, job: Mapping[str, Any] | None = None): ...",
        "def f(plan: Dict[str, Any]): ...",
    ],
)
def test_an_argument_without_its_contract_would_be_found(text):
    assert len(list(untyped(text, names_of_contracts()))) == 1


@pytest.mark.parametrize("text", ["def f(case: Case): ...", "def f(values: Mapping[str, Any]): ..."])
def test_other_arguments_are_not(text):
    assert not list(untyped(text, names_of_contracts()))
