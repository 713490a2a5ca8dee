# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order of each of its forms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ansible.module_utils.scalebook.pages.blocks import Block
from ansible.module_utils.scalebook.report import (
    arithmetic,
    earlier,
    excluded,
    largest_batch,
    method,
    only_published,
    provenance,
    published_tables,
    runs,
    scaling,
    step_times,
    strong,
    usage,
)
from ansible.module_utils.scalebook.report.view import View

SECTIONS: Mapping[str, Callable[[View], Sequence[Block]]] = {
    "weak": scaling.weak,
    "strong": strong.section,
    "largest_batch": largest_batch.section,
    "steps": step_times.section,
    "flops": arithmetic.flops,
    "usage": usage.section,
    "runs": runs.section,
    "reported": arithmetic.reported,
    "earlier": earlier.section,
    "published": published_tables.compared,
    "only_published": only_published.section,
    "excluded": excluded.excluded,
    "skipped": excluded.skipped,
    "notes": excluded.notes,
    "method": method.section,
    "environment": provenance.section,
}
ORDER = {
    "md": "weak largest_batch steps flops usage runs reported strong earlier published only_published "
    "excluded skipped notes method environment",
    "html": "weak strong largest_batch flops reported earlier published only_published excluded skipped "
    "notes steps runs usage method environment",
}
"""Markdown is read from the top, a page from its table of contents."""


def blocks(view: View, form: str) -> list[Block]:
    """Return the blocks of a form of the report."""
    return [block for name in ORDER[form].split() for block in SECTIONS[name](view)]
