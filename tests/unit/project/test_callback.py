"""The terminal: one line per phase and run, messages as they are, every error once."""

import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import scalebook
import scalebook_progress
from ansible.module_utils.scalebook.contracts import message
from chinese import faults
from scalebook_progress import Progress, title

ROOT = Path(__file__).resolve().parents[3]


def run(number, name="a", repeat=1):
    case = {"workload": "tf2_bert", "model": "base", "name": name, "label": "2n1g", "bsz": 64}
    case |= {"dtype": "fp32", "xla": False}
    return {"case": case, "repeat": repeat, "number": number, "total": 4, "folder": "runs"}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (42.4, "0:42"), (725, "12:05"), (3723, "1:02:03")]
)
def test_the_clock_of_a_campaign_reads_as_people_write_it(seconds, text):
    assert scalebook_progress.clock(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.31, "0.3 s"), (42.4, "42 s"), (725, "12 min 5 s"), (3723, "1 h 2 min")]
)
def test_the_duration_of_a_phase_has_units(seconds, text):
    assert scalebook.duration(seconds) == text


def test_the_time_left_is_unknown_before_the_first_run():
    progress = Progress(0)
    progress.plan([run(1), run(2)], 0)
    assert progress.seconds_left() is None


def test_the_time_left_follows_from_runs_of_the_same_case():
    progress = Progress(0)
    progress.plan([run(1, "a"), run(2, "b"), run(3, "a", 2), run(4, "b", 2)], 0)
    progress.end("a", 1, 10, 12)
    progress.end("b", 1, 25, 42)
    assert progress.seconds_left() == 10 + 30


def test_a_run_that_is_repeated_is_part_of_the_time_left():
    progress = Progress(0)
    progress.plan([run(1, "a")], 0)
    progress.again(progress.end("a", 1, 10, 12))
    assert progress.seconds_left() == 10


def test_the_overhead_of_a_run_is_its_time_without_mpirun():
    progress = Progress(0)
    progress.plan([run(1), run(2, repeat=2)], 0)
    progress.end("a", 1, 8, 20)
    progress.end("a", 2, 8, 31)
    assert progress.overheads == [3]


def test_a_run_is_named_by_number_case_and_repeat():
    assert title(run(3, repeat=2)) == "[3/4] 2n1g b64 fp32 repeat 2"


def test_a_run_of_a_search_is_named_as_one():
    assert title({**run(3), "folder": "search"}) == "[largest batch, run 3 of at most 4] 2n1g b64 fp32"


def test_the_time_of_a_campaign_goes_on_after_a_search():
    progress = Progress(0)
    progress.plan([run(1)], 5)
    progress.end("a", 1, 10, 20)
    progress.plan([run(1, "b"), run(2, "b")], 21)
    assert (progress.began, progress.seconds_left()) == (5, 20)


def test_a_run_is_named_in_the_language_that_was_asked_for():
    assert title(run(3, repeat=2), language="zh") == "[3/4] 2n1g b64 fp32 第 2 次"
    assert title({**run(3), "folder": "search"}, language="zh") == (
        "[最大 batch，第 3 次运行，最多 4 次] 2n1g b64 fp32"
    )


class Result:
    """The result of a task, as Ansible gives it to callbacks."""

    def __init__(self, action, **values):
        self._task, self._result = Mock(action=action), values


def lines_of_a_campaign(language):
    """Return what is printed of a campaign with a run that counts and one that is measured again."""
    callback = scalebook_progress.CallbackModule()
    callback._display = Display()
    pending = [run(1), run(2, repeat=2)]
    callback.v2_runner_on_ok(Result("campaign_plan", pending=pending, search=[], report_language=language))
    made = {"case": pending[0]["case"], "job": None, "unit": "samples"}
    callback.v2_runner_on_ok(
        Result("bench_result", status="ok", rate=128.0, record={**made, "repeat": 1, "reason": None})
    )
    reason = message("reason.sockets", up=["mlx5_0"])
    record = {**made, "repeat": 2, "reason": reason}
    callback.v2_runner_on_ok(Result("bench_result", status="refused", record=record, again=True))
    return [re.sub(r"\d+:\d\d", "T", text) for text in callback._display.printed]


