# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sentences of messages in English, by code; catalogue.py says what stands in braces."""

from __future__ import annotations

MESSAGES = {
    # -- join: what joins the parts of a list --------------------------------------------------------
    "join.list": "; ",
    "join.comma": ", ",
    "join.and": " and ",
    # -- flag: flags of rows: judge/flags.py ---------------------------------------------------------
    #
    # -- note: notes of a report ---------------------------------------------------------------------
    #
    # -- bottleneck: bottlenecks and advice: judge/bottleneck.py -------------------------------------
    #
    # -- quantity: what telemetry measures: quantities.py --------------------------------------------
    #
    # -- reason: why runs do not count: read/, judge/ ------------------------------------------------
    #
    # -- skipped: why cases were not run: plan/ ------------------------------------------------------
    #
    # -- preflight: findings of preflight ------------------------------------------------------------
    #
    # -- mfu: peaks and operations -------------------------------------------------------------------
    #
    # -- compare: comparisons with earlier and published results -------------------------------------
    #
    # -- report: headings and texts of reports -------------------------------------------------------
    #
    # -- index: the page over all campaigns ----------------------------------------------------------
    #
    # -- microbench: micro-benchmarks ----------------------------------------------------------------
    #
    # -- evaluation: the evaluation ------------------------------------------------------------------
    #
}
