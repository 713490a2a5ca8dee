# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Find a CPython of a wanted version on this machine.

Runs on a node with whatever Python (3.6 or newer) Ansible uses there; standard library only:

    python3 find_python.py '{"versions": ["3.8"], "search": ["system", "pyenv"], "uv_dir": "/opt/x"}'

Prints one JSON object: ``found`` (null or ``{executable, version, full_version, source, venv}``) and
``rejected`` (a list of sentences: which interpreters were looked at and why they would not do).
A candidate is only believed after it was started and has told its own version.
"""

import glob
import json
import os
import re
import subprocess
import sys

# Asked of every candidate. The executable is taken from base_prefix: inside a virtual environment
# sys.executable would be the environment's link, and an environment made from it would depend on it.
# What a missing module costs: _ssl, zlib - pip cannot download or unpack; _ctypes - numpy does not import.
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


def version_key(path):
    """Sort key that puts 3.8.18 after 3.8.9: the numbers found in the path."""
    return [int(number) for number in re.findall(r"\d+", path)]


def newest_first(pattern):
    """Paths matching a glob pattern, highest version number first."""
    return sorted(glob.glob(pattern), key=version_key, reverse=True)


def system_candidates(version, environ):
    """Interpreters on PATH and in the usual places; pyenv's shims are no interpreters and left out."""
    places = environ.get("PATH", "").split(os.pathsep) + ["/usr/bin", "/usr/local/bin"]
    places = [place for place in places if place and not place.rstrip("/").endswith("/shims")]
    names = ["python" + version, "python3"]
    return [os.path.join(place, name) for name in names for place in places]


def pyenv_candidates(version, environ):
    """The real interpreters below pyenv's versions directory, newest patch release first."""
    roots = [environ.get("PYENV_ROOT", ""), os.path.join(environ.get("HOME", "/"), ".pyenv"), "/opt/pyenv"]
    found = []
    for root in roots:
        if root:
            found += newest_first(os.path.join(root, "versions", version + ".*", "bin", "python" + version))
    return found


def conda_candidates(version, environ):
    """Bases and environments of conda: in the usual places, and where its own notes say."""
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
        # Every environment that conda made for this user, wherever it is.
        with open(os.path.join(home, ".conda", "environments.txt"), encoding="utf-8") as stream:
            prefixes += [line.strip() for line in stream if line.strip()]
    except OSError:
        pass  # no conda here, or one that has made none
    return [os.path.join(prefix, "bin", "python" + version) for prefix in prefixes]


def uv_candidates(version, environ, uv_dir):
    """Interpreters that uv installed before: ours first, then the user's."""
    roots = [uv_dir, os.path.join(environ.get("HOME", "/"), ".local", "share", "uv", "python")]
    found = []
    for root in roots:
        if root:
            found += newest_first(os.path.join(root, "cpython-" + version + ".*", "bin", "python" + version))
    return found


def probe(path):
    """Start an interpreter and return what it says of itself, or a sentence why it does not start."""
    # A module of the caller's directory or PYTHONPATH must not answer for the interpreter: -I.
    command = [path, "-I", "-c", PROBE]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as exc:
        return "does not start: %s" % str(exc).splitlines()[0]


def objection(answer, version):
    """Why an interpreter will not do, or an empty text. `answer` is probe()'s."""
    if not isinstance(answer, dict):
        return answer
    if answer["version"] != version:
        return "is %s" % answer["version"]
    if answer["implementation"] != "CPython":
        return "is %s, not CPython" % answer["implementation"]
    if answer["lacks"]:
        return "lacks the module %s" % ", ".join(answer["lacks"])
    return ""


def find(versions, search, uv_dir="", environ=None, probe=probe):
    """The first interpreter that will do: versions in their order, places in `search`'s order.

    An interpreter from which environments can be made (venv and ensurepip are there) is preferred to
    one that lacks them (Debian's python3 without python3-venv) of the same version.
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
        seen = set()
        for source in search:
            for path in places[source](version):
                real = os.path.realpath(path)
                if real in seen or not os.access(path, os.X_OK):
                    continue
                seen.add(real)
                answer = probe(path)
                reason = objection(answer, version)
                if reason:
                    # python3 of another version is no news; an interpreter of the right name is.
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


def main():
    """Read the question from the first argument, print the answer."""
    question = json.loads(sys.argv[1])
    print(json.dumps(find(question["versions"], question["search"], question.get("uv_dir", ""))))


if __name__ == "__main__":
    main()
