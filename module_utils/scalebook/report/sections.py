# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order of each of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible.module_utils.scalebook.pages.blocks import Block
from ansible.module_utils.scalebook.report import (
    arithmetic,
    earlier,
    largest_batch,
    method,
    provenance,
    published_tables,
    runs,
    scaling,
    usage,
)
from ansible.module_utils.scalebook.report.view import View

ORDER: Mapping[str, Sequence[Callable[[View], Sequence[Block]]]] = {
    "md": (
        *(scaling.weak, largest_batch.section, runs.step_times, arithmetic.flops, usage.section, runs.valid),
        *(arithmetic.reported, scaling.strong, earlier.section, published_tables.compared),
        *(published_tables.alone, runs.excluded, runs.skipped, runs.notes, method.section),
        provenance.section,
    ),
    "html": (
        *(scaling.weak, scaling.strong, largest_batch.section, arithmetic.flops, arithmetic.reported),
        *(earlier.section, published_tables.compared, published_tables.alone, runs.excluded, runs.skipped),
        *(runs.notes, runs.step_times, runs.valid, usage.section, method.section, provenance.section),
    ),
}
"""Markdown is read from the top, a page from its table of contents."""


def blocks(view: View, form: str) -> list[Block]:
    """Return the blocks of a form of the report."""
    return [block for section in ORDER[form] for block in section(view)]
