# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs as people pass them on: archives, packed logs, directories in directories."""

import gzip
import io
import json
import os
import re
import tarfile
import tempfile
import zipfile

import pytest
from ansible.module_utils.scalebook.read import packed
from ansible.module_utils.scalebook.read.import_dlperf import TreeError, import_tree
from ansible.module_utils.scalebook.throughput import measure
from dlperf_figures import PUBLISHED
from dlperf_logs import WORKLOAD, log_of_speed, write_tree
from dlperf_trees import place, read
from imports import DATA
from little_memory import answer

LOG = "1n1g/bert_b64_fp32_1.log"
MODES = {".tar": "w", ".tar.gz": "w:gz", ".tgz": "w:gz", ".tar.xz": "w:xz", ".txz": "w:xz"}


def pack(path, members):
    """Write {name: bytes} as the archive that the name of `path` says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return path
    with tarfile.open(path, MODES[packed.suffix_of(path.name)]) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def good(**more):
    return {LOG: log_of_speed(128.0).encode(), **more}


def medians(records):
    rates = {}
    for record in records.values():
        rates.setdefault(record["case"]["label"], []).append(round(measure(record)["rate"], 2))
    return {label: sorted(each)[2] for label, each in rates.items()}


@pytest.mark.parametrize("suffix", packed.SUFFIXES)
def test_an_archive_of_dlperfs_logs_gives_its_printed_speeds(tmp_path, suffix):
    tree = write_tree(tmp_path)
    members = {str(path.relative_to(tmp_path)): path.read_bytes() for path in sorted(tree.rglob("*.log"))}
    archive = pack(tmp_path / f"logs{suffix}", {f"DLPerf/{name}": text for name, text in members.items()})
    result, records = read(archive, tmp_path / "out")
    assert result["counts"] == {"ok": 30} and result["unread"] == []
    assert medians(records) == {label: entry["median_speed"] for label, entry in PUBLISHED.items()}
    assert f"logs{suffix}/DLPerf/bz64/{LOG}" in records
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert (plan["campaign"], plan["source"]) == ("logs", f"logs{suffix}")
    assert not read(archive, tmp_path / "out")[0]["changed"]


def test_a_genuine_log_counts_as_much_packed_as_plain(tmp_path):
    log = (DATA / "tf2_bert" / "1n_mirrored.log").read_bytes()
    rates = set()
    for name, content in {
        "plain/1n1g/tiny_b16_fp32_1.log": log,
        "gz/a/b/1n1g/tiny_b16_fp32_1.log.gz": gzip.compress(log),
    }.items():
        place(tmp_path, name, text=content)
        _, records = read(
            tmp_path / name.split("/")[0], tmp_path / name.split("/")[0] / ".." / f"out_{len(rates)}"
        )
        (record,) = records.values()
        rates.add((record["status"], measure(record)["rate"], record["nodes"][0]["sha256"]))
    assert len(rates) == 1 and rates.pop()[0] == "ok"


@pytest.mark.parametrize("inner", ["bz64", "logs/bert/bz64", "a/b/c/d/e/f/g/h"])
def test_directories_may_lie_in_directories(tmp_path, inner):
    place(tmp_path, f"tree/{inner}/{LOG}")
    place(tmp_path, "tree/notes/readme.txt")
    result, records = read(tmp_path / "tree")
    assert list(records) == [f"tree/{inner}/{LOG}"]
    assert result["unread"] == [{"path": "tree/notes", "reason": "is not named <N>n<G>g"}]


def test_the_same_run_in_two_directories_counts_once(tmp_path):
    place(tmp_path, f"tree/a/{LOG}", f"tree/b/{LOG}")
    result, records = read(tmp_path / "tree")
    assert list(records) == [f"tree/a/{LOG}"]
    assert result["unread"] == [{"path": f"tree/b/{LOG}", "reason": f"is the same run as tree/a/{LOG}"}]


def test_a_tree_that_holds_itself_has_an_end(tmp_path):
    place(tmp_path, f"tree/{LOG}")
    (tmp_path / "tree" / "again").symlink_to(tmp_path / "tree")
    result, _ = read(tmp_path / "tree")
    assert result["unread"] == [{"path": "tree/again", "reason": "is not named <N>n<G>g"}]


def test_packed_logs_in_an_archive_are_read(tmp_path):
    text = log_of_speed(128.0).encode()
    archive = pack(
        tmp_path / "logs.zip", {LOG + ".gz": gzip.compress(text[:5000]) + gzip.compress(text[5000:])}
    )
    _, records = read(archive)
    assert measure(records[f"logs.zip/{LOG}"])["rate"] == 128.0


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(log_of_speed(128.0).encode())[:-20]])
def test_a_packed_log_that_is_broken_costs_the_others_nothing(tmp_path, content):
    place(tmp_path, f"tree/{LOG}")
    place(tmp_path, "tree/1n1g/bert_b64_fp32_2.log.gz", text=content)
    result, _ = read(tmp_path / "tree")
    assert result["counts"] == {"ok": 1, "refused": 1}
    assert "cannot be read" in result["refused"][0]["reason"]


ESCAPES = ["../escaped.log", "/escaped.log", "1n1g/../../escaped.log", "..\\escaped.log", "1n1g/a\nb.log"]


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
@pytest.mark.parametrize("name", ESCAPES)
def test_no_path_leads_out_of_an_archive(tmp_path, suffix, name):
    result, _ = read(pack(tmp_path / f"logs{suffix}", good(**{name: b"x"})))
    assert [each["reason"] for each in result["unread"]] == ["has a path that leads out of the archive"]
    assert result["counts"] == {"ok": 1} and not list(tmp_path.rglob("escaped.log"))


def test_a_link_in_an_archive_is_not_followed(tmp_path):
    archive = tmp_path / "logs.tar"
    secret = tmp_path / "secret"
    secret.write_text(log_of_speed(64.0))
    with tarfile.open(archive, "w") as tar:
        for name, kind in (
            ("1n1g", tarfile.SYMTYPE),
            (LOG, tarfile.SYMTYPE),
            (LOG.replace("1.log", "2.log"), tarfile.LNKTYPE),
        ):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, str(secret if name.endswith("log") else tmp_path)
            tar.addfile(member)
        member = tarfile.TarInfo(LOG.replace("1.log", "3.log"))
        text = log_of_speed(128.0).encode()
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    result, records = read(archive)
    assert result["counts"] == {"ok": 1} and len(result["unread"]) == 3
    assert {each["reason"] for each in result["unread"]} == {"is a link or no regular file"}


def test_what_macos_adds_is_passed_over(tmp_path):
    extra = {"__MACOSX/1n1g/._bert_b64_fp32_1.log": b"x", "1n1g/.DS_Store": b"x", "1n1g/._a.log": b"x"}
    result, _ = read(pack(tmp_path / "logs.zip", good(**extra)))
    assert (result["counts"], result["unread"]) == ({"ok": 1}, [])


@pytest.mark.parametrize("name", ["logs.zip", "logs.tar.gz", "logs.tar.xz", "logs.tar"])
def test_a_broken_archive_is_named_with_the_reason(tmp_path, name):
    archive = pack(tmp_path / name, good())
    for content in (b"", b"not an archive" * 100, archive.read_bytes()[: archive.stat().st_size // 2]):
        archive.write_bytes(content)
        with pytest.raises(TreeError, match=name):
            read(archive)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    place(tmp_path, "one.log")
    with pytest.raises(TreeError, match=r"one.log: is not a directory, and its name ends with none of \.zip"):
        read(tmp_path / "one.log")


def test_an_encrypted_member_is_named(tmp_path):
    archive = pack(tmp_path / "logs.zip", good(**{"1n1g/bert_b64_fp32_2.log": b"x"}))
    content = bytearray(archive.read_bytes())
    for mark, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        content[content.rindex(mark) + at] |= 1
    archive.write_bytes(content)
    result, _ = read(archive)
    assert [each["reason"] for each in result["unread"]] == ["is encrypted"]


def zeros(path):
    """Write 200 MiB of zeros as a log."""
    return pack(path, {LOG: bytes(200 << 20)})


def steps(path):
    """Write 64 MiB of steps as one log, with which the archive holds as much as it may."""
    text = log_of_speed(128.0).encode()
    # So that it cannot be packed too well.
    return pack(path, {LOG: text * ((64 << 20) // len(text)), "filler": os.urandom(500_000)})


def packed_twice(path):
    return pack(path, {f"1n1g/bert_b64_fp32_{i}.log.gz": gzip.compress(bytes(20 << 20)) for i in range(20)})


def many(path):
    return pack(path, {f"1n1g/{i}": b"" for i in range(9_000)})


def deep(path):
    return pack(path, {f"{i:x}/1/2/3/4/5/6/7/x": b"" for i in range(7_000)})


BOMBS = {
    ("zeros.zip", zeros): "refused: .*zeros.zip: it holds more than",
    ("zeros.tgz", zeros): "refused: .*zeros.tgz: it holds more than",
    ("zeros.tar.xz", zeros): "refused: .*zeros.tar.xz: it holds more than",
    ("steps.tar.gz", steps): "accepted .*'refused': 1",
    ("packed_twice.zip", packed_twice): "refused: .*packed_twice.zip: it holds more than",
    ("many.zip", many): "refused: .*many.zip: it holds more than .* directories",
    ("deep.zip", deep): "refused: .*deep.zip: it holds more than .* directories",
}


@pytest.mark.parametrize(("name", "write", "said"), [(*key, said) for key, said in BOMBS.items()])
def test_no_archive_of_a_megabyte_takes_much(tmp_path, monkeypatch, name, write, said):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = write(tmp_path / name)
    assert path.stat().st_size < 1 << 20
    out = answer(lambda path: import_tree(path, tmp_path / "out", "tf2_bert", WORKLOAD), path)
    assert re.match(said, out, re.DOTALL)
    assert not list(temporary.iterdir())


def test_a_packed_log_of_a_megabyte_takes_little(tmp_path):
    place(tmp_path, "tree/1n1g/bert_b64_fp32_1.log.gz", text=gzip.compress(bytes(200 << 20)))
    out = answer(lambda path: import_tree(path, tmp_path / "out", "tf2_bert", WORKLOAD), tmp_path / "tree")
    assert out.startswith("accepted {'counts': {'refused': 1}")
