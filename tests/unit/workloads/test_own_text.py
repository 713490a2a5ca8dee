# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Tokens of the user's own texts: what is a document, when they are made again, and what is refused."""

import array
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from role_files import load

load("workload", "data_stamp")
texts = load("workload", "own_text")


class Letters:
    """Stands in for a tokenizer, as the package is on the nodes: a token for each letter, 0 for the end."""

    @staticmethod
    def from_file(path):
        if "broken" in path:
            raise ValueError("expected value at line 1")
        return Letters()

    def token_to_id(self, name):
        return 0 if name == "</s>" else None

    def encode_batch(self, lines, add_special_tokens):
        return [SimpleNamespace(ids=[ord(letter) for letter in line]) for line in lines]


@pytest.fixture
def request_of(tmp_path, monkeypatch):
    """A function that writes files and returns a request for them."""
    package, kit = ModuleType("tokenizers"), ModuleType("trainer_kit")
    package.Tokenizer, kit.refuse = Letters, pytest.fail
    monkeypatch.setitem(sys.modules, "tokenizers", package)
    monkeypatch.setitem(sys.modules, "trainer_kit", kit)
    (tmp_path / "tokenizer.json").write_text("{}")

    def write(pattern="*.txt", length=1, check=False, **files):
        for name, text in files.items():
            (tmp_path / name.replace("_", ".")).write_bytes(text)
        places = {"data": str(tmp_path / "data"), "own": str(tmp_path / pattern)}
        return {
            **places,
            "tokenizer": str(tmp_path / "tokenizer.json"),
            "workload": "w",
            "length": length,
            "check": check,
        }

    return write


def tokens(request):
    texts.prepare(request)
    made = array.array("I")
    made.frombytes(Path(request["data"], "tokens.bin").read_bytes())
    return "".join(chr(token) if token else "|" for token in made)


def test_a_file_is_a_document(request_of):
    assert tokens(request_of(a_txt=b"one\ntwo", b_txt=b"three")) == "one\ntwo|three|"


def test_a_line_of_json_is_a_document(request_of):
    lines = "\n".join(json.dumps({"text": text}) for text in ("one\ntwo", "three"))
    assert tokens(request_of("*.jsonl", a_jsonl=lines.encode())) == "one\ntwo|three|"


def test_a_document_of_many_lines_is_whole(request_of, monkeypatch):
    monkeypatch.setattr(texts, "LINES", 2)
    assert tokens(request_of(a_txt=b"1\n2\n3\n4\n")) == "1\n2\n3\n4\n|"


def test_tokens_of_unchanged_files_are_not_made_again(request_of):
    request = request_of(a_txt=b"text")
    assert [texts.prepare(request)["changed"] for _ in range(2)] == [True, False]


def test_tokens_of_a_changed_file_are_made_again(request_of):
    texts.prepare(request_of(a_txt=b"text"))
    assert tokens(request_of(a_txt=b"other text")) == "other text|"


def test_check_mode_makes_nothing(request_of, tmp_path):
    assert texts.prepare(request_of(a_txt=b"text", check=True)) == {"changed": True, "manifest": {}}
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, r"w_own_data=.*\*: no file matches; name text"),
        ({"a_txt": b"\xff\xfe"}, r"a\.txt: not UTF-8 .*; convert it"),
        ({"a_jsonl": b'{"text": "a"}\nb'}, r"a\.jsonl: line 2 is not .*; correct it"),
        ({"a_jsonl": b'{"words": "a"}'}, r"a\.jsonl: line 1 is not .*KeyError"),
        ({"a_jsonl": b'{"text": null}'}, r"a\.jsonl: line 1 is not .*AttributeError"),
        (
            {"a_txt": b"abc", "length": 4},
            "4 tokens; a sequence needs 5: name more text, or a shorter w_seq_length",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_fix(request_of, files, reason):
    with pytest.raises(texts.RefusedError, match=reason):
        texts.prepare(request_of("a.*", **files))


def test_a_tokenizer_that_cannot_be_read_is_refused_with_the_fix(request_of, tmp_path):
    request = {**request_of(a_txt=b"text"), "tokenizer": str(tmp_path / "broken.json")}
    with pytest.raises(
        texts.RefusedError, match=r"w_tokenizer=.*broken\.json: expected value.*; name the tokenizer\.json"
    ):
        texts.prepare(request)


def test_a_tokenizer_of_a_larger_vocabulary_is_refused(request_of):
    request = request_of(a_txt=b"abc")
    texts.prepare(request)
    texts.Tokens("w", request["data"], 100)
    with pytest.raises(pytest.fail.Exception, match="w_tokenizer makes the token 99, .* ends at 98"):
        texts.Tokens("w", request["data"], 99)


def test_sequences_begin_everywhere_up_to_the_last_whole_one(request_of):
    request = request_of(a_txt=b"abcde")
    texts.prepare(request)
    rows = texts.Tokens("w", request["data"], 200).rows([0, 0.5, 0.999], 3)
    assert ["".join(map(chr, row)) for row in rows.tolist()] == ["abc", "cde", "de\0"]
