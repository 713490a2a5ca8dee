# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Campaigns on disk: loading, archives, manifests, and exports to other programs."""
