# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A mirror is a directory and its manifest: whatever is not as it was gathered is named."""

import hashlib
import shutil
import subprocess

import mirror_compare
import mirror_index
import mirror_seal
import pytest
import yaml
from role_files import ROLES
from run_module import call_module

RIGHT = {"missing": [], "differing": [], "unlisted": []}


@pytest.fixture
def mirror(tmp_path):
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").write_bytes(b"torch")
    (tmp_path / "wheels/six-1.17.0-py2.py3-none-any.whl").write_bytes(b"six")
    mirror_seal.seal(str(tmp_path))
    return tmp_path


def check(mirror):
    return mirror_compare.compare(str(mirror), (mirror / "sha256sums").read_text())


def test_a_mirror_is_what_its_manifest_says(mirror):
    assert check(mirror) == RIGHT


def test_sha256sum_reads_the_manifest(mirror):
    command = ["sha256sum", "--check", "--strict", "--quiet", "sha256sums"]
    assert subprocess.run(command, cwd=mirror, capture_output=True).stdout == b""


def test_a_changed_byte_names_the_file(mirror):
    (mirror / "wheels/six-1.17.0-py2.py3-none-any.whl").write_bytes(b"sux")
    assert check(mirror) == {**RIGHT, "differing": ["wheels/six-1.17.0-py2.py3-none-any.whl"]}


def test_a_file_that_is_gone_is_named(mirror):
    (mirror / "wheels/six-1.17.0-py2.py3-none-any.whl").unlink()
    assert check(mirror) == {**RIGHT, "missing": ["wheels/six-1.17.0-py2.py3-none-any.whl"]}


def test_a_file_that_was_not_gathered_is_named(mirror):
    (mirror / "wheels/six-1.18.0-py2.py3-none-any.whl").write_bytes(b"new")
    assert check(mirror) == {**RIGHT, "unlisted": ["wheels/six-1.18.0-py2.py3-none-any.whl"]}


def test_a_directory_that_is_not_there_lacks_all(mirror, tmp_path):
    text = (mirror / "sha256sums").read_text()
    assert len(mirror_compare.compare(str(tmp_path / "nowhere"), text)["missing"]) == 2


@pytest.mark.parametrize(
    "line",
    [
        "",
        "torch.whl",
        "0" * 63 + "  a",
        "0" * 64 + " a",
        "0" * 64 + "  /etc/passwd",
        "0" * 64 + "  a/../../b",
    ],
)
def test_what_is_no_manifest_is_refused(line):
    with pytest.raises(ValueError, match="manifest"):
        mirror_compare.read(line and line + "\n")


def test_the_manifest_has_a_checksum_of_its_own(mirror):
    sealed = mirror_seal.seal(str(mirror))
    assert sealed["sha256"] == hashlib.sha256((mirror / "sha256sums").read_bytes()).hexdigest()
    assert sealed["files"] == 2


# -- packages ------------------------------------------------------------------------------------------


def stanza(name, version, text="x"):
    said = f"Package: {name}\nVersion: {version}\nDescription: {text}\n"
    return said + f"Filename: ./{name}_{version}.deb\nSize: 3\n"


def test_what_is_gathered_later_joins_what_is_there(tmp_path):
    for name in ("a_1.deb", "b_1.deb"):
        (tmp_path / name).touch()
    (tmp_path / "Packages").write_text(stanza("a", "1", "old") + "\n" + stanza("gone", "1") + "\n")
    (tmp_path / "Packages.new").write_text(stanza("a", "1", "new") + "\n" + stanza("b", "1"))
    mirror_seal.merge_index(str(tmp_path))
    index = (tmp_path / "Packages").read_text()
    assert [line for line in index.splitlines() if line.startswith("Package: ")] == [
        "Package: a",
        "Package: b",
    ]
    assert "Description: new" in index and "Description: old" not in index
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Packages", "a_1.deb", "b_1.deb"]


def test_a_controller_without_gpg_is_told_the_cure(tmp_path, monkeypatch):
    (tmp_path / "apt/debian-12").mkdir(parents=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mirror_seal.SealError, match="apt-get install gnupg"):
        mirror_seal.seal(str(tmp_path))


def test_gpg_takes_the_signature_for_that_of_the_key(tmp_path):
    repository = tmp_path / "apt/debian-12"
    repository.mkdir(parents=True)
    (repository / "a_1.deb").write_bytes(b"deb")
    (repository / "Packages.new").write_text(stanza("a", "1"))
    mirror_seal.seal(str(tmp_path))
    keyring = ["--keyring", str(tmp_path / "apt/key.gpg")]
    verify = ["gpgv", "--status-fd", "1", *keyring, str(repository / "InRelease")]
    done = subprocess.run(verify, capture_output=True, text=True)
    assert f"VALIDSIG {(tmp_path / 'apt/fingerprint').read_text()}" in done.stdout
    listed = hashlib.sha256((repository / "Packages").read_bytes()).hexdigest()
    assert f" {listed} " in (repository / "InRelease").read_text()
    assert check(tmp_path) == RIGHT


