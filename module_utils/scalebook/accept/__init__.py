# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measurements of parts -> verdicts on them, the cause of slow links, and what to take out."""
