# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Hook of MkDocs: files outside of docs/ as pages of the site, reports, and the links between all pages.

A page links to a file by its relative path in the repository, so that the link also works where the
repository is browsed.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import ansible.module_utils

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = {name: f"project/{name.lower()}" for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
REPORTS = (
    "containers-2026-11-25/resnet50",
    "h100x2-2026-11-25/torch",
    "h200x4-2026-11-21/scaling",
    "h200x4-2026-11-26/torch_gpt2",
)
"""The measured campaigns whose reports the site has; report.yml makes those of the others."""
CODE = re.compile(r"`[^`\n]*`")
# A browser shows the end of a line as a space, which Chinese does not have between words.
CHINESE_LINE_END = re.compile(r"(?<=[\u3001-\u9fff\uff00-\uffef])\n(?=[\u3001-\u9fff\uff00-\uffef])")


def pages() -> dict[str, str]:
    """Return {path in the repository: path in the site} of the pages that are not in docs/."""
    roles = sorted(path.parent.name for path in (ROOT / "roles").glob("*/README.md"))
    return {**ROOT_PAGES, **{f"roles/{role}/README.md": f"reference/roles/{role}.md" for role in roles}}


def site_path(path: str) -> str | None:
    """Return where a file of the repository is in the site, None if it is not there."""
    return path.removeprefix("docs/") if path.startswith("docs/") else pages().get(path)


def on_config(config: Any) -> Any:
    """Put the pages that are not in docs/ into the navigation."""
    sections = {name: entries for section in config["nav"] for name, entries in section.items()}
    roles = [target for target in pages().values() if target.startswith("reference/roles/")]
    sections["Reference"].append({"Roles": [{Path(target).stem: target} for target in roles]})
    sections["Help"] += [{Path(name).stem.capitalize(): target} for name, target in ROOT_PAGES.items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not in docs/."""
    # Here, because the other functions are tested without MkDocs.
    from mkdocs.structure.files import File

    for name, target in pages().items():
        files.append(File.generated(config, target, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text with links to where the files are in the site."""
    here = {target: name for name, target in pages().items()}.get(
        page.file.src_uri, f"docs/{page.file.src_uri}"
    )
    return rewritten(with_reports(markdown, here), here, page.file.src_uri)


def with_reports(markdown: str, here: str) -> str:
    """Return the README of a folder of campaigns with a link to each report that the site has."""
    for folder, campaign in (name.split("/") for name in REPORTS):
        if here == f"docs/results/{folder}/README.md":
            link = f'<a href="{campaign}/report/report.html">Report</a>'
            markdown = markdown.replace(f"### {campaign}\n", f"### {campaign}\n\n{link}\n")
    return markdown


def on_post_build(config: Any) -> None:
    """Write the reports into the site: their pages are whole, and not for MkDocs."""
    sys.path.insert(0, str(ROOT / "scripts"))
    ansible.module_utils.__path__.append(str(ROOT / "module_utils"))
    from generated import results

    for name in REPORTS:
        place = Path(config["site_dir"]) / "results" / name / "report"
        place.mkdir(parents=True, exist_ok=True)
        for file, content in results.report(name).items():
            (place / file).write_bytes(content)


def rewritten(markdown: str, here: str, uri: str) -> str:
    """Return the text of the file `here` of the repository for the page `uri` of the site."""

    def moved(match: re.Match[str]) -> str:
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(here), match.group(1)))
        target = site_path(wanted)
        return posixpath.relpath(target, posixpath.dirname(uri) or ".") if target else match.group(1)

    # In code of a cell, Markdown of GitHub needs \| and that of the site shows the backslash.
    lines = [
        CODE.sub(lambda code: code.group().replace("\\|", "|"), line) if line.startswith("|") else line
        for line in CHINESE_LINE_END.sub("", LINK.sub(moved, markdown)).splitlines()
    ]
    return "\n".join(lines) + "\n"
