# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.svg: the commands, and the roles and packages that each uses, read from the tree."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from ansible.module_utils.scalebook.workloads import load_workloads

from generated.text import ROOT

PACKAGES = ROOT / "module_utils/scalebook"
FLOW = ("plan", "launch", "read", "store", "judge", "report", "evaluate", "pages")
"""The packages that data passes through, in this order; the others stand beside it."""


class Command(NamedTuple):
    """A playbook of users: its file, what it does, the roles and packages that it uses.

    `of_workloads`: it also uses the roles of the workloads of the campaign.
    """

    file: str
    does: str
    roles: list[str]
    packages: list[str]
    of_workloads: bool


def commands() -> list[Command]:
    """Return the playbooks of the root, in the order in which they are used."""
    paths = [path for path in ROOT.glob("*.yml") if (ROOT / "playbooks" / path.name).is_file()]
    order = ("provision", "acceptance", "bench", "report", "import", "verify", "index", "share")
    paths.sort(key=lambda path: (order.index(path.stem) if path.stem in order else len(order), path.name))
    return [_command(ROOT / "playbooks" / path.name) for path in paths]


def workloads() -> list[str]:
    """Return the names of the workloads."""
    return sorted(load_workloads([str(ROOT / "roles")]))


def packages() -> dict[str, str]:
    """Return {package: what it does}, from the docstrings in module_utils/scalebook, the flow first."""
    names = sorted(path.parent.name for path in PACKAGES.glob("*/__init__.py"))
    names.sort(key=lambda name: FLOW.index(name) if name in FLOW else len(FLOW))
    texts = {
        name: ast.get_docstring(ast.parse((PACKAGES / name / "__init__.py").read_text())) for name in names
    }
    return {name: (text or "").split("\n")[0].rstrip(".") for name, text in texts.items()}


def _command(path: Path) -> Command:
    files, roles, of_workloads = _parts_of(path)
    texts = [file.read_text() for file in files]
    comment = re.search(r"^# (.+?)[.;]", texts[0], re.MULTILINE)
    does = comment.group(1) if comment else ""
    return Command(path.name, does, sorted(roles - set(workloads())), _packages(texts), of_workloads)


def _parts_of(path: Path) -> tuple[list[Path], set[str], bool]:
    """Return the files of playbooks and tasks that run from a playbook on, and the roles that they are of.

    The last value says whether they also include roles by a variable, which are those of workloads.
    """
    of_workloads = False
    files: list[Path] = []
    roles: set[str] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop(0)
        if file in files or not file.is_file():
            continue
        files.append(file)
        for kind, value, loop in _includes(yaml.safe_load(file.read_text())):
            if kind == "role":
                # A name in braces is a value of the loop.
                names = loop if "{{" in value["name"] else [value["name"]]
                of_workloads |= not names
                for name in names:
                    waiting.append(ROOT / "roles" / name / "tasks" / f"{value.get('tasks_from', 'main')}.yml")
                    roles |= {name} if (ROOT / "roles" / name).is_dir() else set()
            else:
                waiting.append(file.parent / str(value.get("file") if isinstance(value, dict) else value))
    return files, roles, of_workloads


def _includes(node: Any) -> Iterator[tuple[str, Any, list[str]]]:
    """Yield (role, tasks or playbook; what is included; the values of a loop) of everything below `node`."""
    if isinstance(node, list):
        for each in node:
            yield from _includes(each)
    elif isinstance(node, dict):
        for key, value in node.items():
            kind = re.fullmatch(r"ansible\.builtin\.(?:import|include)_(role|tasks|playbook)", str(key))
            if kind:
                loop = node.get("loop")
                yield kind.group(1), value, loop if isinstance(loop, list) else []
            else:
                yield from _includes(value)


def _packages(texts: Iterable[str]) -> list[str]:
    """Return the packages of module_utils/scalebook that the modules and lookups of some tasks need."""
    words = set(re.findall(r"\w+", "\n".join(texts)))
    plugins = [
        *ROOT.glob("library/*.py"),
        *ROOT.glob("lookup_plugins/*.py"),
        *ROOT.glob("roles/*/library/*.py"),
    ]
    files = [plugin for plugin in plugins if plugin.stem in words]
    for file in files:  # it grows
        files += [other for other in _imported(file) if other not in files]
    names = {file.parent.name for file in files}
    return [name for name in packages() if name in names]


def _imported(file: Path) -> Iterator[Path]:
    """Yield the files of module_utils/scalebook that a file imports."""
    for node in ast.walk(ast.parse(file.read_text())):
        prefix, _, place = (getattr(node, "module", None) or "").partition(".scalebook")
        if isinstance(node, ast.ImportFrom) and prefix == "ansible.module_utils":
            path = PACKAGES.joinpath(*filter(None, place.split(".")))
            both = [path.with_suffix(".py"), *(path / f"{alias.name}.py" for alias in node.names)]
            yield from filter(Path.is_file, both)


