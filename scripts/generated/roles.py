# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""README.md of each role, from its argument_specs and its declaration as a workload."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.scalebook.workload import Workload, Workloads
from ansible.module_utils.scalebook.workloads import load_workloads

from generated.text import ROOT, markdown, sentences, table


def role_folders() -> list[Path]:
    """Return the directories of the roles, by name."""
    return sorted(path.parents[1] for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))


def specs_of(role: Path) -> dict[str, Any]:
    """Return the entry points of a role, `main` first."""
    specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
    return dict(sorted(specs.items(), key=lambda item: (item[0] != "main", item[0])))


def purpose(role: Path) -> str:
    """Return what a role is for, without a full stop: what `main` does, else what all entry points do."""
    specs = specs_of(role)
    texts = [spec["short_description"] for spec in specs.values()]
    return markdown(texts[0] if "main" in specs else "; ".join(texts))


def files() -> dict[str, str]:
    """Return the generated files of all roles, and the page that lists the roles."""
    new_files = {}
    workloads = load_workloads([str(ROOT / "roles")])
    for role in role_folders():
        new_files[f"roles/{role.name}/README.md"] = readme(role, workloads.get(role.name))
    new_files["docs/reference/roles.md"] = index(workloads)
    return new_files


def readme(role: Path, workload: Workload | None) -> str:
    """Return README.md of a role: what it is for, and every variable of every entry point."""
    specs = specs_of(role)
    parts = [
        f"# {role.name}\n",
        f"Made by `scripts/pages` from `roles/{role.name}/meta/`. "
        f"`ansible-doc -t role -r roles {role.name}` prints the same.\n",
    ]
    entry_of_options: dict[str, str] = {}
    limits: dict[str, list[str]] = {}
    for limit in workload.limits if workload else ():
        limits.setdefault(f"{role.name}_{limit.variable}", []).append(limit.allowed)
    for entry, spec in specs.items():
        if len(specs) > 1:
            parts.append(f"## Entry point {entry}\n")
        parts.append(sentences(spec["short_description"])[0] + "\n")
        parts += [text + "\n" for text in sentences(spec.get("description"))]
        options = spec.get("options") or {}
        same = entry_of_options.get(json.dumps(options, sort_keys=True))
        if options and same:
            parts.append(f"The variables are those of `{same}`.\n")
        elif options:
            entry_of_options[json.dumps(options, sort_keys=True)] = entry
            parts.append(table(("variable", "type", "default", "meaning"), _rows(options, limits)))
    if workload:
        parts.insert(2, _declaration(workload))
    return "\n".join(parts)


def _rows(
    options: Mapping[str, Any], limits: Mapping[str, Sequence[str]], prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows of a table of variables; keys of dictionaries follow as `variable.key`."""
    for name, option in options.items():
        kind = option.get("type", "str")
        if kind == "list":
            kind = f"list of {option.get('elements', 'raw')}"
        text = " ".join(sentences(option.get("description")))
        if option.get("choices"):
            text += " One of " + ", ".join(f"`{_value(choice)}`" for choice in option["choices"]) + "."
        if name in limits:
            text += f" Allowed: {'; '.join(dict.fromkeys(limits[name]))}."
        default = "required" if option.get("required") else ""
        if "default" in option:
            default = f"`{_value(option['default'])}`"
        yield f"`{prefix}{name}`", kind, default, text
        yield from _rows(option.get("options") or {}, {}, f"{prefix}{name}.")


def _value(value: Any) -> str:
    """Return a value as it is written after -e; an empty text in quotes."""
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value)


def _declaration(workload: Workload) -> str:
    """Return the declaration of a workload as a table."""

    def by_device(values: Mapping[str, Any]) -> str:
        words = {
            device: ", ".join(map(str, v)) if isinstance(v, tuple) else str(v) for device, v in values.items()
        }
        return "; ".join(
            f"{text} on {device.upper()}s" for device, text in sorted(words.items(), reverse=True)
        )

    rows = [
        ("trains", workload.title),
        ("framework", workload.framework),
        ("model family", workload.family),
        ("unit", f"{workload.unit}/s"),
        ("models", ", ".join(workload.model_names)),
        ("default model", by_device(workload.models)),
        ("`dtype`", by_device(workload.dtypes)),
        (
            "`xla=true`",
            workload.compiler or "compiles the model" if True in workload.xla else "not supported",
        ),
    ]
    if workload.bsz:
        rows.append(("`bsz`, where none is given", by_device(workload.bsz)))
    if workload.epoch:
        rows.append(("measured", "the last epoch, instead of a window of steps"))
    else:
        rows.append(("`warmup`, `window`", f"{workload.warmup}, {workload.window} steps"))
    rows.append(("default stack", f"`{workload.stack}` (`playbooks/vars/stack_{workload.stack}.yml`)"))
    settings = ", ".join(f"`{name}`" for name in workload.settings)
    rows.append(("settings, another value of which is another case", settings or "none"))
    return table(("this workload", ""), rows)


def index(workloads: Workloads) -> str:
    """Return the page that lists the roles."""
    link = "[{0}](../../roles/{0}/README.md)".format
    names = {role.name: purpose(role) for role in role_folders()}
    return "\n".join(
        [
            "# Variables of roles\n",
            "Made by `scripts/pages` from `roles/*/meta/`. Set a variable in the inventory, or with `-e`. "
            "All variables of a role begin with its name.\n",
            "## Workloads\n",
            table(
                ("role", "trains", "framework"),
                [(link(name), declared.title, declared.framework) for name, declared in workloads.items()],
            ),
            "## Others\n",
            table(
                ("role", "does"),
                [(link(name), text) for name, text in names.items() if name not in workloads],
            ),
        ]
    )
