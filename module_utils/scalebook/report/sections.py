# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order of each of its forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ansible.module_utils.scalebook.pages.blocks import Block, Fold, Heading
from ansible.module_utils.scalebook.report import (
    arithmetic,
    earlier,
    excluded,
    largest_batch,
    method,
    only_published,
    provenance,
    published_rates,
    published_tables,
    runs,
    scaling,
    step_times,
    strong,
    usage,
)
from ansible.module_utils.scalebook.report.view import View

SECTIONS: Sequence[Callable[[View], Sequence[Block]]] = (
    scaling.weak,
    usage.bottlenecks,
    strong.section,
    largest_batch.section,
    earlier.section,
    published_tables.compared,
    published_rates.section,
    excluded.excluded,
    excluded.skipped,
    excluded.notes,
    usage.section,
)
"""What a reader of the results needs, in its order."""
DETAILS: Sequence[Callable[[View], Sequence[Block]]] = (
    step_times.section,
    arithmetic.flops,
    arithmetic.reported,
    runs.section,
    usage.courses,
    only_published.section,
    method.section,
    provenance.section,
)
"""What stands behind the results: a page has each folded."""


def blocks(view: View) -> list[Block]:
    """Return the blocks of the report below its first screen."""
    main = [block for section in SECTIONS for block in section(view)]
    return [*main, *(block for section in DETAILS for block in folded(section(view)))]


def folded(section: Sequence[Block]) -> list[Block]:
    """Return a section as a fold that its heading opens, for each heading of level 2."""
    folds: list[Block] = []
    own: list[Block] = []
    for block in section:
        if isinstance(block, Heading) and block.level == 2:
            own = []
            folds.append(Fold(block.text, own, id=block.id))
        else:
            own.append(block)
    return folds
