# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What docs/ quotes is in the source, and what it asks to type can be typed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from generated import site  # noqa: E402

TROUBLESHOOTING = (ROOT / "docs/troubleshooting.md").read_text()
MESSAGES = re.findall(r"^### `(.+)`$", TROUBLESHOOTING, re.MULTILINE)
PLACES = ("roles", "playbooks", "module_utils", "library", "scripts")
PLACES += ("filter_plugins", "lookup_plugins", "callback_plugins", "connection_plugins", "inventory_plugins")


def one_line(text):
    """Return source code as one line, texts that continue on the next line put together."""
    joined = re.sub(r"[\"']\s*\n\s*[fr]?[\"']", "", text)
    return re.sub(r"\s+", " ", joined)


SOURCE = [
    one_line(path.read_text())
    for place in PLACES
    for path in sorted((ROOT / place).rglob("*"))
    if path.is_file() and path.suffix in (".py", ".yml", ".sh", ".j2", "") and "generated" not in path.parts
]


def parts(message):
    """Return what a message consists of between the `…` for names and values."""
    return [part.strip() for part in message.split("…") if re.search(r"\w", part)]


def is_printed(message):
    """Return whether one file of the source has all parts of the message, in order and near to each other."""
    pattern = re.compile(".{1,300}?".join(map(re.escape, parts(message))))
    return any(parts(message)[0] in text and pattern.search(text) for text in SOURCE)


def test_there_are_messages():
    assert len(MESSAGES) > 40


@pytest.mark.parametrize("message", MESSAGES)
def test_a_quoted_message_is_in_the_source(message):
    assert sum(map(len, parts(message))) > 7 and is_printed(message)


@pytest.mark.parametrize("message", ["mpirun has lost all contact with …", "… is in use, since …, by …"])
def test_another_message_would_be_found(message):
    assert not is_printed(message)


def test_a_page_links_to_files_of_the_repository_and_the_site_to_its_pages():
    text = "[a](../../roles/nccl/README.md) [b](../glossary.md#x) [c](https://example.org/d.md) `[d](e.md)`\n"
    found = site.rewritten(text, "docs/how-to/networks.md", "how-to/networks.md")
    assert "[a](../reference/roles/nccl.md)" in found
    assert "[b](../glossary.md#x)" in found and "[c](https://example.org/d.md)" in found


def test_a_link_to_a_file_that_is_not_in_the_site_stays_and_fails_the_build():
    assert "(../../roles/none.md)" in site.rewritten("[a](../../roles/none.md)", "docs/a/b.md", "a/b.md")


def test_a_link_to_a_file_of_the_repository_alone_is_its_text_in_the_site():
    assert site.rewritten("[code](../tests/conftest.py#L1)", "docs/a.md", "a.md") == "code\n"


def test_a_bar_in_the_code_of_a_cell_has_no_backslash_in_the_site():
    assert site.rewritten("| `a \\| b` |", "docs/a.md", "a.md") == "| `a | b` |\n"


def test_a_line_of_chinese_goes_on_without_a_space():
    assert site.rewritten("四个节点，\n实际\nis one\n", "docs/a.md", "a.md") == "四个节点，实际\nis one\n"


def test_every_page_outside_of_docs_is_in_the_site():
    assert {name for name in site.pages() if not (ROOT / name).is_file()} == set()
    assert {path.parent.name for path in ROOT.glob("roles/*/README.md")} == {
        Path(target).stem for target in site.pages().values() if target.startswith("reference/")
    }


def long_lines(text):
    """Return the lines with more than 110 characters, but for code, tables, headings and addresses."""
    prose = re.sub(r"^```.*?^```$", "", text.partition("<!-- scripts/pages")[0], flags=re.M | re.S)
    prose = re.sub(r"\]\([^)]*\)", "]", prose)
    return [line for line in prose.splitlines() if len(line) > 110 and not re.match(r" {4}|\s*[|#<!]", line)]


WRAPPED = ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md"]
WRAPPED += [f"docs/{name}" for name in ("*.md", "[!r]*/*.md", "results/*.md", "results/*/README.md")]
DOCUMENTS = sorted(path for pattern in WRAPPED for path in ROOT.glob(pattern))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_lines_of_prose_are_wrapped(document):
    assert long_lines(document.read_text()) == []


def test_a_line_that_is_not_wrapped_would_be_found():
    assert long_lines("word " * 30) and not long_lines("| " + "word " * 30)


def build_of_the_site(folder, page):
    """Return the output of the command of scripts/test that builds the site, for a site of one page."""
    (folder / "docs").mkdir()
    (folder / "docs/index.md").write_text(page)
    settings = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": "docs", "nav": [{"Home": "index.md"}]}
    alone = {"hooks": [], "plugins": [], "theme": {"name": "mkdocs"}, "markdown_extensions": []}
    (folder / "mkdocs.yml").write_text(yaml.safe_dump({**settings, **alone}))
    [command] = re.findall(r"\b(mkdocs build [^|\n]*?) \|\| return", (ROOT / "scripts/test").read_text())
    program = str(Path(sys.executable).parent / "mkdocs")
    words = [program, *command.split()[1:], "--site-dir", str(folder / "site")]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_broken_links_fail_the_build_of_the_site_and_are_named(tmp_path):
    links = ("none.md", "#none", "../README.zh-CN.md")
    built = build_of_the_site(tmp_path, "# Home\n\n" + " ".join(f"[a]({link})" for link in links))
    assert built.returncode != 0
    assert [link for link in links if f"'{link}'" not in built.stderr + built.stdout] == []


def test_a_site_without_a_broken_link_is_built(tmp_path):
    assert build_of_the_site(tmp_path, "# Home\n\n[a](#home)\n").returncode == 0
