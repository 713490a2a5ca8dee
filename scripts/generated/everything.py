# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""All generated files together."""

from __future__ import annotations

from generated import architecture, bottleneck, contracts, report, roles, schemas, workload


def files() -> dict[str, str]:
    """Return {path relative to the repository: text} of every generated file."""
    return {
        **roles.files(),
        **report.files(),
        **contracts.files(),
        **schemas.files(),
        **workload.files(),
        **architecture.files(),
        **bottleneck.files(),
    }
