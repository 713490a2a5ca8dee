# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Results of campaigns -> an evaluation: criteria, time and cost, the best value, the document."""
