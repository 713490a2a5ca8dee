# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Files of this repository that are made from other files of it.

Each module has `files()`, which returns {path relative to the repository: text}.  scripts/pages writes them;
tests/unit/project/test_generated.py requires that they are current.
"""
