"""Make module_utils importable as Ansible sees it, and let no skip pass for a test in CI."""

import collections
import os
import sys
from pathlib import Path

import ansible.module_utils
import hypothesis
import pytest

# The time that one example takes is the machine's, not the code's: a busy one would fail tests.
hypothesis.settings.register_profile("scalebook", deadline=None)
hypothesis.settings.load_profile("scalebook")

ROOT = Path(__file__).resolve().parent.parent
ansible.module_utils.__path__.append(str(ROOT / "module_utils"))
sys.path[:0] = [str(ROOT / "library"), *(str(path) for path in sorted(ROOT.glob("roles/*/library")))]
sys.path.insert(0, str(ROOT / "filter_plugins"))
sys.path.insert(0, str(ROOT / "callback_plugins"))

# What root and Debian packages cannot make possible; every other skip fails where CI=true.
EXCUSES = ("gpu:", "python3.6:")


def _refuse_skip(report):
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(EXCUSES):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not take for an answer: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _refuse_skip((yield))


def pytest_terminal_summary(terminalreporter, config):
    """Print the slowest files below the slowest tests, when --durations asks for those."""
    if not config.option.durations:
        return
    seconds = collections.Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                seconds[report.nodeid.split("::")[0]] += report.duration
    terminalreporter.section(f"slowest {config.option.durations} files")
    for name, total in seconds.most_common(config.option.durations):
        terminalreporter.line(f"{total:.0f} s {name}")
