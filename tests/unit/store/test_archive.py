# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A packed campaign gives the same report, is refused when a byte has changed, and never holds a secret."""

import io
import shutil
import tarfile
from pathlib import Path

import campaign_archive
import pytest
import results_verify
import speedup_report
from ansible.module_utils.scalebook.store import archive
from report_records import campaign, case, dlperf_records, record
from run_module import call_module

TEMPLATES = str(Path(__file__).resolve().parents[3] / "templates")


def call(module, path, **params):
    return call_module(module, path=str(path), **params)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Return a directory with a campaign that has a report, and with its archive."""
    top = campaign(tmp_path_factory.mktemp("made") / "night1", dlperf_records())
    assert "msg" not in call(speedup_report, top, templates=TEMPLATES)
    archive = Path(call(campaign_archive, top)["archive"])
    assert archive.parent == top.parent
    return top.parent


@pytest.fixture
def reported(made, tmp_path):
    """Return the directory of a campaign with a report."""
    return shutil.copytree(made / "night1", tmp_path / "night1")


@pytest.fixture
def packed(made, tmp_path):
    """Return an archive that lies alone in a directory."""
    (archive,) = made.glob("*.tar.xz")
    return Path(shutil.copy(archive, tmp_path))


def log(top, text):
    """Put a log into the campaign before its first report."""
    path = next(top.glob("runs/*/1")) / "NODE1.log"
    path.write_text(text)
    return path.relative_to(top).as_posix()


def repacked(packed, change):
    """Write the archive again with `change` made to {name: content}."""
    with tarfile.open(packed) as opened:
        files = {member.name: opened.extractfile(member).read() for member in opened}
    change(files)
    with tarfile.open(packed, "w:xz") as opened:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))


def test_the_archive_gives_the_same_report_elsewhere(reported, packed):
    result = call(speedup_report, packed, templates=TEMPLATES)
    there = packed.parent / "night1" / "report"
    assert result["report"] == str(there / "report.html")
    for path in (reported / "report").iterdir():
        if path.name != "report.html":  # its links lead into the campaign, which is packed there
            assert (there / path.name).read_bytes() == path.read_bytes()


def test_the_archive_is_verified_without_unpacking_it(packed):
    assert "files are what was reported" in call(results_verify, packed)["display"]


def test_an_archive_beside_its_own_campaign_is_reported(reported, packed):
    assert "msg" not in call(speedup_report, packed, templates=TEMPLATES)
    assert reported.parent == packed.parent


def test_an_archive_beside_its_own_runs_packed_is_reported(reported, packed):
    with tarfile.open(reported / "runs.tar.xz", "w:xz") as opened:
        for name in ("plan.json", "manifest.json", "runs"):
            opened.add(reported / name, name)
    shutil.rmtree(reported / "runs")
    assert "msg" not in call(speedup_report, packed, templates=TEMPLATES)


def test_an_archive_does_not_replace_the_report_of_another_campaign_of_its_name(packed):
    other = campaign(packed.parent / "night1", [record(case(), repeat) for repeat in (1, 2, 3)])
    call(speedup_report, other, templates=TEMPLATES)
    before = (other / "report" / "results.json").read_bytes()
    message = call(speedup_report, packed, templates=TEMPLATES)["msg"]
    assert message.startswith(f"{packed}: its report goes into {other}, which holds another campaign: ")
    assert " more files differ. " in message
    assert message.endswith("Fix: move the archive into a directory of its own")
    assert (other / "report" / "results.json").read_bytes() == before
    # Nothing is written then.
    assert "files are what was reported" in call(results_verify, packed)["display"]


def test_an_archive_does_not_report_into_another_plan_of_its_name(packed):
    (packed.parent / "night1").mkdir()
    (packed.parent / "night1" / "plan.json").write_text("{}")
    assert "which holds another campaign" in call(speedup_report, packed, templates=TEMPLATES)["msg"]


def test_the_same_campaign_makes_the_same_archive(reported):
    assert archive.pack(reported) == archive.pack(reported)


@pytest.mark.parametrize("name", ["report/results.csv", "plan.json", "manifest.json"])
@pytest.mark.parametrize("module", [results_verify, speedup_report], ids=["verify", "report"])
def test_a_changed_byte_is_refused_by_name(packed, name, module):
    repacked(packed, lambda files: files.update({name: files[name] + b" "}))
    params = {"templates": TEMPLATES} if module is speedup_report else {}
    assert call(module, packed, **params)["msg"].endswith(f"has been changed since it was packed: {name}")


def test_a_missing_file_is_refused_by_name(packed):
    repacked(packed, lambda files: files.pop("report/report.md"))
    assert call(results_verify, packed)["msg"].endswith("report/report.md")


def test_a_truncated_archive_is_refused(packed):
    packed.write_bytes(packed.read_bytes()[:-20])
    assert "cannot be read" in call(results_verify, packed)["msg"]


@pytest.mark.parametrize(
    ("secret", "what"),
    [
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
        ("fetch https://me:geheim@mirror.example/simple", "a password in a URL"),
        ("token " + "ghp_" + "a1B2" * 9, "a token"),
        ("Authorization: Bearer abcdefgh12345678", "an authorization header"),
        ("db_password = correct-horse", "a password"),
    ],
)
def test_a_secret_is_refused_with_its_file_and_line_and_is_not_printed(tmp_path, secret, what):
    top = campaign(tmp_path / "night1", dlperf_records())
    name = log(top, f"first line\n{secret}\n")
    call(speedup_report, top, templates=TEMPLATES)
    message = call(campaign_archive, top)["msg"]
    assert f"{name}, line 2: {what}" in message
    assert secret not in message
    assert not (tmp_path / "night1.tar.xz").exists()


@pytest.mark.parametrize(
    "text", ["tokens=12345678", "https://***:***@mirror.example", "password=***", "steps 1:20@8"]
)
def test_ordinary_lines_are_no_secrets(text):
    assert list(archive.secrets_of("NODE1.log", text.encode())) == []


def test_a_campaign_without_a_report_is_not_packed(tmp_path):
    top = campaign(tmp_path / "night1", dlperf_records())
    assert call(campaign_archive, top)["msg"] == (
        f"The campaign {top} has no report to pack. Fix: ansible-playbook report.yml -e campaign_dir={top}"
    )


def test_a_packed_campaign_is_not_packed_again(packed):
    said = f"The campaign {packed} is packed already. Fix: give its directory, or archive=false"
    assert call(campaign_archive, packed)["msg"] == said


def test_a_campaign_that_was_changed_after_its_report_is_not_packed(reported):
    record = next(reported.glob("runs/*/1/result.json"))
    record.write_text(record.read_text() + " ")
    assert "is changed since it was reported" in call(campaign_archive, reported)["msg"]
