# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Logs -> result records."""
