# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a Chinese text: English phrases, blanks and half-width marks in it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import unescape
from html.parser import HTMLParser

HAN = r"[\u3400-\u4dbf\u4e00-\u9fff]"
MARK = r"[\u3001\u3002\u201c\u201d\uff01-\uff5e]"
"""Full-width punctuation."""
PHRASE = re.compile(r"(?<![\w.=/-])(?:[A-Za-z]+(?:'s)?[,;:.]? ){2,}[A-Za-z]+(?![\w=/])")
"""Three words in a row that are letters only: a sentence, not a name such as `torch_bert base bf16`."""
PROPER = re.compile(
    # names, labels of cases as results.json has them, sources, and what a node records of its software
    r"(?:Accelerated Linear Algebra|Automatic Mixed Precision|systemctl status|on CPU|(?:no )?XLA|"
    r"Hyperstack, on demand|copied by api|with NCCL, MPI, Gloo|Adam of torch|Grubbs|Welch|"
    r"horovodrun --check-build|NVIDIA H\d+|TensorFlow|Hugging Face Tra(?:iner|nsformers)|DeepSpeed|"
    r"Intel\(R\) Xeon\(R\) Processor|tensor operations|torch_bert base|"
    r"ValueError: cannot convert float NaN to integer)"
)
GAP = re.compile(rf"(?:{HAN}|{MARK})[ \t]+(?:{HAN}|{MARK})")
HALF_WIDTH = re.compile(rf"{HAN} ?(?:[,:;)!?]|\((?!\d/\d\)))|[,:;()!?] ?{HAN}")
NOT_TEXT = re.compile(r"\]\([^)]*\)|`[^`\n]*`")
"""The targets of links and code in Markdown."""


def chinese(text: str) -> list[str]:
    """Return the Chinese words and marks in a text, each once."""
    return sorted(set(re.findall(rf"{HAN}+|[\u3001\u3002\uff01-\uff5e]", text)))


def faults(texts: Iterable[str]) -> list[str]:
    """Return what is wrong in texts that are Chinese, each thing once with what stands around it."""
    found = set()
    for text in texts:
        plain = PROPER.sub("", text)
        found.update(PHRASE.findall(plain))
        for fault in (GAP, HALF_WIDTH):
            found.update(text[max(0, m.start() - 12) : m.end() + 12] for m in fault.finditer(text))
    return sorted(found)


def prose(markdown: str) -> Iterable[str]:
    """Yield the cells and lines of a document in Markdown, without code and the targets of links."""
    fenced = False
    for line in markdown.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield from unescape(NOT_TEXT.sub("]", line)).split(" | ")


def texts_of(page: str) -> list[str]:
    """Return the texts of a page or picture outside code and logs."""
    reader = _Reader()
    reader.feed(page)
    return reader.texts


class _Reader(HTMLParser):
    """Collects texts, those of attributes too."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "input", "path", "rect", "circle"):
            self.inside.append(tag)
        self.texts += [value for name, value in attrs if name in ("aria-label", "data-filter", "title")]

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"style", "script", "pre", "code"} & set(self.inside):
            self.texts.append(data)
