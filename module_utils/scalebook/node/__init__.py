# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the modules of the nodes do: Python 3.6 and its standard library."""
