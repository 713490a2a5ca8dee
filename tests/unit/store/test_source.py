# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign in an archive is read as the same campaign in its directory."""

import io
import json
import tarfile

import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.load import check_files, load_baseline, load_campaign
from ansible.module_utils.scalebook.store.source import ARCHIVE, SourceError, open_source
from report_records import campaign, case, record


def pack(top, archive):
    with tarfile.open(archive, "w:xz") as packed:
        for name in ("plan.json", "provenance.json", "manifest.json", "runs"):
            if (top / name).exists():
                packed.add(top / name, name)


@pytest.fixture
def directory(tmp_path):
    top = campaign(tmp_path / "night", [record(case(), repeat, 100.0 + repeat) for repeat in range(1, 12)])
    for path in top.glob("runs/*/*"):
        (path / "NODE1.log").write_text(f"log of {path.name}\n")
    source = open_source(top)
    check = manifest.extend(None, manifest.files_of(source), load_campaign(top).statuses)
    (top / "manifest.json").write_text(json.dumps(check.manifest))
    return top


@pytest.fixture
def archived(directory, tmp_path):
    top = tmp_path / "elsewhere" / "night"
    top.mkdir(parents=True)
    pack(directory, top / ARCHIVE)
    return top


@pytest.mark.parametrize("name", ["", ARCHIVE])
def test_an_archive_makes_the_same_document(directory, archived, name):
    assert build_results(load_campaign(archived / name)) == build_results(load_campaign(directory))


def test_the_manifest_holds_for_the_files_of_an_archive(directory, archived):
    assert manifest.files_of(open_source(archived)) == manifest.files_of(open_source(directory))
    assert check_files(archived) == (1 + 2 * 11, [])


def test_one_changed_byte_in_an_archive_is_found(directory, tmp_path):
    log = directory / "runs" / case()["name"] / "3" / "NODE1.log"
    log.write_text("another log\n")
    pack(directory, tmp_path / ARCHIVE)
    _, problems = check_files(tmp_path / ARCHIVE)
    assert [(each["file"], each["what"]) for each in problems] == [
        (log.relative_to(directory).as_posix(), "changed")
    ]


def test_a_baseline_may_be_an_archive(archived):
    earlier = load_baseline(archived / ARCHIVE, 0.03)
    assert (earlier.name, [row["good"] for row in earlier.rows]) == ("night", [11])


def test_an_archive_of_another_name_names_its_campaign(archived, tmp_path):
    (archived / ARCHIVE).rename(tmp_path / "monday.tar.xz")
    assert load_campaign(tmp_path / "monday.tar.xz").name == "monday"


@pytest.mark.parametrize("content", [b"", b"no archive", b"\xfd7zXZ\x00" + b"0" * 100])
def test_a_damaged_archive_is_named(tmp_path, content):
    (tmp_path / ARCHIVE).write_bytes(content)
    with pytest.raises(SourceError, match=f"{ARCHIVE} cannot be read"):
        load_campaign(tmp_path)


def test_a_truncated_archive_is_named(archived):
    path = archived / ARCHIVE
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(SourceError, match="cannot be read"):
        load_campaign(archived)


def test_a_name_with_escapes_is_refused_on_one_line_without_them(tmp_path):
    with tarfile.open(tmp_path / ARCHIVE, "w:xz") as packed:
        packed.addfile(tarfile.TarInfo("\x1b]0;title\x07evil\nfatal: fake line"), io.BytesIO())
    with pytest.raises(SourceError, match="not a regular file of a campaign") as refused:
        load_campaign(tmp_path)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("name", ["../evil", "/evil", "runs/../../evil"])
def test_names_that_leave_the_archive_are_refused(tmp_path, name):
    with tarfile.open(tmp_path / ARCHIVE, "w:xz") as packed:
        packed.addfile(tarfile.TarInfo(name), io.BytesIO())
    with pytest.raises(SourceError, match="is not a regular file of a campaign"):
        load_campaign(tmp_path)


def test_links_in_an_archive_are_refused(tmp_path):
    link = tarfile.TarInfo("plan.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / ARCHIVE, "w:xz") as packed:
        packed.addfile(link)
    with pytest.raises(SourceError, match="is not a regular file of a campaign"):
        load_campaign(tmp_path)
