# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Four nodes in containers, for tests: what tests/cluster/up and tests/cluster/down are made of."""
