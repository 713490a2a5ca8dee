# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A small file that would become a large one costs neither memory nor time: it is refused by its name."""

import json
import lzma
import tarfile
import zlib

import pytest
from ansible.module_utils.scalebook import secrets
from ansible.module_utils.scalebook.read import telemetry
from ansible.module_utils.scalebook.store import archive, load, manifest
from ansible.module_utils.scalebook.store.source import open_source
from little_memory import answer
from report_records import campaign, case, record

MIB = 1 << 20


def baseline(path):
    return load.load_baseline(path, 0.03)


def heads(*members):
    """Return the heads of the files of an archive, as a .tar.xz, without their contents."""
    return lzma.compress(b"".join(members), preset=1)


def head(name, size=0, kind=tarfile.REGTYPE):
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    return member.tobuf(tarfile.GNU_FORMAT)


def sparse(size):
    """Return an archive with a file of `size` bytes, all of it a hole, as `tar --sparse` writes it."""
    made = bytearray(head("plan.json", kind=tarfile.GNUTYPE_SPARSE))
    made[386:398] = made[398:410] = b"00000000000\0"
    made[483:495] = b"\x80" + size.to_bytes(11, "big")
    made[148:156] = b"%06o\0 " % (sum(made) - sum(made[148:156]) + 8 * 32)
    return heads(bytes(made), bytes(1024))


def large_dictionary():
    """Return a .xz file that asks for 4 GiB to unpack it."""
    made = bytearray(lzma.compress(b"x"))
    made[16] = 40
    made[20:24] = zlib.crc32(made[12:20]).to_bytes(4, "little")
    return bytes(made)


def one(name, content):
    """Return an archive with one file."""
    return heads(head(name, len(content)), content, bytes(-len(content) % 512 + 1024))


PAX = b"".join(b"%d k%06d=x\n" % (14 if number < 10**6 else 15, number) for number in range(40_000))

KEYS = b"{" + b",".join(b'"%d":1' % number for number in range(900_000)) + b"}"

ARCHIVES = {
    "a sparse file of 30 GiB": (lambda: sparse(30 << 30), "plan.json is not a regular file of a campaign"),
    "zeros": (lambda: one("runs/a/1/NODE1.log", bytes(20 * MIB)), "the most for its size"),
    "a file beyond all": (lambda: heads(head("plan.json", 65 * MIB), bytes(MIB)), "67108864 are the most"),
    "a long head": (lambda: heads(head("x", len(PAX), tarfile.XHDTYPE), PAX), "a head without end"),
    "a dictionary of 4 GiB": (large_dictionary, "Memory usage limit"),
    "a seal of itself": (lambda: one("archive.json", seal("a")), "has been changed since it was packed: a"),
    "lists in a record": (lambda: one("runs/a/1/result.json", b"[" + b"[]," * 3 * MIB), "accepted"),
    "lists in the plan": (
        lambda: one("plan.json", b"[" + b"[]," * 3 * MIB),
        "plan.json: holds too many",
    ),
    "keys in a record": (lambda: one("runs/a/1/result.json", KEYS), "too many values for a file"),
    "brackets": (lambda: one("plan.json", b"[" * 300_000), "plan.json: is nested too deeply"),
    "brackets in the seal": (lambda: one("archive.json", b"[" * 300_000), "archive.json cannot be read"),
    "wide text": (lambda: one("plan.json", '{"x": "😀'.encode() + b"x" * 11 * MIB + b'"}'), "accepted"),
    "very many files": (lambda: heads(*(head(f"runs/{number}") for number in range(15_000))), "accepted"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_a_small_archive_takes_little(tmp_path, name):
    make, said = ARCHIVES[name]
    path = tmp_path / "a.tar.xz"
    path.write_bytes(make())
    assert path.stat().st_size <= MIB
    assert said in answer(load.load_campaign, path)


def readings(columns, cells):
    """Return a file of readings with so many columns and cells, all of them 0."""
    names = [f"c{number}" for number in range(columns)]
    about = {"schema": telemetry.SCHEMA, "interval": 1, "wall": 0, "monotonic": 0, "about": {}}
    start = f"# {json.dumps({**about, 'columns': [[name, 'gauge', '1'] for name in names]})}\n"
    line = "0," * (columns + 1) + "0\n"
    return (start + ",".join(["at", "mark", *names]) + "\n" + line * (cells // (columns + 2))).encode()


def seal(*names):
    return json.dumps({"schema": 1, "files": dict.fromkeys(names, "")}).encode()


LISTS = b'{"schema": 2, "rows": [' + b"[]," * 300_000 + b"1]}"
XZ = "NODE1.telemetry.csv.xz"
FILES = {
    "a baseline of brackets": (baseline, "results.json", lambda: b"[" * MIB, "nested too deeply"),
    "a baseline of lists": (baseline, "results.json", lambda: LISTS, "a row lacks its case"),
    "telemetry of zeros": (telemetry.read_file, XZ, lambda: bytes(13 * MIB), "the most for its size"),
    "telemetry of columns": (telemetry.read_file, XZ, lambda: readings(1000, 2_000_000), "cells, the most"),
    "telemetry of lines": (telemetry.read_file, XZ, lambda: readings(1, 2_000_000), "cells, the most"),
    "telemetry of brackets": (telemetry.read_file, XZ, lambda: b"# " + b"[" * MIB + b"\n", "no head of"),
    "the most telemetry": (telemetry.read_file, XZ, lambda: readings(100, 500_000), "accepted"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_small_file_takes_little(tmp_path, name):
    read, file, make, said = FILES[name]
    path = tmp_path / file
    path.write_bytes(lzma.compress(make(), preset=1) if path.suffix == ".xz" else make())
    assert path.stat().st_size <= MIB
    assert said in answer(read, path)


def test_telemetry_that_holds_too_much_is_not_packed(tmp_path):
    top = campaign(tmp_path / "night1", [record(case())])
    run = top / "runs" / case()["name"] / "1"
    (run / XZ).write_bytes(lzma.compress(bytes(100 * MIB), preset=1))
    (top / "report").mkdir()
    files = manifest.files_of(open_source(top))
    (top / "manifest.json").write_text(json.dumps(manifest.extend(None, files, {}).manifest))
    assert f"{XZ}: cannot be searched for secrets: it holds more than" in answer(archive.pack, top)


def test_a_file_of_secrets_alone_is_refused_at_once(tmp_path):
    text = b"password=abcdefgh\n" * 50_000
    found = answer(lambda content: len(list(archive.secrets_of("NODE1.log", content))), text)
    assert found == f"accepted {secrets.MOST_FOUND}"
