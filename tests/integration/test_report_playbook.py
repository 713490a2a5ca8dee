# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The commands that need no cluster, from what a user types to the files they leave, in ansible-runner."""

import json
import os
import shutil
import sys
from pathlib import Path

import ansible_runner
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit"))

import measured  # noqa: E402
from dlperf_logs import write_tree  # noqa: E402
from report_records import campaign, case, record  # noqa: E402

COMMANDS = ("report.yml", "import.yml", "verify.yml", "index.yml", "share.yml", "claim.yml")
PARTS = (
    *("ansible.cfg", *COMMANDS, "data", "library", "module_utils", "playbooks"),
    *("action_plugins", "filter_plugins", "lookup_plugins"),
    *("roles", "templates"),
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Return a checkout of the parts a report needs: results/ of the real one is not ours to fill."""
    root = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, root / part, symlinks=True)
        else:
            shutil.copy(source, root / part)
    (root / "inventory" / "local").mkdir(parents=True)
    (root / "inventory" / "local" / "hosts.yml").write_text("all: {hosts: {}}\n")
    return root


class Played:
    """What became of one ansible-playbook."""

    def __init__(self, runner):
        self.rc, self.stats = runner.rc, runner.stats
        self.results = [
            (event["event_data"].get("task"), event["event"], event["event_data"].get("res") or {})
            for event in runner.events
            if event["event"] in ("runner_on_ok", "runner_on_failed")
        ]
        self.last = self.results[-1][2] if self.results else {}
        written = [res for _, _, res in self.results if "report" in res]
        self.written = written[-1] if written else {}
        failures = [res.get("msg", "") for _, kind, res in self.results if kind == "runner_on_failed"]
        self.failure = failures[-1] if failures else None


@pytest.fixture
def play(checkout, tmp_path):
    """Return a function that runs a playbook with extra variables, the user standing in `here`."""

    def call(extra="", here=tmp_path, check=False, playbook="report.yml"):
        private = tmp_path / "runner"
        private.mkdir(exist_ok=True)
        environment = {
            "ANSIBLE_CONFIG": str(checkout / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "default",
            # The ansible-playbook of this very Python, whether or not its environment is activated.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        runner = ansible_runner.run(
            private_data_dir=str(private),
            # Where ansible-runner stands.
            project_dir=str(here),
            playbook=str(checkout / playbook),
            cmdline=f'-e "{extra}"' + (" --check" if check else "") if extra or check else None,
            envvars=environment,
            quiet=True,
        )
        return Played(runner)

    return call


@pytest.fixture
def play_import(play):
    """Return a function that runs import.yml."""
    return lambda extra, **more: play(extra, playbook="import.yml", **more)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """Return the directory of DLPerf's 30 logs."""
    return write_tree(tmp_path_factory.mktemp("logs"))


def test_dlperfs_logs_come_out_as_dlperfs_result(play_import, logs, tmp_path):
    # A relative path, with a slash at the end, as people type it.
    (tmp_path / "bz64").symlink_to(logs)
    played = play_import("logs=bz64/ workload=tf2_bert out=result compare=dlperf")
    assert played.failure is None
    assert played.stats["failures"] == {}
    content = json.loads((tmp_path / "result" / "report" / "bz64_result.json").read_text())
    assert {label: entry["speedup"] for label, entry in content["bert"].items()} == {
        "1n1g": 1.0,
        "1n2g": 1.81,
        "1n4g": 3.56,
        "1n8g": 7.13,
        "2n8g": 10.97,
        "4n8g": 19.86,
    }
    assert content["bert"]["1n1g"]["average_speed"] == 113.17
    assert played.written["display"].splitlines()[-1] == f"Report: {tmp_path}/result/report/report.html"
    again = play_import("logs=bz64/ workload=tf2_bert out=result compare=dlperf")
    assert again.stats["changed"] == {}


def test_check_mode_of_an_import_writes_nothing(play_import, logs, tmp_path):
    played = play_import(f"logs={logs} workload=tf2_bert out=result", check=True)
    assert played.failure is None
    assert not (tmp_path / "result").exists()
    assert played.last["msg"] == [f"30 of 30 logs in {logs} are valid; nothing was written"]


def test_check_mode_of_an_import_says_why_a_log_is_not_valid(play_import, logs, tmp_path):
    some = tmp_path / "some"
    for name in ("1n1g", "1n2g"):
        shutil.copytree(logs / name, some / name)
    cut = sorted((some / "1n2g").iterdir())[0]
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-60]))
    lines = play_import(f"logs={some} workload=tf2_bert out=result", check=True).last["msg"]
    assert lines[0] == f"9 of 10 logs in {some} are valid; nothing was written"
    assert len(lines) == 2
    assert lines[1] == f"some/1n2g/{cut.name} stops at step 62, step 120 is required"


