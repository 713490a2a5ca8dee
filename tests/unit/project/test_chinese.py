"""Chinese texts use full-width punctuation, as GB/T 15834 requires."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CHINESE = "\u3400-\u4dbf\u4e00-\u9fff"
HALF_WIDTH = re.compile(rf"[{CHINESE}][,:;()!?]|[,:;()!?][{CHINESE}]")
FULL_WIDTH = dict(zip(",:;()!?", "，：；（）！？", strict=True))
# The targets of links and code are not text.
NOT_TEXT = re.compile(r"\]\([^)]*\)|`[^`\n]*`")


def texts():
    """Return the Chinese documents of the project."""
    return sorted([*ROOT.glob("*.zh*"), *(ROOT / "docs").rglob("*.zh*"), *(ROOT / "templates").glob("*.zh*")])


def prose(text):
    """Yield (line number, line) without code blocks, code and the targets of links."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, NOT_TEXT.sub("]", line)


def half_width(text):
    return [
        f"line {number}: {match.group()} -> {''.join(FULL_WIDTH.get(c, c) for c in match.group())}"
        for number, line in prose(text)
        for match in HALF_WIDTH.finditer(line)
    ]


def test_there_are_chinese_texts():
    assert {"README.zh-CN.md", "docs/tutorial/first-cluster.zh-CN.md"} <= {
        str(path.relative_to(ROOT)) for path in texts()
    }


@pytest.mark.parametrize("path", texts(), ids=lambda path: path.name)
def test_punctuation_beside_chinese_characters_is_full_width(path):
    assert half_width(path.read_text()) == []


@pytest.mark.parametrize(
    "line", ["参数:值", "首先,其次", "完成;继续", "节点(四个)", "`code`(代码)中", "为什么?"]
)
def test_half_width_punctuation_would_be_found(line):
    assert half_width(line) != []


@pytest.mark.parametrize(
    "line", ["参数：值", "见 [文档](docs/文档.md)。", "`a:节点`", "```\n节点:四\n```", "DLPerf (2020) 的结果"]
)
def test_code_links_and_latin_text_are_not_checked(line):
    assert half_width(line) == []
