# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""HDF5 files for BERT of texts: the same on any number of processes, resumed, checked, read by workloads."""

import bz2
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import role_files

PROGRAM = role_files.KIT / "make_hdf5.py"
bert_text = role_files.load("workload", "bert_text")
make_hdf5 = role_files.load("workload", "make_hdf5")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "the river bank of a city has its old bridge and many people cross it every day .".split()
LENGTH, PREDICTIONS, FILES = 32, 5, 4


@pytest.fixture
def job(tmp_path):
    """A request for the samples of forty documents in two texts."""
    (tmp_path / "vocab.txt").write_text("\n".join(SPECIAL + sorted(set(WORDS))) + "\n")
    for name in "ab":
        documents = [
            "\n".join(" ".join(WORDS[(line + number) % 7 :]) for line in range(9)) for number in range(20)
        ]
        (tmp_path / f"{name}.txt").write_text("\n\n".join(documents) + "\n")
    return {
        "data": str(tmp_path / "home/hdf5"),
        "text_files": [str(tmp_path / "?.txt")],
        "vocab_file": str(tmp_path / "vocab.txt"),
        "seq_length": LENGTH,
        "predictions": PREDICTIONS,
        "seed": 2020,
        "files": FILES,
        "processes": 1,
        "workload": "bing_bert",
        "check": False,
    }


def start(job, *program):
    words = [sys.executable, *(program or [PROGRAM]), json.dumps(job)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(job, **other):
    """Return status, what was printed and the lines of progress or the refusal."""
    process = start({**job, **other})
    out, errors = process.communicate(timeout=60)
    return process.returncode, json.loads(out or "null"), errors


def made(job, **other):
    status, printed, errors = run(job, **other)
    assert status == 0, errors
    return printed


def refused(job, **other):
    status, _, errors = run(job, **other)
    assert status == 3, errors
    return errors


def arrays(job, file=0):
    with h5py.File(f"{job['data']}/training_{file:03}.hdf5") as stream:
        return {key: np.asarray(stream[key]) for key in stream}


def test_one_and_three_processes_make_the_same_files(job, tmp_path):
    one = made(job)
    three = made(job, data=str(tmp_path / "other/hdf5"), processes=3)
    assert (one["identity"], one["samples"], one["changed"]) == (three["identity"], three["samples"], True)
    assert made(job, data=str(tmp_path / "third/hdf5"), seed=1)["identity"] != one["identity"]


def test_complete_files_are_not_made_again(job):
    first = made(job)
    assert made(job) == {**first, "changed": False}


# The program; its third file is never done.
STUCK = """\
import sys, time
sys.path.insert(0, sys.argv.pop(1))
import make_hdf5
made = make_hdf5.make_shard
make_hdf5.make_shard = lambda *words: time.sleep(600) if words[1] == 2 else made(*words)
make_hdf5.main()
"""


def test_a_killed_run_goes_on_with_the_files_that_are_missing(job, tmp_path):
    process = start(job, "-c", STUCK, role_files.KIT)
    for line in process.stderr:
        if "file 2 of 4 made" in line:
            break
    process.kill()
    process.communicate()  # its own processes have ended too: they have its pipes
    folder = Path(job["data"])
    assert sorted(path.name for path in folder.glob("*.hdf5")) == ["training_000.hdf5", "training_001.hdf5"]
    kept = (folder / "training_000.hdf5").stat().st_ino
    status, printed, errors = run(job)
    assert (status, "2 of 4 files to make" in errors) == (0, True)
    assert (folder / "training_000.hdf5").stat().st_ino == kept
    assert printed["identity"] == made(job, data=str(tmp_path / "whole/hdf5"))["identity"]


def test_a_damaged_file_is_found_and_made_again(job):
    identity = made(job)["identity"]
    with Path(job["data"], "training_002.hdf5").open("r+b") as stream:
        stream.seek(-40, os.SEEK_END)
        stream.write(b"damaged")
    status, printed, errors = run(job)
    assert (status, printed["identity"], printed["changed"]) == (0, identity, True)
    assert "training_002.hdf5 is damaged and made again" in errors
    assert "file 1 of 1 made: training_002.hdf5" in errors


def test_other_parameters_replace_the_files(job):
    made(job)
    made(job, files=2)
    assert len(list(Path(job["data"]).glob("*.hdf5"))) == 2


def test_samples_are_those_of_bert(job):
    made(job)
    found = arrays(job)
    for row in zip(*(found[key] for key in sorted(found)), strict=True):
        ids, mask, labels, positions, following, segments = row
        size = mask.sum()
        assert ids[0] == SPECIAL.index("[CLS]")
        assert ids[size - 1] == SPECIAL.index("[SEP]")
        assert not ids[size:].any()
        masked = (positions > 0).sum()
        assert masked == min(PREDICTIONS, max(1, round(size * 0.15)))
        assert (positions[:masked] < size - 1).all()
        assert (labels[:masked] >= len(SPECIAL)).all()
        # The first text ends with a [SEP] before the second.
        assert ids[segments.argmax() - 1] == SPECIAL.index("[SEP]")
        assert following in (0, 1)
    shown = np.take_along_axis(found["input_ids"], found["masked_lm_positions"], 1)[
        found["masked_lm_positions"] > 0
    ]
    share = np.mean(shown == SPECIAL.index("[MASK]"))
    assert 0.6 < share < 0.9


def test_bing_bert_accepts_the_files(job, tmp_path):
    printed = made(job)
    values = {"text": "texts", "length": LENGTH, "predictions": PREDICTIONS}
    request = {"data": str(tmp_path / "data"), "vocabulary": str(tmp_path / "words"), "own": str(job["data"])}
    request |= {"values": values, "make": True, "check": False}
    done = role_files.run("bing_bert", "make_data.py", json.dumps(request))
    assert done.returncode == 0, done.stderr
    assert 0 < json.loads(done.stdout)["samples"] <= printed["samples"] / FILES
    assert len(list((tmp_path / "data/30522").iterdir())) == FILES


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"text_files": ["/no/file*"]}, "bing_bert_text=/no/file*: found no such file"),
        ({"vocab_file": "/no/file"}, "bing_bert_vocab_file=/no/file: found no such file"),
        ({"files": 64}, "the texts are too short: file "),
    ],
)
def test_what_gives_no_samples_is_refused(job, change, said):
    assert said in refused(job, **change)