def test_what_the_names_do_not_tell_can_be_said(play_import, logs, tmp_path):
    assert play_import(f"logs={logs} workload=tf2_bert out=result xla=true").failure is None
    (group,) = json.loads((tmp_path / "result" / "report" / "results.json").read_text())["groups"]
    assert group["xla"] is True


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (
            "logs={logs} workload=tf3_bert out=result",
            "workload=tf3_bert: allowed are bing_bert",
        ),
        ("logs={logs} out=result", "workload=: must be the workload that wrote the logs, one of"),
        ("logs={logs} workload=tf2_bert", "out is not set: it must name a directory"),
        (
            "logs=nowhere workload=tf2_bert out=result",
            "logs=nowhere: {here}/nowhere does not exist; it must be",
        ),
        ("logs={logs} workload=tf2_bert out={logs}/x", "out={logs}/x: is in the directory of the logs"),
        ("logs={here} workload=tf2_bert out=../r", "no log below {here}"),
        ("workload=tf2_bert out=../r", "logs is not set: it must name the directory"),
        ("logs={logs} workload=tf2_bert out=../r campaign=x", "campaign: import.yml has no such parameter"),
    ],
)
def test_a_wrong_value_of_an_import_is_named_in_one_sentence(play_import, logs, tmp_path, extra, said):
    refused(play_import, logs, tmp_path, extra, said)


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("compare=mlperf", "compare=mlperf: allowed are dlperf, published"),
        ("logs={logs} workload=tf2_bert out=../r", "logs: use ansible-playbook import.yml"),
        ("campaign=last-night", "There is no campaign with runs in"),
        ("campaign_dir=nowhere", "campaign_dir=nowhere: {here}/nowhere does not exist"),
        ("campaign_dir={here}", "campaign_dir={here}: is not a campaign or an import"),
    ],
)
def test_a_wrong_value_is_named_in_one_sentence(play, logs, tmp_path, extra, said):
    refused(play, logs, tmp_path, extra, said)


def refused(play, logs, tmp_path, extra, said):
    here = tmp_path / "here"
    here.mkdir()
    names = {"logs": logs, "here": here}
    played = play(extra.format(**names), here=here)
    assert played.failure is not None
    assert played.failure.startswith(said.format(**names))
    assert list(here.iterdir()) == []


@pytest.fixture
def campaigns(checkout):
    """Lay out two campaigns below results/, `new` after `old`."""
    for age, name in enumerate(("new", "old")):
        top = campaign(checkout / "results" / name, [record(case(), i) for i in (1, 2, 3)], campaign=name)
        when = (top / "plan.json").stat().st_mtime - 60 * age
        os.utime(top / "plan.json", (when, when))
    yield checkout / "results"
    shutil.rmtree(checkout / "results")


def test_without_a_name_the_newest_campaign_is_reported(play, campaigns):
    played = play()
    assert played.failure is None
    assert played.written["report"] == f"{campaigns}/new/report/report.html"
    assert (campaigns / "new" / "report" / "tf2_bert_base_bz64_result.json").exists()


