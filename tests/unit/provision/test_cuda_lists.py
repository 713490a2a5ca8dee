# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Beside the description that role cuda writes, no other one of the same repository stays in apt's lists."""

import pytest
from role_files import load

cuda_lists = load("cuda", "cuda_lists")

URI = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu1804/x86_64"
KEEP = "scalebook-nvidia.sources"
DRIVERS = "scalebook-nvidia_driver.sources"
# What cuda-keyring_1.1-1_all.deb writes.
KEYRING = f"deb [signed-by=/usr/share/keyrings/cuda-archive-keyring.gpg] {URI}/ /\n"
OTHER = "deb http://archive.ubuntu.com/ubuntu bionic main\n"
STANZA = f"Types: deb\nURIs: {URI}\nSuites: /\nSigned-By: /usr/share/keyrings/x.gpg\n"


@pytest.fixture
def apt(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text(OTHER)
    (tmp_path / "sources.list.d" / KEEP).write_text(STANZA)
    return tmp_path


def disable(apt, write=True):
    keep = [str(apt / "sources.list.d" / each) for each in (KEEP, DRIVERS)]
    return cuda_lists.disable(str(apt), [URI], "/", keep, write)


def put(apt, name, text):
    path = apt / name
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "line", [KEYRING, f"deb {URI} /\n", f"  deb-src [arch=amd64 by-hash=no]  {URI}/ / # x\n"]
)
def test_an_entry_of_the_repository_becomes_a_comment(apt, line):
    path = put(apt, "sources.list.d/cuda-ubuntu1804-x86_64.list", OTHER + line)
    assert disable(apt) == [str(path)]
    left = [each for each in path.read_text().splitlines(True) if not each.startswith("#")]
    assert left == [OTHER]
    assert line.strip() in path.read_text()


def test_the_description_of_the_drivers_role_stays(apt):
    """It names the same file of the key, so apt takes both."""
    path = put(apt, f"sources.list.d/{DRIVERS}", STANZA)
    assert disable(apt) == [] and path.read_text() == STANZA


def test_an_entry_of_the_main_list_becomes_a_comment(apt):
    put(apt, "sources.list", KEYRING + OTHER)
    assert disable(apt) == [str(apt / "sources.list")]


def test_a_stanza_of_the_repository_is_disabled_and_others_stay(apt):
    other = "Types: deb\nURIs: http://deb.debian.org/debian\nSuites: bookworm\n"
    path = put(apt, "sources.list.d/nvidia.sources", f"{other}\nEnabled: yes\n{STANZA}")
    assert disable(apt) == [str(path)]
    first, second = path.read_text().split("\n\n")
    assert first == other.rstrip("\n")
    assert second.count("Enabled: no") == 1 and "Enabled: yes" not in second


@pytest.mark.parametrize(
    "line", [OTHER, f"# {KEYRING}", f"deb {URI}-other /\n", f"deb {URI} other/\n", f"deb {URI}/sub /\n"]
)
def test_other_entries_stay_as_they_are(apt, line):
    path = put(apt, "sources.list.d/other.list", line)
    assert disable(apt) == []
    assert path.read_text() == line


@pytest.mark.parametrize(("name", "text"), [("a.list", KEYRING), ("a.sources", STANZA)])
def test_what_is_disabled_is_not_changed_again(apt, name, text):
    path = put(apt, f"sources.list.d/{name}", text)
    disable(apt)
    before = path.read_text()
    assert disable(apt) == []
    assert path.read_text() == before


def test_check_mode_changes_nothing(apt):
    path = put(apt, "sources.list.d/a.list", KEYRING)
    assert disable(apt, write=False) == [str(path)]
    assert path.read_text() == KEYRING


def test_the_description_that_stays_is_not_touched(apt):
    disable(apt)
    assert (apt / "sources.list.d" / KEEP).read_text() == STANZA