def test_the_lines_of_a_campaign_have_the_language_of_its_plan():
    first, second = lines_of_a_campaign("en")
    assert first == "[1/4] 2n1g b64 fp32 repeat 1: 128.00 samples/s, T elapsed"
    assert second.startswith("[2/4] 2n1g b64 fp32 repeat 2: refused: ")
    assert second.endswith("; repeated at the end, T elapsed, about T left")
    lines = lines_of_a_campaign("zh")
    assert lines[0] == "[1/4] 2n1g b64 fp32 第 1 次：128.00 样本/s，已用 T"
    assert lines[1].startswith("[2/4] 2n1g b64 fp32 第 2 次：被拒绝：")
    assert lines[1].endswith("；将在最后重测，已用 T，约剩 T")
    assert faults(lines) == []


@pytest.mark.parametrize("name", ["__parameters", "__report_parameters"])
def test_the_language_is_that_of_the_parameters_that_a_task_has_read(name):
    assert scalebook.language_of({"ansible_facts": {name: {"report_language": "zh"}}}) == "zh"
    assert scalebook.language_of({"ansible_facts": {"x": 1}}) is scalebook.language_of({}) is None


def test_the_line_of_a_phase_has_the_language_that_was_asked_for():
    phase = scalebook.Phase(None, "Install Open MPI", 0, closing=True)
    phase.changes, phase.failed = 3, ["NODE1"]
    assert phase.line(42) == "Install Open MPI: 42 s, 3 changed, failed on NODE1"
    assert phase.line(42, "zh") == "Install Open MPI：42 秒，3 处更改，失败：NODE1"


def test_the_last_words_and_fixes_are_known_in_every_language():
    assert scalebook.wording()("console.stopped").startswith(
        "Stopped. Start the same command again; bench.yml"
    )
    assert (
        scalebook.wording("zh")("console.stopped")
        == "已停止。再次执行同一条命令即可；bench.yml、provision.yml 和老化测试从中断处继续。"
    )
    for sign in scalebook.FIXES:
        fix = scalebook.with_fix(sign, "zh").partition("。解决办法：")[2]
        assert fix and faults([fix]) == []


def test_a_run_is_named_with_its_workload_if_there_are_several():
    models = {("tf2_bert", "base"), ("torch_bert", "base")}
    assert title(run(3), models) == "[3/4] tf2_bert 2n1g b64 fp32 repeat 1"


def test_a_run_is_named_with_its_model_if_its_workload_has_several():
    models = {("tf2_bert", "base"), ("tf2_bert", "large")}
    assert title(run(3), models) == "[3/4] base 2n1g b64 fp32 repeat 1"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"msg": "bsz=0: must be at least 1"}, "bsz=0: must be at least 1"),
        ({"msg": "non-zero return code", "rc": 2, "stderr": "one\nno such file"}, "rc 2: no such file"),
        ({"msg": "", "rc": 2, "stdout": "no space left"}, "rc 2: no space left"),
        (
            {
                "rc": 1,
                "stdout": "me is not in the sudoers file.\r\n",
                "stderr": "Shared connection to h closed.",
            },
            "rc 1: me is not in the sudoers file.",
        ),
        (
            {"msg": "MODULE FAILURE", "module_stderr": "Traceback\nOSError: full"},
            "MODULE FAILURE: OSError: full",
        ),
        ({}, "failed without a message; -v shows the result"),
    ],
)
def test_an_error_is_one_line(values, text):
    assert scalebook.message_of(values) == text


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202egnp.exe\u2028\r\ud800"


def test_control_characters_are_shown_as_text():
    assert scalebook.harmless(HOSTILE).isprintable()
    assert scalebook.harmless("\x1b[1;32mok") == r"\x1b[1;32mok"