def test_an_index_tells_each_package_of_a_directory(tmp_path):
    if not shutil.which("dpkg-deb"):
        assert not shutil.which("apt-get")  # no Debian: packages are indexed on hosts that are
        return
    control = tmp_path / "root/DEBIAN/control"
    control.parent.mkdir(parents=True)
    control.write_text(
        "Package: tiny\nVersion: 1:2.0\nArchitecture: all\nMaintainer: t <t@x>\nDescription: tiny\n"
    )
    deb = tmp_path / "tiny_1%3a2.0_all.deb"
    build = ["dpkg-deb", "--root-owner-group", "--build", str(tmp_path / "root"), str(deb)]
    subprocess.run(build, check=True, capture_output=True)
    assert call_module(mirror_index, check=True, path=str(tmp_path))["changed"] is True
    assert not (tmp_path / "Packages.new").exists()
    result = call_module(mirror_index, path=str(tmp_path))
    assert (result["changed"], result["packages"]) == (True, 1)
    index = (tmp_path / "Packages.new").read_text()
    assert "Package: tiny\nVersion: 1:2.0\n" in index
    [deb] = tmp_path.glob("*.deb")
    assert deb.name == "tiny_2.0_all.deb", "apt looks for the name without the epoch"
    assert f"Filename: ./tiny_2.0_all.deb\nSize: {deb.stat().st_size}\n" in index
    assert f"SHA256: {hashlib.sha256(deb.read_bytes()).hexdigest()}\n" in index
    assert call_module(mirror_index, path=str(tmp_path))["changed"] is False


def test_a_file_that_is_not_a_package_is_named(tmp_path):
    if not shutil.which("dpkg-deb"):
        assert not shutil.which("apt-get")
        return
    (tmp_path / "broken_1.deb").write_bytes(b"not a package")
    result = call_module(mirror_index, path=str(tmp_path))
    assert result["failed"] and f"{tmp_path}/broken_1.deb is not a Debian package" in result["msg"]


def test_a_host_without_packages_has_no_index(tmp_path):
    result = call_module(mirror_index, path=str(tmp_path / "nowhere"))
    assert (result["changed"], result["packages"]) == (False, 0)


def test_the_module_names_the_line_that_is_wrong_in_a_manifest(tmp_path):
    result = call_module(mirror_compare, path=str(tmp_path), manifest="nothing\n")
    assert result["failed"] and "line 1 of the manifest is not `<sha256>  <path>`: 'nothing'" in result["msg"]


def test_the_module_compares(mirror):
    result = call_module(mirror_compare, path=str(mirror), manifest=(mirror / "sha256sums").read_text())
    assert {name: result[name] for name in RIGHT} == RIGHT
    assert result["changed"] is False


def test_the_module_seals_and_a_check_does_not(mirror):
    (mirror / "more").write_text("more")
    assert call_module(mirror_seal, check=True, path=str(mirror))["changed"] is True
    assert check(mirror)["unlisted"] == ["more"]
    assert call_module(mirror_seal, path=str(mirror))["files"] == 3
    assert check(mirror) == RIGHT


# Commits of repositories

GATHER = next(
    task["vars"]["__script"]
    for task in yaml.safe_load((ROLES / "workload/tasks/mirror_commit.yml").read_text())
    if task["name"] == "Fetch the commit"
)


def git(folder, *words):
    done = subprocess.run(
        ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@localhost", *words],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """Return a repository with two commits, and the first of them."""
    folder = tmp_path / "token-of-the-url"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for text in ("first", "second"):
        (folder / "train.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", text)
    return folder, git(folder, "rev-parse", "HEAD~1")


def gather(folder, repository, commit):
    place = folder / "git" / commit
    words = ["sh", "-euc", GATHER, "sh", place, f"file://{repository}", commit]
    return place, subprocess.run(words, capture_output=True, text=True)


def test_a_gathered_commit_is_checked_out_from_its_files_alone(repository, tmp_path):
    """A mirror is copied file by file, without empty directories; the repository is out of reach then."""
    place, done = gather(tmp_path / "mirror", *repository)
    assert done.returncode == 0, done.stderr
    shutil.rmtree(repository[0])
    copy, commit = tmp_path / "copy", repository[1]
    for file in (path for path in place.rglob("*") if path.is_file()):
        (copy / file.relative_to(place)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy / file.relative_to(place))
    (tmp_path / "home").mkdir()
    git(tmp_path / "home", "init", "--quiet")
    git(tmp_path / "home", "fetch", "--quiet", "--depth", "1", f"file://{copy}", commit)
    git(tmp_path / "home", "checkout", "--quiet", commit)
    assert (tmp_path / "home/train.py").read_text() == "first"


def test_the_url_of_a_repository_is_not_in_the_mirror(repository, tmp_path):
    place, _ = gather(tmp_path / "mirror", *repository)
    files = [path for path in place.rglob("*") if path.is_file()]
    assert files and not any(b"token-of-the-url" in path.read_bytes() for path in files)


def test_a_commit_that_the_repository_does_not_have_is_not_gathered(repository, tmp_path):
    _, done = gather(tmp_path / "mirror", repository[0], "0" * 40)
    assert done.returncode != 0