def test_a_campaign_is_reported_by_name(play, campaigns):
    assert play("campaign=old").written["report"] == f"{campaigns}/old/report/report.html"


def test_a_campaign_is_packed_with_its_report(play, campaigns):
    assert "has no report to pack" in play("campaign=old", playbook="share.yml").failure
    assert play("campaign=old").failure is None
    assert play("campaign=old", playbook="share.yml").failure is None
    assert (campaigns / "old.tar.xz").exists()


def test_results_that_could_not_be_pushed_say_why(play, campaigns, tmp_path):
    push = f"campaign=old archive=false push=wandb push_to={tmp_path}/wandb"
    assert "has no results.json. Fix: " in play(push, playbook="share.yml").failure


def test_check_mode_of_an_archive_says_that_nothing_is_packed(play, campaigns):
    assert play("campaign=old").failure is None
    played = play("campaign=old", check=True, playbook="share.yml")
    said = [res["msg"] for _, _, res in played.results if "old.tar.xz" in str(res.get("msg"))]
    assert len(said) == 1
    assert said[0].startswith(f"Would be packed into {campaigns}/old.tar.xz, ")
    assert not (campaigns / "old.tar.xz").exists()


def test_check_mode_of_a_campaign_shows_the_table_and_writes_nothing(play, campaigns):
    played = play("campaign=old", check=True)
    assert "100.0" in played.written["table"]
    assert not (campaigns / "old" / "report").exists()


def test_a_newer_campaign_without_runs_is_not_chosen(play, campaigns):
    (campaigns / "planned").mkdir()
    shutil.copy(campaigns / "new" / "plan.json", campaigns / "planned" / "plan.json")
    played = play()
    assert played.written["report"] == f"{campaigns}/new/report/report.html"
    chosen = "The newest campaign is new. Others: -e campaign=old"
    assert chosen in [res.get("msg") for _, _, res in played.results]
    assert play("campaign=planned").failure == (
        f"campaign=planned: has no runs yet; campaigns with runs are new, old in {campaigns}"
    )


def test_a_baseline_without_a_common_case_is_named_with_what_differs(play, campaigns):
    campaign(campaigns / "other", [record(case(bsz=32))])
    assert play("campaign=new baseline=other").failure == (
        f"baseline={campaigns}/other: has no case in common with this campaign: bsz is 64 here and 32 there"
    )


def test_an_unknown_campaign_is_answered_with_those_there_are(play, campaigns):
    assert play("campaign=older").failure == f"campaign=older: must be one of new, old in {campaigns}"


def test_the_directory_of_the_campaigns_can_be_another(play, campaigns, tmp_path):
    here = tmp_path / "here"
    shutil.copytree(campaigns / "old", here / "volume" / "night")
    place = "campaign_results=volume"
    assert play(place, here=here).written["report"] == f"{here}/volume/night/report/report.html"
    assert play(f"{place} campaign=night baseline=night", here=here).failure is None
    assert play(f"{place} campaign=old", here=here).failure == (
        f"campaign=old: must be one of night in {here}/volume"
    )
    assert play(f"{place} baseline=old", here=here).failure.endswith(f", or one of night in {here}/volume")
    assert play(place, here=here, playbook="index.yml").failure is None
    assert (here / "volume" / "index.html").exists()
    assert "in nowhere" in play("campaign_results=nowhere").failure.replace(f"{tmp_path}/", "")


HANDS_OVER = """
- hosts: localhost
  gather_facts: false
  tasks: [{ansible.builtin.set_fact: {campaign_dir: "%s"}}]
- ansible.builtin.import_playbook: playbooks/report.yml
  vars: {playbook: bench}
"""


