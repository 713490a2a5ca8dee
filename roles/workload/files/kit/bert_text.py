# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Texts for BERT: their documents and sentences, their tokens, and masked samples of them.

A text has BERT's input format (a sentence a line, a blank line between documents), is what WikiExtractor
writes, or a dump of Wikipedia (`pages-articles`, XML); each may be compressed with bzip2 or gzip. Tokens and
samples are those of BERT's create_pretraining_data.py: lower case without accents, word pieces, half of the
second sentences from another document, 15 % of the tokens masked.

Runs on the nodes, Python 3.6 or newer; standard library only. Only random() of a generator is used: it is
guaranteed to return the same numbers with every Python.
"""

import bz2
import gzip
import html
import io
import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from array import array
from typing import IO, Any, Dict, Iterable, Iterator, List, NamedTuple, Sequence, Tuple

PAD, UNKNOWN, START, END, MASK = "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"
MASKED = 0.15
"""The part of the tokens that is masked."""
SHORT = 0.1
"""The part of the samples that is made shorter, as texts of users are."""
LONGEST_WORD = 200
MOST_CACHED = 1 << 20

Document = List["array[int]"]
"""The tokens of each sentence."""


class RefusedError(ValueError):
    """A text that samples cannot be made of; the message names the file and what is wrong."""


class Sample(NamedTuple):
    """A masked pair of texts: the second starts at `second`; `following` is 0 where it follows the first."""

    tokens: List[int]
    second: int
    positions: List[int]
    labels: List[int]
    following: int


# Documents


def documents(path: str) -> Iterator[List[str]]:
    """Yield the documents of a file, each a list of sentences; raise RefusedError where it cannot be read."""
    try:
        with _open(path) as stream:
            head = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
        with _open(path) as stream:
            if head.startswith(b"<mediawiki"):
                yield from _dumped(stream)
            else:
                lines = io.TextIOWrapper(stream, encoding="utf-8-sig")
                yield from _extracted(lines) if head.startswith(b"<doc ") else _plain(lines)
    except (OSError, EOFError, UnicodeDecodeError, ElementTree.ParseError) as error:
        raise RefusedError("%s: cannot be read as a text: %s" % (path, error)) from error


def _open(path: str) -> Any:
    if path.endswith(".bz2"):
        return bz2.open(path, "rb")
    return gzip.open(path, "rb") if path.endswith(".gz") else open(path, "rb")


def _plain(lines: Iterable[str]) -> Iterator[List[str]]:
    document: List[str] = []
    for line in lines:
        if line.strip():
            document.append(" ".join(line.split()))
        elif document:
            yield document
            document = []
    if document:
        yield document


def _extracted(lines: Iterable[str]) -> Iterator[List[str]]:
    document: List[str] = []
    title = ""
    for line in lines:
        if line.startswith("<doc "):
            match = re.search(r'title="(.*?)"', line)
            document, title = [], html.unescape(match.group(1)) if match else ""
        elif line.startswith("</doc>"):
            if document:
                yield document
        elif line.strip() != title:
            document += sentences(html.unescape(line))


def _dumped(stream: IO[bytes]) -> Iterator[List[str]]:
    """Yield the articles of a dump: pages of the first name space that do not redirect."""
    root: Any = None
    # A file that the user names, which no network sent.
    for event, element in ElementTree.iterparse(stream, events=("start", "end")):  # noqa: S314
        root = element if root is None else root
        if event == "start" or not element.tag.endswith("}page") and element.tag != "page":
            continue
        child_of = {child.tag.rpartition("}")[2]: child for child in element.iter()}
        if child_of["ns"].text == "0" and "redirect" not in child_of and "text" in child_of:
            document = [
                sentence for line in article(child_of["text"].text or "") for sentence in sentences(line)
            ]
            if document:
                yield document
        root.clear()


def sentences(line: str) -> List[str]:
    """Return the sentences of a paragraph: they end with . ! or ? before a capital, or with 。！ or ？."""
    ended = re.sub(r"([。！？]+[」』”’）]*)", "\\1\n", line)
    ended = re.sub(r"([.!?][\"'”’)]*)\s+(?=[\"'“‘(]*(?:[A-Z0-9]|[^\W\d_a-z]))", "\\1\n", ended)
    return [" ".join(sentence.split()) for sentence in ended.split("\n") if sentence.strip()]


# Templates, tables and files lie in each other: the innermost is removed first.
_INNERMOST = re.compile(r"\{\{[^{}]*\}\}|\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)
_FILES = re.compile(r"\[\[[^\[\]|:]+:(?:[^\[\]]|\[[^\[\]]*\]|\[\[[^\[\]]*\]\])*\]\]")
# One that is not closed ends at the next: a page with many takes no longer.
_HIDDEN = re.compile(
    r"<!--(?:(?!<!--).)*?-->|<ref[^<>]*/>"
    r"|<(ref|math|gallery|table|timeline|code|syntaxhighlight)\b[^<>]*>(?:(?!<\1\b).)*?</\1\s*>",
    re.DOTALL | re.IGNORECASE,
)


def article(text: str) -> List[str]:
    """Return the paragraphs of a page of Wikipedia, without its markup, tables, lists and headings."""
    text = _HIDDEN.sub("", text)
    before = ""
    while before != text:
        before, text = text, _INNERMOST.sub("", text)
    text = _FILES.sub("", text)
    text = re.sub(r"\[\[(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", text)
    text = re.sub(r"\[(?:https?:|ftp:)?//[^\s\]]+[ \t]*([^\[\]\n]*)\]", r"\1", text)
    text = html.unescape(re.sub(r"'{2,}|</?\w[^<>]*>|__[A-Z]+__", "", text)).replace("\xa0", " ")
    lines = [line.strip() for line in text.split("\n")]
    return [line for line in lines if line and line[0] not in "=*#:;|!{}<"]


# Tokens


class Tokens:
    """The numbers of the tokens of texts; `known` has them by their words."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as stream:
            self.known = {line.rstrip("\n"): number for number, line in enumerate(stream)}
        missing = [word for word in (PAD, UNKNOWN, START, END, MASK) if word not in self.known]
        if missing or self.known[PAD] != 0:
            raise RefusedError(
                "%s: found %s, expected the vocabulary of a BERT: a word a line, the first one [PAD]"
                % (path, "no line " + missing[0] if missing else "[PAD] in another line")
            )
        self.unknown = self.known[UNKNOWN]
        self._cache: Dict[str, List[int]] = {}

    def encode(self, sentence: str) -> "array[int]":
        """Return the tokens of a sentence."""
        if "\ufffd" in sentence or not sentence.isprintable():
            sentence = "".join(_cleaned(letter) for letter in sentence)
        numbers = array("i")
        for word in sentence.split():
            if word not in self._cache:
                if len(self._cache) >= MOST_CACHED:
                    self._cache.clear()
                self._cache[word] = [piece for part in split_word(word) for piece in self._pieces(part)]
            numbers.extend(self._cache[word])
        return numbers

    def _pieces(self, word: str) -> List[int]:
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                number = self.known.get(("##" if start else "") + word[start:end])
                if number is not None:
                    break
            else:
                return [self.unknown]
            pieces.append(number)
            start = end
        return pieces


