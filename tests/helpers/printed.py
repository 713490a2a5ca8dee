# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a form of the report prints in the cells of tables."""

from ansible.module_utils.scalebook.pages import cells
from ansible.module_utils.scalebook.pages.blocks import Table, meant_for
from ansible.module_utils.scalebook.pages.wording import ENGLISH


def rows(blocks, form="md", wording=ENGLISH):
    """Return each row of the tables among blocks, {key of the column: text}."""
    return [
        {column.key: cells.text_of(row, column, wording) for column in meant_for(form, table.columns)}
        for table in blocks
        if isinstance(table, Table)
        for row in table.rows
    ]