# The drawing. Lengths are in pixels of the viewBox.
WIDTH, MARGIN, GAP = 960, 16, 14
LINE, PAD = 17, 12
IN_A_ROW = 5  # commands; their number need not be a multiple
LETTER = 6.8  # mean width of a letter at 12 px, with which lines are broken
STYLE = """
text{font:12px system-ui,sans-serif;fill:#1c2128}
.head{font-weight:600;font-size:14px}.soft{fill:#57606a}.row{font-weight:600;fill:#57606a}
.box{fill:#f6f8fa;stroke:#afb8c1}.command{fill:#ddf4ff;stroke:#1a64a6}.node{fill:#dafbe1;stroke:#2da44e}
.arrow{stroke:#57606a;stroke-width:1.5;fill:none;marker-end:url(#tip)}#tip path{fill:#57606a}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.soft,.row{fill:#9da7b1}.box{fill:#161b22;stroke:#484f58}
.command{fill:#0c2d48;stroke:#58a6ff}.node{fill:#0f2f1a;stroke:#3fb950}
.arrow{stroke:#9da7b1}#tip path{fill:#9da7b1}}
"""
ON_NODES = (
    ("mpirun", "starts one run_node per node, and stops all"),
    ("run_node", "supervises, stamps lines, samples utilisation"),
    ("run.sh", "node script of the workload"),
    ("trainer", "prints a line per step"),
    ("log of the node", "fetched and read on the control node"),
)


def wrapped(text: str, width: float) -> list[str]:
    """Return a text in lines of about `width` pixels."""
    return textwrap.wrap(text, max(8, int((width - 2 * PAD) / LETTER)), break_on_hyphens=False)


def box(x: float, y: float, width: float, lines: list[tuple[str, str]], kind: str, height: float = 0) -> str:
    """Return a box with (class, text) lines; without a height it is as high as its lines."""
    height = height or high(lines)
    parts = [f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>']
    for index, (name, text) in enumerate(lines):
        words = escape(text).replace("-&gt;", "→")
        parts.append(
            f'<text class="{name}" x="{x + PAD:g}" y="{y + PAD + 11 + LINE * index:g}">{words}</text>'
        )
    return "\n".join(parts)


def high(lines: list[tuple[str, str]]) -> float:
    """Return the height of a box with these lines."""
    return 2 * PAD + LINE * len(lines)


def row(y: float, cells: list[list[tuple[str, str]]], kind: str, arrows: int = 0) -> tuple[str, float]:
    """Return boxes side by side, with arrows between the first `arrows` + 1, and the y below them."""
    width = (WIDTH - 2 * MARGIN - GAP * (len(cells) - 1)) / len(cells)
    height = max(map(high, cells))
    parts = []
    for index, lines in enumerate(cells):
        x = MARGIN + index * (width + GAP)
        parts.append(box(x, y, width, lines, kind, height))
        if index < arrows:
            parts.append(f'<path class="arrow" d="M{x + width:g} {y + height / 2:g}h{GAP - 2:g}"/>')
    return "\n".join(parts), y + height


def cell(head: str, texts: Iterable[str], count: int) -> list[tuple[str, str]]:
    """Return the lines of a box in a row of `count` boxes."""
    width = (WIDTH - 2 * MARGIN - GAP * (count - 1)) / count
    lines = [("head", head)]
    for text in texts:
        lines += [("soft", line) for line in wrapped(text, width)]
    return lines


def heading(y: float, text: str) -> str:
    """Return the name of a row."""
    return f'<text class="row" x="{MARGIN}" y="{y:g}">{escape(text)}</text>'


def _of_command(command: Command) -> list[tuple[str, str]]:
    """Return the lines of the box of a command."""
    names = [*command.roles, *(["one role per workload"] if command.of_workloads else [])]
    role_line = f"roles: {', '.join(names)}" if names else "no roles: needs no cluster"
    texts = [command.does, role_line, f"packages: {', '.join(command.packages)}"]
    return cell(command.file, texts, IN_A_ROW)


def files() -> dict[str, str]:
    """Return the drawing."""
    all_commands = commands()
    package_texts = packages()
    parts = [heading(22, "Commands: playbooks, with the roles that they use")]
    y: float = 32 - GAP
    for start in range(0, len(all_commands), IN_A_ROW):
        cells = [_of_command(command) for command in all_commands[start : start + IN_A_ROW]]
        svg_text, y = row(y + GAP, cells, "command")
        parts.append(svg_text)
    parts += [heading(y + 26, "Workloads: one role each, with its declaration in meta/workload.yml")]
    every = " · ".join(workloads())
    lines = [("soft", line) for line in wrapped(every, WIDTH - 2 * MARGIN)]
    svg_text = box(MARGIN, y + 36, WIDTH - 2 * MARGIN, lines, "box")
    y += 36 + high(lines)
    parts += [
        svg_text,
        heading(y + 26, "Control node: packages of module_utils/scalebook, pure functions over plain data"),
    ]
    svg_text, y = row(
        y + 36,
        [cell(name, [text], len(package_texts)) for name, text in package_texts.items()],
        "box",
        len(FLOW) - 1,
    )
    parts += [svg_text, heading(y + 26, "Nodes: what happens in a run")]
    svg_text, y = row(
        y + 36, [cell(name, [text], len(ON_NODES)) for name, text in ON_NODES], "node", len(ON_NODES) - 1
    )
    parts.append(svg_text)
    files_text = ", ".join(command.file for command in all_commands)
    about = f"The playbooks {files_text}, their roles, packages and nodes."
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + MARGIN:g}" role="img">\n'
        f"<title>Architecture of scalebook</title>\n<desc>{escape(about)}</desc>\n<style>{STYLE}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>\n'
    )
    return {"docs/architecture.svg": head + "\n".join(parts) + "\n</svg>\n"}
