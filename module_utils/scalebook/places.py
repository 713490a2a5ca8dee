# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Where the control node has scalebook's own files, and where it writes: in a checkout or in a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROOT = next((folder for folder in Path(__file__).resolve().parents if (folder / "roles").is_dir()), Path("/"))
"""The directory with roles/, playbooks/, data/ and templates/.  On a node, which has none, nothing."""


def working_directory() -> Path:
    """Return the directory of results/ and .scalebook/: the checkout; of a collection, where its user stands.

    An installed collection is replaced as a whole by its next version.
    """
    return Path.cwd() if (ROOT / "plugins").is_dir() else ROOT


def roles_paths(config: Any) -> list[str]:
    """Return the directories whose roles count, in order; `config` is ansible.constants.config.

    ansible.cfg of a checkout names the own ones.  In a collection these are first, and the others count where
    somebody has set them: what Ansible's default has may be anything.
    """
    paths, origin = config.get_config_value_and_origin("DEFAULT_ROLES_PATH")
    own = str(ROOT / "roles")
    others = [] if origin == "default" else [str(path) for path in paths]
    return others if own in map(_resolved, others) else [own, *others]


def _resolved(path: str) -> str:
    return str(Path(path).resolve())