def test_newlines_tabs_and_letters_of_all_languages_stay():
    assert scalebook.harmless("a\tb\r\nc 报告 ü «»") == "a\tb\nc 报告 ü «»"


def test_only_colors_that_ansible_prints_stay():
    diff = "\x1b[0;31m- a\x1b[0m \x1b[8mhidden"
    assert scalebook.harmless(diff, colors=True) == "\x1b[0;31m- a\x1b[0m \\x1b[8mhidden"


class Display:
    """What Ansible prints with."""

    def __init__(self):
        self.printed = []

    def display(self, text, **_options):
        self.printed.append(text)


def test_all_that_is_printed_is_harmless_once_the_callback_is_loaded():
    display = Display()
    scalebook.guard(display)
    scalebook.guard(display)
    display.display(f"[WARNING]: {HOSTILE}")
    assert [text.isprintable() for text in display.printed] == [True]


def test_no_token_is_printed_once_the_callback_is_loaded():
    display = Display()
    scalebook.guard(display)
    display.display('"target": "https://me:geheim@h/x", token=' + "hf_" + "a1B2" * 10)
    assert display.printed == ['"target": "https://***@h/x", token=***']


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ("me@h: Permission denied (publickey,password).", "ansible_ssh_private_key_file"),
        ("Host key verification failed.", "ssh-keyscan"),
        (
            "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @ Host key verification failed.",
            "ssh-keygen -R",
        ),
        ("Task failed: Missing sudo password", "--ask-become-pass"),
        ("rc 1: me is not in the sudoers file.", "ansible_user: root"),
        ("ssh: connect to host 10.0.0.1 port 22: Connection refused", "ansible_port"),
        ("cannot write the program into /opt/scalebook/work/bin: Permission denied", "run provision.yml"),
        ("cannot take or give back the lock /srv/scalebook.lock: Permission denied", "mode 1777"),
    ],
)
def test_what_ssh_and_sudo_report_has_a_fix(message, fix):
    assert fix in scalebook.with_fix(message).partition(". Fix: ")[2]


def test_a_message_with_a_fix_of_its_own_and_other_messages_stay_as_they_are():
    for text in ("Connection refused. Fix: wait", "bsz=0: must be at least 1"):
        assert scalebook.with_fix(text) == text


def interrupted(number):
    """Return what a process prints that loads the callback and gets a signal."""
    script = (
        "import os, signal, scalebook\n"
        "scalebook.tell_when_stopped(lambda: print('the last line', flush=True), lambda: None)\n"
        "try: os.kill(os.getpid(), NUMBER)\n"
        "except KeyboardInterrupt: print('User interrupted execution', flush=True)\n"
    )
    # As Ansible does, which ends its children first.
    before = "import signal; signal.signal(signal.SIGTERM, lambda *_: exit(1))\n"
    # What a shell starts in the background ignores SIGINT.
    before += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", before + script.replace("NUMBER", f"signal.{number}")]
    folder = ROOT / "callback_plugins"
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout


def test_the_last_line_is_said_after_an_interruption():
    assert interrupted("SIGINT").splitlines() == ["User interrupted execution", "the last line"]


def test_the_last_line_is_said_after_a_termination():
    assert interrupted("SIGTERM").splitlines() == ["the last line"]


@pytest.mark.parametrize("path", sorted((ROOT / "callback_plugins").glob("*.py")), ids=lambda path: path.stem)
def test_a_callback_can_be_loaded_before_ansible_knows_the_module_utils_of_the_project(path):
    command = [sys.executable, "-c", f"import {path.stem}"]
    subprocess.run(command, cwd=path.parent, env={"PYTHONPATH": ""}, check=True)


MODULES = ROOT / "module_utils/scalebook/node"


@pytest.mark.parametrize("sign", [sign for sign in scalebook.FIXES if sign.startswith("cannot")])
def test_a_fix_is_for_a_message_that_a_module_has(sign):
    assert any(f'"{sign} %s' in module.read_text() for module in MODULES.glob("*.py"))