def test_a_vocabulary_of_another_language_is_refused(job, tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "wort"]) + "\n")
    assert "the vocabulary is not that of the texts" in refused(job)


def test_a_text_of_another_encoding_is_refused_by_its_name(job, tmp_path):
    (tmp_path / "b.txt").write_bytes(b"\xe4\xf6\xfc")
    assert f"{tmp_path}/b.txt: cannot be read as a text" in refused(job)


def test_files_of_somebody_else_are_left(job, tmp_path):
    (tmp_path / "home/hdf5").mkdir(parents=True)
    (tmp_path / "home/hdf5/training_000.hdf5").write_text("mine")
    assert "training_000.hdf5 is not of scalebook" in refused(job)
    assert (tmp_path / "home/hdf5/training_000.hdf5").read_text() == "mine"


def test_a_process_that_is_killed_ends_the_run():
    job = ("training_000.hdf5", signal.raise_signal, signal.SIGKILL)
    with pytest.raises(make_hdf5.RefusedError, match="training_000.hdf5: .* ended with status -9"):
        make_hdf5.run_all(2, [job], print)


# Texts

DUMP = """\
<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/"><page><title>A</title><ns>0</ns><revision><text>
{{Infobox|name={{lang|en|x}}}}'''Anarchism''' is a [[political philosophy|philosophy]] of [[law]].&lt;ref
name="x"&gt;Cited. Twice.&lt;/ref&gt; It began in the U.S. in 1840 &amp;amp; grew.
[[File:A.jpg|thumb|A [[link]] of it.]]
== History ==
* an item
{| class="wikitable"
| a cell
|}
See [https://example.org the page].
</text></revision></page>
<page><title>B</title><ns>0</ns><redirect title="A" /><revision><text>#REDIRECT [[A]]</text></revision></page>
<page><title>Talk:A</title><ns>1</ns><revision><text>Chatter.</text></revision></page></mediawiki>
"""
ARTICLE = [
    "Anarchism is a philosophy of law.",
    "It began in the U.S. in 1840 & grew.",
    "See the page.",
]


def test_a_dump_gives_the_sentences_of_its_articles(tmp_path):
    (tmp_path / "dump.xml.bz2").write_bytes(bz2.compress(DUMP.encode()))
    assert list(bert_text.documents(str(tmp_path / "dump.xml.bz2"))) == [ARTICLE]


@pytest.mark.parametrize("opened", ["<ref>", "<!--", "{{a|", "[[File:a|", "[http://x ", "{|"])
def test_markup_that_is_never_closed_takes_no_longer(opened):
    began = time.process_time()
    bert_text.article(f"{opened}word " * 20000)
    assert time.process_time() - began < 5


def test_what_wikiextractor_wrote_gives_sentences_without_the_title(tmp_path):
    text = '<doc id="1" url="x" title="A &amp; B">\nA & B\n\nOne &lt; two. Three!\n</doc>\n'
    (tmp_path / "wiki_00").write_text(text + '<doc id="2" url="x" title="C">\nC\n\n你好。再见。\n</doc>\n')
    found = list(bert_text.documents(str(tmp_path / "wiki_00")))
    assert found == [["One < two.", "Three!"], ["你好。", "再见。"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Unaffable, ÉTÉ!", ["un", "##aff", "##able", ",", "ete", "!"]),
        ("中a国", ["中", "[UNK]", "[UNK]"]),
        ("un\u200baff\ufffdable\u00a0un", ["un", "##aff", "##able", "un"]),
    ],
)
def test_tokens_are_those_of_bert(tmp_path, text, words):
    known = [*SPECIAL, "un", "##aff", "##able", ",", "!", "ete", "中"]
    (tmp_path / "vocab.txt").write_text("\n".join(known) + "\n")
    tokens = bert_text.Tokens(str(tmp_path / "vocab.txt"))
    assert [known[number] for number in tokens.encode(text)] == words
