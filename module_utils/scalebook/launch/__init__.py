# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Case -> node jobs, the command that starts them, and what became of it."""
