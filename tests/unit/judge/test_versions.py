# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The version of a framework's own library is data, also where an earlier version wrote it as text."""

import pytest
from ansible.module_utils.scalebook.contracts import message
from ansible.module_utils.scalebook.judge.versions import version_of
from ansible.module_utils.scalebook.pages.catalogue import sentence

BOTH = message("report.system-and-own", version="2.28.3-1+cuda13.0", own="2.25.1")


@pytest.mark.parametrize(
    ("recorded", "said"),
    [
        ("2.7.3-1+cuda10.2", "2.7.3-1+cuda10.2"),
        (BOTH, BOTH),
        ("2.28.3-1+cuda13.0, 2.25.1 of the framework's own", BOTH),
        ("2.25.1 of the framework's own", message("report.own", version="2.25.1")),
        (13, "13"),
    ],
)
def test_a_version_is_text_or_a_message(recorded, said):
    assert version_of(recorded) == said


def test_the_message_says_what_earlier_versions_wrote():
    assert sentence(BOTH) == "2.28.3-1+cuda13.0, 2.25.1 of the framework's own"
    assert sentence(BOTH, "zh") == "系统 2.28.3-1+cuda13.0，框架自带 2.25.1"
