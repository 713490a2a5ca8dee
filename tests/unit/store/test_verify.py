# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""verify.yml reads the logs again, names numbers that they do not give, and who signed an archive."""

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import campaign_archive
import measured
import pytest
import results_verify
from ansible.module_utils.scalebook import workloads
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.store import manifest
from ansible.module_utils.scalebook.store import verify as verify_store
from ansible.module_utils.scalebook.store.source import open_source
from run_module import call_module

ROOT = Path(__file__).resolve().parents[3]
MEASURED = "h200x2-2026-11-25/torch_bert"
LOADED = workloads.load_workloads([str(ROOT / "roles")])
WORKLOADS = {name: each.as_data() for name, each in LOADED.items()}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Return a measured campaign as a directory, with its report."""
    top = tmp_path_factory.mktemp("original") / "night1"
    measured.unpack(MEASURED, top)
    (top / "report").mkdir()
    (top / "report/report.md").write_text("the report\n")
    return top


@pytest.fixture
def top(original, tmp_path):
    return shutil.copytree(original, tmp_path / "night1")


def verify(path, **more):
    return call_module(results_verify, path=str(path), workloads=WORKLOADS, **more)


def change(top, how):
    """Change the first record with `how`, and compute the manifest again, as anybody can."""
    file = min(top.glob("runs/*/*/result.json"))
    content = json.loads(file.read_text())
    how(content)
    file.write_text(json.dumps(content))
    (top / "manifest.json").unlink()
    source = open_source(top)
    statuses = {name.rpartition("/")[0]: "ok" for name in source.records()}
    made = manifest.extend(None, manifest.files_of(source), statuses).manifest
    (top / "manifest.json").write_text(json.dumps(made))
    return file.relative_to(top).as_posix()


def faster(content):
    node = content["nodes"][0]
    for key in ("times", "received"):
        node[key] = node[key] and [stamp / 4 for stamp in node[key]]


def test_the_logs_of_a_measured_campaign_give_its_records(top):
    assert "The logs of 6 runs give the numbers of the records." in verify(top)["display"]


@pytest.mark.parametrize("name", measured.campaigns())
def test_the_logs_in_an_archive_give_its_records(name):
    """Also where an earlier version wrote a list without values for what no log prints."""
    answer = verify(measured.FOLDER / name)
    assert answer["problems"] == [] and "All " in answer["display"]


def test_a_record_whose_stamps_are_not_those_of_its_log_is_named_with_both_numbers(top):
    file = change(top, faster)
    result = verify(top)
    assert {each["file"] for each in result["problems"]} == {file}
    assert result["problems"][0]["what"] == "recomputed"
    rates = (
        result["display"]
        .splitlines()[0]
        .split("the throughput is ")[1]
        .split(" (case")[0]
        .split(", by the logs ")
    )
    assert float(rates[0]) == pytest.approx(4 * float(rates[1]), rel=1e-5)
    assert "NODE1: received[1] is " in result["display"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (lambda content: content["nodes"][0].update(sha256="0" * 64), "NODE1: sha256 is 000"),
        (lambda content: content["nodes"][0]["loss"].update(last=0.5), "NODE1: loss is {"),
        (lambda content: content["case"].update(warmup=19), "case.warmup is 19, in plan.json 20"),
        (lambda content: content["nodes"][0]["steps"].pop(), "NODE1: it has 120 times of 119 steps"),
        (lambda content: content["telemetry"][0]["quantities"].clear() or content["telemetry"].append(
            {"node": "NODE2"}), "it has the telemetry of 2 nodes, by the files 1"),
        (lambda content: next(iter(content["telemetry"][0]["quantities"].values())).update(mean=7e7), "7e7"),
    ],
)  # fmt: skip
def test_what_the_logs_and_readings_do_not_give_is_named(top, how, said):
    change(top, how)
    assert said.replace("7e7", "'mean': 70000000.0") in verify(top)["display"]


def test_what_the_terminal_shows_has_the_language_that_was_asked_for(top):
    assert verify(top, report_language="zh")["display"].endswith("由 6 次运行的日志可得出记录中的数值。")
    change(top, faster)
    lines = verify(top, report_language="zh")["display"].splitlines()
    assert all("按日志则为" in line and line.endswith("第 1 次）") for line in lines), lines


def test_a_log_that_is_gone_is_named(top):
    min(top.glob("runs/*/*/NODE1.log")).unlink()
    display = verify(top)["display"]
    assert "NODE1.log is missing since it was reported" in display
    assert "status is ok, by the logs failed: NODE1.log is missing" in display


def of_log(**fields):
    return {"node": "NODE1", "steps": [1, 2], **fields}


@pytest.mark.parametrize(
    ("ours", "theirs", "code", "values"),
    [
        ({"bytes": 7}, {"bytes": 8}, "verify.field", {"field": "bytes", "ours": "7", "theirs": "8"}),
        (
            {"times": [1.0, 2.0]},
            {"times": [1.0, 3.0]},
            "verify.field",
            {"field": "times[1]", "ours": "2.0", "theirs": "3.0"},
        ),
        (
            {"times": [1.0]},
            {"times": [1.0, 3.0]},
            "verify.entries",
            {"field": "times", "ours": "1", "theirs": "2"},
        ),
    ],
)
def test_a_field_of_a_log_differs_by_its_first_value(monkeypatch, ours, theirs, code, values):
    monkeypatch.setattr(verify_store.throughput, "measure", lambda record: {"rate": 1.0})
    record, again = ({"status": "ok", "nodes": [of_log(**each)]} for each in (ours, theirs))
    assert verify_store.differences(record, again) == [message(code, node="NODE1", **values)]


def test_what_an_earlier_version_did_not_read_does_not_differ(monkeypatch):
    monkeypatch.setattr(verify_store.throughput, "measure", lambda record: {"rate": 1.0})
    record, again = ({"status": "ok", "nodes": [of_log(**each)]} for each in ({}, {"sha256": "a"}))
    assert verify_store.differences(record, again) == []


# Signatures


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Return a directory with the keys of alice and mallory, and alice's entry as allowed signer."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("alice", "mallory"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", folder / name], check=True
        )
    public = (folder / "alice.pub").read_text()
    (folder / "allowed").write_text(f'alice@example.org namespaces="scalebook" {public}')
    return folder


def pack(top, **more):
    result = call_module(campaign_archive, path=str(top), **more)
    assert "msg" not in result, result
    return Path(result["archive"])


def test_an_archive_that_nobody_signed_says_so(top):
    archive = pack(top)
    result = verify(archive)
    assert "Nobody signed it: there is no night1.tar.xz.sig." in result["display"]
    assert "无人签名：没有 night1.tar.xz.sig。" in verify(archive, report_language="zh")["display"]


def test_a_signed_archive_names_who_signed_it(top, keys):
    archive = pack(top, sign_key=str(keys / "alice"))
    display = verify(archive, allowed_signers=str(keys / "allowed"))["display"]
    assert 'Good "scalebook" signature for alice@example.org with ED25519 key SHA256:' in display


def test_without_a_list_of_signers_the_key_is_named(top, keys):
    display = verify(pack(top, sign_key=str(keys / "mallory")))["display"]
    assert 'Good "scalebook" signature with ED25519 key SHA256:' in display
    assert "Whose key that is, allowed_signers=FILE tells." in display


def test_an_archive_that_somebody_else_signed_is_refused(top, keys):
    archive = pack(top, sign_key=str(keys / "mallory"))
    message = verify(archive, allowed_signers=str(keys / "allowed"))["msg"]
    assert message.startswith(f"allowed_signers={keys / 'allowed'}: none of them signed {archive}")


def test_an_unsigned_archive_is_refused_where_signers_are_listed(top, keys):
    message = verify(pack(top), allowed_signers=str(keys / "allowed"))["msg"]
    assert "nobody signed" in message and "there is no night1.tar.xz.sig" in message


def test_a_forged_archive_with_sums_computed_again_does_not_have_the_signature(top, keys):
    archive = pack(top, sign_key=str(keys / "alice"))
    kept = archive.with_name("night1.tar.xz.sig").read_bytes()
    change(top, faster)
    archive = pack(top)
    assert not archive.with_name("night1.tar.xz.sig").exists()
    archive.with_name("night1.tar.xz.sig").write_bytes(kept)
    for more in ({}, {"allowed_signers": str(keys / "allowed")}):
        assert f"night1.tar.xz.sig is not a signature of {archive}" in verify(archive, **more)["msg"]


def test_the_same_archive_has_the_same_signature(top, keys):
    pack(top, sign_key=str(keys / "alice"))
    again = call_module(campaign_archive, path=str(top), sign_key=str(keys / "alice"))
    assert not again["changed"]


@pytest.mark.parametrize("key", ["nothing", "allowed"])
def test_what_is_no_key_is_refused_by_its_name(top, keys, key):
    result = call_module(campaign_archive, path=str(top), sign_key=str(keys / key))
    assert result["msg"].startswith(f"sign_key={keys / key}: ")


def test_a_key_with_a_passphrase_does_not_wait_for_one(top, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", tmp_path / "key"], check=True)
    result = call_module(campaign_archive, path=str(top), sign_key=str(tmp_path / "key"))
    assert "Fix: name a private key without a passphrase" in result["msg"]


def test_a_directory_has_no_signature(top, keys):
    message = verify(top, allowed_signers=str(keys / "allowed"))["msg"]
    assert message.endswith("is not an archive; only archives are signed")


# What an archive lacks


def without(archive, *names):
    """Write the archive again without these files."""
    with tarfile.open(archive) as opened:
        files = {member.name: opened.extractfile(member).read() for member in opened}
    with tarfile.open(archive, "w:xz") as opened:
        for name in files.keys() - {*names}:
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            opened.addfile(member, io.BytesIO(files[name]))


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["archive.json"], "The archive has no archive.json: whether"),
        (["archive.json", "manifest.json"], "The archive has no archive.json and no manifest.json: whether"),
    ],
)
def test_an_archive_without_checksums_says_so_in_its_report(top, names, said):
    from ansible.module_utils.scalebook.judge.results import build_results
    from ansible.module_utils.scalebook.report import terminal
    from ansible.module_utils.scalebook.store.load import load_campaign

    archive = pack(top)
    without(archive, *names)
    made = build_results(load_campaign(archive))
    assert made["notes"][0] == message("note.unsealed", lacking=names)
    assert said in terminal.display(made, "report.html")