def _cleaned(letter: str) -> str:
    kind = unicodedata.category(letter)
    if letter in "\t\n\r" or kind == "Zs":
        return " "
    return "" if letter == "\ufffd" or kind in ("Cc", "Cf") else letter


def split_word(word: str) -> List[str]:
    """Return the parts of a word in lower case without accents; a Chinese letter or a sign is a part."""
    letters = (x for x in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(x) != "Mn")
    return "".join(" %s " % x if _is_own_part(x) else x for x in letters).split()


def _is_own_part(letter: str) -> bool:
    code = ord(letter)
    if code < 128:
        return not letter.isalnum()
    chinese = 0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0xF900 <= code <= 0xFAFF
    return chinese or 0x20000 <= code <= 0x2CEAF or 0x2F800 <= code <= 0x2FA1F or _punctuation(letter)


def _punctuation(letter: str) -> bool:
    return unicodedata.category(letter).startswith("P")


# Samples


class Maker:
    """Makes the samples of documents: `random` is a random.Random, `length` and `predictions` their sizes."""

    def __init__(self, tokens: Tokens, random: Any, length: int, predictions: int) -> None:
        self.random, self.length, self.predictions = random, length, predictions
        self.start, self.end, self.mask = (tokens.known[word] for word in (START, END, MASK))
        self.words = len(tokens.known)

    def below(self, end: int) -> int:
        """Return a random whole number from 0 to below `end`."""
        return int(self.random.random() * end)

    def samples(self, documents: Sequence[Document]) -> Iterator[Sample]:
        """Yield the samples of all documents, which are two or more."""
        for number, document in enumerate(documents):
            sentence_index = 0
            while sentence_index < len(document):
                most = self.length - 3
                target = 2 + self.below(most - 1) if self.random.random() < SHORT else most
                chunk, size = sentence_index, 0
                while sentence_index < len(document) and size < target:
                    size += len(document[sentence_index])
                    sentence_index += 1
                first = (
                    chunk + 1 + (self.below(sentence_index - chunk - 1) if sentence_index - chunk > 1 else 0)
                )
                before = _joined(document[chunk:first])
                following = 0
                if sentence_index - chunk == 1 or self.random.random() < 0.5:
                    following = 1
                    # What the first sentence leaves is used for the next sample.
                    sentence_index = first
                    after = self._elsewhere(documents, number, target - len(before))
                else:
                    after = _joined(document[first:sentence_index])
                yield self._masked(*self._cut(before, after), following)

    def _elsewhere(self, documents: Sequence[Document], number: int, target: int) -> List[int]:
        other = (number + 1 + self.below(len(documents) - 1)) % len(documents)
        document = documents[other]
        after: List[int] = []
        for sentence in document[self.below(len(document)) :]:
            after.extend(sentence)
            if len(after) >= target:
                break
        return after

    def _cut(self, before: List[int], after: List[int]) -> Tuple[List[int], List[int]]:
        """Return both parts, shortened at random ends until a sample has room for them."""
        parts = ([0, len(before)], [0, len(after)])
        while parts[0][1] - parts[0][0] + parts[1][1] - parts[1][0] > self.length - 3:
            longer = parts[0] if parts[0][1] - parts[0][0] > parts[1][1] - parts[1][0] else parts[1]
            if self.random.random() < 0.5:
                longer[0] += 1
            else:
                longer[1] -= 1
        return before[slice(*parts[0])], after[slice(*parts[1])]

    def _masked(self, before: List[int], after: List[int], following: int) -> Sample:
        tokens = [self.start, *before, self.end, *after, self.end]
        free = [place for place in range(1, len(tokens) - 1) if place != len(before) + 1]
        count = min(self.predictions, max(1, int(round(len(tokens) * MASKED))), len(free))
        for place in range(count):
            other = place + self.below(len(free) - place)
            free[place], free[other] = free[other], free[place]
        positions = sorted(free[:count])
        labels = [tokens[place] for place in positions]
        for place in positions:
            if self.random.random() < 0.8:
                tokens[place] = self.mask
            elif self.random.random() < 0.5:
                tokens[place] = self.below(self.words)
        return Sample(tokens, len(before) + 2, positions, labels, following)


def _joined(sentences: Iterable["array[int]"]) -> List[int]:
    return [token for sentence in sentences for token in sentence]
