# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Records whose messages are their English sentences, for tests in which the words matter."""

from ansible.module_utils.scalebook.pages.catalogue import in_words as in_english
from ansible.module_utils.scalebook.read import record, step_log


def run_record(*arguments):
    """Return what read/record.py does."""
    return in_english(record.run_record(*arguments))


def log_record(*arguments):
    """Return what read/record.py does."""
    return in_english(record.log_record(*arguments))


def read_log(*arguments, **options):
    """Return what read/step_log.py does."""
    log = step_log.read_log(*arguments, **options)
    log.refusal, log.notes = in_english(log.refusal), in_english(log.notes)
    return log
