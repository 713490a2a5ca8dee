# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Parameters -> matrix -> cases -> which runs are left, and on which nodes they go."""