def test_the_campaign_that_bench_yml_hands_over_goes_before_anything_else(play, checkout, campaigns):
    (checkout / "handed.yml").write_text(HANDS_OVER % (campaigns / "old"))
    played = play("campaign=new window=7 workload=tf2_bert baseline=new", playbook="handed.yml")
    assert played.written["report"].startswith(f"{campaigns}/old/")


@pytest.mark.parametrize(
    "extra",
    ["campaign=new window=7", "campaign=new campaign_dir=x", "index=true", "verify=true archive=true"],
)
def test_what_a_report_would_not_use_is_refused(play, campaigns, extra):
    assert extra.split()[-1].partition("=")[0] in play(extra).failure
    assert [*campaigns.glob("*/report"), *campaigns.glob("*.html")] == []


@pytest.fixture
def slower(campaigns):
    """Make every run of `new` 6 % slower than those of `old`, which has other runs beside."""
    shutil.rmtree(campaigns / "new")
    records = [record(case(), i, 94.0 + i / 10) for i in (1, 2, 3)]
    campaign(campaigns / "new", records, campaign="new")
    return campaigns


@pytest.mark.parametrize("named", ["old", "{results}/old", "{results}/old/report/results.json"])
def test_a_regression_is_shown_and_fails(play, slower, named):
    assert play("campaign=old").failure is None
    name = named.format(results=slower)
    played = play(f"campaign=new baseline={name}")
    assert played.failure == f"1 row slower than {name} by more than 3%; see the report"
    assert "Comparison with old" in (slower / "new" / "report" / "report.md").read_text()
    assert any("slower" in res.get("display", "") for _, _, res in played.results)


def test_a_larger_limit_lets_a_slowdown_pass(play, slower):
    assert play("campaign=new baseline=old max_regression=10%").failure is None


def test_the_same_campaign_again_is_no_regression(play, campaigns):
    assert play("campaign=new baseline=old").failure is None


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (
            "campaign=new baseline=nowhere",
            "baseline=nowhere: must be the path of a results.json, a campaign or a runs.tar.xz, or one of",
        ),
        ("campaign=new baseline=old max_regression=lots", "max_regression=lots: "),
    ],
)
def test_what_cannot_be_compared_is_said(play, campaigns, extra, said):
    assert play(extra).failure.startswith(said)


def test_what_was_not_reported_cannot_be_verified(play, campaigns):
    said = f"The campaign {campaigns}/new has no manifest.json to verify with. Fix: "
    assert play("campaign=new", playbook="verify.yml").failure.startswith(said)


def test_one_changed_byte_fails_the_verification(play, campaigns):
    measured.unpack("h200x2-2026-11-22/ddp", campaigns / "ddp")
    assert play("campaign=ddp").failure is None
    assert play("campaign=ddp", playbook="verify.yml").failure is None
    [log] = (campaigns / "ddp").glob("runs/*/1/NODE1.log")
    log.write_bytes(log.read_bytes() + b"\n")
    name = log.parents[1].name
    assert play("campaign=ddp", playbook="verify.yml").failure.startswith(
        f"runs/{name}/1/NODE1.log has been changed since it was reported (case {name}, repeat 1)"
    )


CLAIM = "model=llama3-8b seq=8192 gpu=H100 gpus=8 dtype=fp8"


def test_a_claim_is_judged_from_its_numbers_alone(play):
    played = play(f"{CLAIM} tokens_per_second=14451", playbook="claim.yml")
    assert played.failure is None
    assert "MFU 42.3 % of 1978.9 TFLOP/s, the dense fp8 peak" in " ".join(played.last["msg"])


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        (CLAIM, "tokens_per_second: not given; a claim has all of these"),
        (
            f"{CLAIM.replace('llama3', 'llama2')} tokens_per_second=1",
            "model=llama2-8b: allowed are",
        ),
    ],
)
def test_a_claim_that_cannot_be_judged_has_the_fix(play, extra, problem):
    assert play(extra, playbook="claim.yml").failure.startswith(problem)
