# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Refuses inventories and files of variables that cannot be meant, before Ansible expands them."""

from __future__ import annotations

import os
from pathlib import Path

import ansible.module_utils
import yaml
from ansible import context
from ansible.plugins.inventory import BaseInventoryPlugin

# Ansible packs module_utils for modules only; a plugin has to point at it.
ansible.module_utils.__path__.append(str(Path(__file__).resolve().parent.parent / "module_utils"))

from ansible.module_utils.scalebook import inputs  # noqa: E402

DOCUMENTATION = r"""
name: scalebook_guard
plugin_type: inventory
short_description: Refuses what cannot be meant
description:
  - Looks at every inventory source, at the C(group_vars) and C(host_vars) beside it and at what C(-e) gives,
    and ends the command with file and line where a host name is none, where a range or YAML's aliases would
    fill the memory, or where something is there twice.
  - Never parses a source; that is left to the other plugins, which come after it in C(enable_plugins).
options: {}
"""

COMPOSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(path):
    """Return the text of a file, None for one that is none of ours to look into."""
    if path.stat().st_size > inputs.MOST_BYTES:
        raise inputs.InputError(f"{path}: has {path.stat().st_size} bytes; allowed are {inputs.MOST_BYTES}")
    content = path.read_bytes()
    # An encrypted file tells nothing.
    return None if content.startswith(b"$ANSIBLE_VAULT") else content.decode(errors="replace")


def compose(text):
    """Return the tree of a YAML text with its aliases not written out; None for what is no YAML."""
    try:
        return yaml.compose(text, Loader=COMPOSER)  # noqa: S506 - composes and makes no object
    except (yaml.YAMLError, RecursionError, ValueError):
        return None  # what is wrong with it is for Ansible to say


def check_source(source):
    """Check one inventory source: a file, or hosts with commas."""
    path = Path(source)
    if "," in source and not path.exists():
        inputs.check_list(source)
    if not path.is_file():
        return
    text = read(path)
    if text is not None and path.suffix in (".yml", ".yaml", ".json"):
        inputs.check_inventory(compose(text), str(path))
    elif text is not None and path.suffix in ("", ".ini") and not os.access(path, os.X_OK):  # no program
        inputs.check_ini(text.splitlines(), str(path))
    for folder in ("group_vars", "host_vars"):
        for each in sorted((path.parent / folder).rglob("*")):
            if each.is_file() and each.suffix in ("", ".yml", ".yaml", ".json"):
                check_variables(read(each), str(each))


def check_variables(text, place):
    """Check the text of variables."""
    tree = None if text is None else compose(text)
    if tree is not None:
        inputs.check_variables(tree, place)


def check_extra(word):
    """Check one word of -e: a file, a mapping, or name=value, which the knobs check."""
    if word.startswith("@"):
        path = Path(word[1:]).expanduser()
        if path.is_file():
            check_variables(read(path), str(path))
    elif word.lstrip().startswith(("{", "[")):
        check_variables(word, "-e")


class InventoryModule(BaseInventoryPlugin):
    """Takes no source, and lets none pass that cannot be meant."""

    NAME = "scalebook_guard"

    def verify_file(self, path):
        """Return False; end the command when the source at `path` is refused."""
        try:
            for word in context.CLIARGS.get("extra_vars") or ():
                check_extra(str(word))
            check_source(str(path))
        except inputs.InputError as error:
            # Ansible takes any exception for "not my kind of source" and goes on with the next plugin.
            raise SystemExit(f"ERROR! {error}") from None
        except OSError:
            return False  # who reads it next says why it cannot be read
        return False
