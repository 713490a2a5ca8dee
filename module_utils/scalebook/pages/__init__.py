# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Documents: blocks, catalogues of every language, and a renderer for each form."""
