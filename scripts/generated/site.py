# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Hook of MkDocs: files outside of docs/ as pages of the site, reports, and the links between all pages.

A page links to a file by its relative path in the repository, so that the link also works where the
repository is browsed. A link to a file that is in the repository and not in the site is its text alone there.
"""

from __future__ import annotations

import importlib
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

import ansible.module_utils

ROOT = Path(__file__).resolve().parents[2]
ROOT_PAGES = {name: f"project/{name.lower()}" for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)#\s]+)")
WHOLE_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#|/)([^)#\s]+)[^)]*\)")
REPORTS = {
    "h200x4-2026-11-26/torch_resnet50": "ResNet-50 on one, two and four H200: A short report, three cases.",
    "h200x4-2026-11-26/torch_gpt2": "GPT-2 on one, two and four H200: Which setting is the fastest?",
    "h100x2-2026-11-25/torch": "PyTorch on one and two H100: A long report, with images from files.",
    "containers-2026-11-25/resnet50": "ResNet-50 with six frameworks: On processors, in four containers.",
}
"""Measured campaigns whose reports the site has, with a title and text; report.yml makes the others."""
GALLERY = "gallery.md"
SEARCH = {
    "results/": {"exclude": True},
    "project/": {"boost": 0.2},
    "experiments/": {"boost": 0.2},
    "coverage.md": {"boost": 0.2},
    "explanation/": {"boost": 2},
    "how-to/": {"boost": 3},
    "how-to/uninstall.md": {"boost": 9},
    "reference/": {"boost": 2},
    "reference/parameters.md": {"boost": 9},
    "reference/files.md": {"exclude": True},
    "reference/parameters.zh-CN.md": {"boost": 0.2},
    "reference/roles/": {"exclude": True},
    "glossary.md": {"boost": 3},
    "faq.md": {"boost": 2},
}
"""The beginning of a page's path -> what the search does with it; the longest counts."""
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
    """Add the pages that are not in docs/, and the gallery of reports."""
    # Here, because the other functions are tested without MkDocs.
    from mkdocs.structure.files import File

    for name, target in pages().items():
        files.append(File.generated(config, target, content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(File.generated(config, GALLERY, content=gallery()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text with links to where the files are in the site, and tell the search about the page."""
    fitting = [beginning for beginning in SEARCH if page.file.src_uri.startswith(beginning)]
    if fitting:
        page.meta.setdefault("search", SEARCH[max(fitting, key=len)])
    here = {target: name for name, target in pages().items()}.get(
        page.file.src_uri, f"docs/{page.file.src_uri}"
    )
    return rewritten(with_reports(markdown, here), here, page.file.src_uri)


def gallery() -> str:
    """Return the page that shows the reports of the site."""
    text = "# Reports\n\nReports as `bench.yml` writes them: each is one file that loads nothing else.\n\n"
    text += '<a href="results/campaigns.html">All measured campaigns</a>, of which any two are compared.\n'
    for name, description in REPORTS.items():
        place = f"results/{name}/report"
        title, _, about = description.partition(": ")
        chart = next(file for file in ("ranked.svg", "efficiency.svg") if file in reports().report(name))
        link = f'<a href="{place}/report.html">'
        text += f"\n## {title}\n\n{about} {link}Open the report</a>.\n\n"
        text += f'{link}<img src="{place}/{chart}" alt="A chart of the report"></a>\n'
    return text


def reports() -> Any:
    """Return the module that makes reports of the archives, which needs the project's modules."""
    if str(ROOT / "scripts") not in sys.path:
        sys.path.insert(0, str(ROOT / "scripts"))
        ansible.module_utils.__path__.append(str(ROOT / "module_utils"))
    return importlib.import_module("generated.results")


def with_reports(markdown: str, here: str) -> str:
    """Return a page that names campaigns with a link to each report that the site has."""
    for folder, campaign in (name.split("/") for name in REPORTS):
        link = f'<a href="{{}}{campaign}/report/report.html">Report</a>'
        if here == f"docs/results/{folder}/README.md":
            markdown = markdown.replace(f"### {campaign}\n", f"### {campaign}\n\n{link.format('')}\n")
        elif here == "docs/performance.md":
            named = f"(results/{folder}/README.md#{campaign})"
            markdown = markdown.replace(named, f"{named} · {link.format(f'results/{folder}/')}")
    return markdown


def on_post_build(config: Any) -> None:
    """Write the reports into the site: their pages are whole, and not for MkDocs."""
    results = reports()
    for name in REPORTS:
        place = Path(config["site_dir"]) / "results" / name / "report"
        place.mkdir(parents=True, exist_ok=True)
        for file, content in results.report(name).items():
            (place / file).write_bytes(content)
    for file, text in results.index(REPORTS).items():
        (Path(config["site_dir"]) / "results" / file).write_text(text, encoding="utf-8")


def rewritten(markdown: str, here: str, uri: str) -> str:
    """Return the text of the file `here` of the repository for the page `uri` of the site."""

    def in_repository(link: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(here), link))

    def linked(match: re.Match[str]) -> str:
        path = in_repository(match.group(2))
        return match.group() if site_path(path) or not (ROOT / path).is_file() else match.group(1)

    def moved(match: re.Match[str]) -> str:
        target = site_path(in_repository(match.group(1)))
        return posixpath.relpath(target, posixpath.dirname(uri) or ".") if target else match.group(1)

    # In code of a cell, Markdown of GitHub needs \| and that of the site shows the backslash.
    lines = [
        CODE.sub(lambda code: code.group().replace("\\|", "|"), line) if line.startswith("|") else line
        for line in CHINESE_LINE_END.sub("", LINK.sub(moved, WHOLE_LINK.sub(linked, markdown))).splitlines()
    ]
    return "\n".join(lines) + "\n"
