# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Git repositories that stand in for the sources that are on GitHub only."""

import os
import subprocess

from bing_bert_sources import SOURCES
from local_nodes import ROOT

STAND_IN = ROOT / "tests/stand_ins/bing_bert"
EXAMPLES = "DeepSpeedExamples/"
# The same files are the same commit whenever they are committed.
DATE = "2020-09-01T00:00:00Z"


def repository(folder, files):
    """Make a repository of these files, unless it is there; return its URL and its commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    if not (folder / ".git").exists():
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(text.encode())
        env = {**os.environ, "GIT_AUTHOR_DATE": DATE, "GIT_COMMITTER_DATE": DATE}
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
            subprocess.run([*git, *words], check=True, env=env)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    return f"file://{folder}", commit.strip()


def bing_bert(folder):
    """Return the variables that make role bing_bert check out a stand-in with the lines that are patched."""
    package = {
        str(path.relative_to(STAND_IN)): path.read_text() for path in STAND_IN.glob("deepspeed/**/*.py")
    }
    lines = {path: text for path, text in SOURCES.items() if not path.startswith(EXAMPLES)}
    examples = {path.removeprefix(EXAMPLES): text for path, text in SOURCES.items() if path not in lines}
    variables = {}
    for prefix, files in {"": {**package, **lines}, "examples_": examples}.items():
        url, commit = repository(folder / f"{prefix}deepspeed", files)
        variables |= {f"bing_bert_{prefix}repo": url, f"bing_bert_{prefix}commit": commit}
    return variables


def horovod_tf1_bert(folder):
    """Return the variables that make role horovod_tf1_bert check out a stand-in for the fork."""
    url, commit = repository(
        folder / "fork", {"run_classifier.py": "raise SystemExit('it must not be run')\n"}
    )
    return {"horovod_tf1_bert_repo": url, "horovod_tf1_bert_commit": commit}
