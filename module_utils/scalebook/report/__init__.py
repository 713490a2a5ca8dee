# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Result records -> tables, charts and files of a report."""
