# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Probes of the machines -> findings that would invalidate a measurement."""
