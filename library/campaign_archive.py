#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A campaign -> one file; see DOCUMENTATION."""

from __future__ import annotations

DOCUMENTATION = r"""
module: campaign_archive
short_description: Pack a campaign into one file
description:
  - Writes C(<campaign>.tar.xz) next to the campaign, with its plan, provenance, manifest, records, logs and
    report, and the checksum of each.
  - Refuses a campaign in which something looks like a secret, and names the file and line.
  - Runs on the control node.
options:
  path:
    description: Directory of one campaign or import that has a report.
    type: path
    required: true
  sign_key:
    description:
      - A private key of SSH without a passphrase, or the C(.pub) of one that ssh-agent holds. The archive is
        signed with it, into C(<campaign>.tar.xz.sig).
    type: path
attributes:
  check_mode:
    support: full
    description: Packs and searches, and writes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Pack a campaign
  campaign_archive:
    path: "{{ lookup('scalebook_directory', 'work') }}/results/night1"
"""

RETURN = r"""
archive:
  description: Path of the archive.
  returned: success
  type: str
bytes:
  description: Its size.
  returned: success
  type: int
signature:
  description: Path of its signature, empty where it is not signed.
  returned: success
  type: str
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.store import archive


def run(params: Mapping[str, Any], check: bool) -> dict[str, Any]:
    """Return the module's result."""
    return archive.write_archive(Path(params["path"]), params["sign_key"], not check)
