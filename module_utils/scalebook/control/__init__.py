# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What modules of the control node do that takes several of the other packages."""
