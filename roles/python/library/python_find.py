#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: python_find
short_description: Find a CPython of one of several versions
description:
  - Looks for interpreters on PATH, in pyenv, in conda and in the interpreters of uv. Every candidate is
    started and reports its own version. Changes nothing.
options:
  versions:
    description: Versions that can be used, best first, as C(major.minor).
    type: list
    elements: str
    required: true
  search:
    description: Where to look, in this order.
    type: list
    elements: str
    choices: [system, pyenv, conda, uv]
    default: [system, pyenv, conda, uv]
  uv_dir:
    description: Directory of interpreters that uv has installed, besides the user's own.
    type: path
  root_only:
    description: Whether root may only start interpreters that nobody else can change.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Find an interpreter
  python_find:
    versions: ["3.12", "3.11"]
    search: [system, pyenv]
"""

RETURN = r"""
found:
  description: The interpreter with C(executable), C(version), C(full_version), C(source) and C(venv); null
    for none.
  returned: success
  type: dict
rejected:
  description: A sentence for each interpreter that cannot be used, with the reason.
  returned: success
  type: list
  elements: str
"""

import glob
import json
import os
import re
import subprocess
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Union

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.root_only import weakness_of

# Runs in every candidate. The executable is taken from base_prefix: inside a virtual environment
# sys.executable would be the environment's link, and an environment created from it would depend on it.
# Without _ssl or zlib pip cannot download or unpack; without _ctypes numpy cannot be imported.
PROBE = r"""
import importlib.util as u, json, os, platform, sys
v = "%d.%d" % sys.version_info[:2]
own = os.path.join(sys.base_prefix, "bin", "python" + v)
lacks = [m for m in ("_ssl", "zlib", "_ctypes") if u.find_spec(m) is None]
print(json.dumps({
    "executable": own if os.path.exists(own) else os.path.realpath(sys.executable),
    "version": v,
    "full_version": platform.python_version(),
    "implementation": platform.python_implementation(),
    "lacks": lacks,
    "venv": u.find_spec("venv") is not None and u.find_spec("ensurepip") is not None,
}))
"""


def argument_spec() -> Dict[str, Any]:
    places = ["system", "pyenv", "conda", "uv"]
    return {
        "versions": {"type": "list", "elements": "str", "required": True},
        "search": {"type": "list", "elements": "str", "choices": places, "default": places},
        "uv_dir": {"type": "path"},
        "root_only": {"type": "bool", "default": False},
    }


def version_key(path: str) -> List[int]:
    """Return a sort key that puts 3.8.18 after 3.8.9: the numbers in the path."""
    return [int(number) for number in re.findall(r"\d+", path)]


def newest_first(pattern: str) -> List[str]:
    """Return the paths that match a glob pattern, highest version number first."""
    return sorted(glob.glob(pattern), key=version_key, reverse=True)


def system_candidates(version: str, environ: Mapping[str, str]) -> List[str]:
    """Return interpreters on PATH and in the usual places, without the shims of pyenv."""
    places = environ.get("PATH", "").split(os.pathsep) + ["/usr/bin", "/usr/local/bin"]
    places = [place for place in places if place and not place.rstrip("/").endswith("/shims")]
    names = ["python" + version, "python3"]
    return [os.path.join(place, name) for name in names for place in places]


def pyenv_candidates(version: str, environ: Mapping[str, str]) -> List[str]:
    """Return the interpreters below pyenv's versions directory, newest patch release first."""
    roots = [environ.get("PYENV_ROOT", ""), os.path.join(environ.get("HOME", "/"), ".pyenv"), "/opt/pyenv"]
    paths = []
    for root in roots:
        if root:
            paths += newest_first(os.path.join(root, "versions", version + ".*", "bin", "python" + version))
    return paths


