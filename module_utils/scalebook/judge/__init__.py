# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Records become rows, flags and judgements: numbers and messages, in no language."""
