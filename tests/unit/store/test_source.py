# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign in an archive is read as the same campaign in its directory."""

import io
import json
import tarfile

import pytest
from ansible.module_utils.scalebook.judge.results import build_results
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store.chosen import find_baseline
from ansible.module_utils.scalebook.store.load import check_files, load_baseline, load_campaign
from ansible.module_utils.scalebook.store.source import (
    ARCHIVE,
    DirectorySource,
    SourceError,
    check_place,
    open_microbench,
    open_source,
    packed_campaigns,
)
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
    assert check_files(open_source(archived), archived) == (1 + 2 * 11, [])


def test_one_changed_byte_in_an_archive_is_found(directory, tmp_path):
    log = directory / "runs" / case()["name"] / "3" / "NODE1.log"
    log.write_text("another log\n")
    pack(directory, tmp_path / ARCHIVE)
    _, problems = check_files(open_source(tmp_path), tmp_path)
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


def pack_all(folder, **tops):
    """Pack these directories, by their names there, into one archive in `folder`."""
    with tarfile.open(folder / ARCHIVE, "w:xz") as packed:
        for name, top in tops.items():
            packed.add(top, name)
    return folder / ARCHIVE


@pytest.fixture
def several(directory, tmp_path):
    """A directory whose archive holds two campaigns and micro-benchmarks."""
    other = campaign(tmp_path / "day", [record(case(), 1, 7.0)])
    devices = tmp_path / "devices"
    devices.mkdir()
    (devices / "compute.json").write_text("{}")
    (devices / "compute.log").write_bytes(b"a long log\n" * 50_000)
    (tmp_path / "all").mkdir()
    pack_all(tmp_path / "all", microbench=devices, night=directory, day=other)
    return tmp_path / "all"


def test_a_campaign_among_several_is_read_as_if_it_were_unpacked_beside_its_archive(directory, several):
    assert build_results(load_campaign(several / "night")) == build_results(load_campaign(directory))
    assert check_files(open_source(several / "night"), several / "night") == (1 + 2 * 11, [])
    source = open_source(several / "night")
    assert (source.top, source.name) == (several / "night", "night")
    assert source.kept_paths(source.top / "report") == ["../../runs.tar.xz"]


def test_a_report_beside_the_archive_of_several_does_not_hide_them(several):
    (several / "night" / "report").mkdir(parents=True)
    assert len(load_campaign(several / "night").runs) == 11


def test_an_archive_of_its_own_counts_before_that_of_several(directory, several):
    (several / "day").mkdir()
    pack(directory, several / "day" / ARCHIVE)
    assert len(load_campaign(several / "day").runs) == 11


@pytest.mark.parametrize("name", ["", ARCHIVE, "dusk"])
def test_an_archive_of_several_names_them_where_none_of_them_is_named(several, name):
    with pytest.raises(SourceError, match=r"is none of the campaigns in .* one of day, night$"):
        load_campaign(several / name)
    assert packed_campaigns(several / ARCHIVE) == ["day", "night"]


def test_a_directory_of_a_packed_campaign_is_no_campaign(archived):
    with pytest.raises(SourceError, match="is not a campaign or an import"):
        load_campaign(archived / "runs")


def test_a_baseline_may_be_one_of_several_in_an_archive(several):
    assert find_baseline("night", several / "night", several) == several / "night"
    assert load_baseline(several / "night", 0.03).name == "night"
    with pytest.raises(ValueError, match="must be the path of a results.json"):
        find_baseline("dusk", several / "dusk", several)


def test_the_report_of_another_campaign_of_the_same_name_is_not_replaced(archived, several):
    check_place(open_source(several / "night"))
    (archived / ARCHIVE).rename(several / "day.tar.xz")
    with pytest.raises(SourceError, match="which holds another campaign"):
        check_place(open_source(several / "day.tar.xz"))


def test_micro_benchmarks_among_campaigns_are_read_where_they_would_be_unpacked(several):
    source = open_microbench(several / "microbench")
    assert (source.covered(), source.sealed) == (["compute.json", "compute.log"], True)
    (several / "microbench").mkdir()
    (several / "microbench" / "compute.json").write_text("{}")
    assert isinstance(open_microbench(several / "microbench"), DirectorySource)