def conda_candidates(version: str, environ: Mapping[str, str]) -> List[str]:
    """Return bases and environments of conda, in the usual places and in those that conda has recorded."""
    home = environ.get("HOME", "/")
    roots = [environ.get("MAMBA_ROOT_PREFIX", "")]
    if environ.get("CONDA_EXE"):
        roots.append(os.path.dirname(os.path.dirname(environ["CONDA_EXE"])))
    for name in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba", "conda"):
        roots += [os.path.join(home, name), os.path.join("/opt", name)]
    prefixes = []
    for root in filter(None, roots):
        prefixes += [root] + sorted(glob.glob(os.path.join(root, "envs", "*")))
    prefixes += sorted(glob.glob(os.path.join(home, ".conda", "envs", "*")))
    try:
        # Every environment that conda has created for this user.
        with open(os.path.join(home, ".conda", "environments.txt"), encoding="utf-8") as stream:
            prefixes += [line.strip() for line in stream if line.strip()]
    except OSError:
        pass  # conda is not installed, or has created none
    return [os.path.join(prefix, "bin", "python" + version) for prefix in prefixes]


def uv_candidates(version: str, environ: Mapping[str, str], uv_dir: Optional[str]) -> List[str]:
    """Return interpreters that uv has installed: those of role python first, then the user's."""
    roots = [uv_dir, os.path.join(environ.get("HOME", "/"), ".local", "share", "uv", "python")]
    paths = []
    for root in roots:
        if root:
            paths += newest_first(os.path.join(root, "cpython-" + version + ".*", "bin", "python" + version))
    return paths


def probe(path: str) -> Any:
    """Start an interpreter and return what it reports of itself, or why it does not start."""
    # -I: modules of the current directory or of PYTHONPATH must not take part.
    command = [path, "-I", "-c", PROBE]
    try:
        process = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60
        )
        return json.loads(process.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return "does not start: %s" % str(error).splitlines()[0]


def probe_of_root(path: str) -> Any:
    """As probe, but start nothing that somebody else than root may change."""
    weakness = weakness_of(path)
    if weakness:
        return "is not started as root: %s" % (weakness,)
    answer = probe(path)
    weakness = weakness_of(answer["executable"]) if isinstance(answer, dict) else None
    return "is not started as root: %s" % (weakness,) if weakness else answer


def objection(answer: Union[str, Dict[str, Any]], version: str) -> str:
    """Return why an interpreter cannot be used, or an empty text. `answer` is that of probe()."""
    if not isinstance(answer, dict):
        return answer
    if answer["version"] != version:
        return "is %s" % answer["version"]
    if answer["implementation"] != "CPython":
        return "is %s, not CPython" % answer["implementation"]
    if answer["lacks"]:
        return "lacks the module %s" % ", ".join(answer["lacks"])
    return ""


def find(
    versions: Iterable[str],
    search: Iterable[str],
    uv_dir: Optional[str] = "",
    environ: Optional[Mapping[str, str]] = None,
    probe: Callable[[str], Any] = probe,
) -> Dict[str, Any]:
    """Return the first interpreter that can be used, by version, then by place.

    Of the same version, one that can create environments (with venv and ensurepip) is preferred to one
    that cannot (Debian's python3 without python3-venv).
    Returns {"found": dict or None, "rejected": [sentence, ...]}.
    """
    environ = os.environ if environ is None else environ
    places = {
        "system": lambda version: system_candidates(version, environ),
        "pyenv": lambda version: pyenv_candidates(version, environ),
        "conda": lambda version: conda_candidates(version, environ),
        "uv": lambda version: uv_candidates(version, environ, uv_dir),
    }
    rejected = []
    for version in versions:
        second_best = None
        real_paths = set()
        for source in search:
            for path in places[source](version):
                real = os.path.realpath(path)
                if real in real_paths or not os.access(path, os.X_OK):
                    continue
                real_paths.add(real)
                answer = probe(path)
                reason = objection(answer, version)
                if reason:
                    # python3 of another version is expected; an interpreter with the right name is not.
                    if not reason.startswith("is 3."):
                        rejected.append("%s %s" % (path, reason))
                    continue
                answer = dict(answer, source=source)
                if answer["venv"]:
                    return {"found": answer, "rejected": rejected}
                second_best = second_best or answer
        if second_best:
            return {"found": second_best, "rejected": rejected}
    return {"found": None, "rejected": rejected}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    started = probe_of_root if options["root_only"] and os.geteuid() == 0 else probe
    answer = find(options["versions"], options["search"], options["uv_dir"], probe=started)
    module.exit_json(changed=False, **answer)


if __name__ == "__main__":
    main()
