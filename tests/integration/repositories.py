# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Git repositories that stand in for the sources that are on GitHub only."""

import os
import subprocess

from bing_bert_sources import SOURCES
from local_nodes import ROOT

STAND_IN = ROOT / "tests/stand_ins/bing_bert"
EXAMPLES = "DeepSpeedExamples/"
# {repository: {role: the trainer that it starts}}
TRAINERS = {
    "models": {
        "oneflow_resnet50": "Vision/classification/image/resnet50/train.py",
        "oneflow_bert": "NLP/BERT/run_pretraining.py",
        "oneflow_wide_deep": "RecommenderSystems/wide_and_deep/train.py",
    },
    "DeepLearningExamples": {
        "mxnet_resnet50": "MxNet/Classification/RN50v1.5/train.py",
        "tf1_resnet50": "TensorFlow/Classification/ConvNets/main.py",
    },
    "bert": {"horovod_tf1_bert": "run_classifier.py"},
}
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


def gluoncv(folder):
    """Return the variables that make gluoncv_resnet50 check out a stand-in of gluon-cv, which trains."""
    trainer = (ROOT / "tests/stand_ins/gluoncv/train_horovod.py").read_text()
    url, commit = repository(
        folder / "gluon-cv", {"scripts/classification/imagenet/train_horovod.py": trainer}
    )
    return {"gluoncv_resnet50_repo": url, "gluoncv_resnet50_commit": commit}


def paddlecv(folder):
    """Return the variables that make paddlecv_resnet50 check out a stand-in of PaddleCV, which trains."""
    files = {
        f"PaddleCV/image_classification/{path.name}": path.read_text()
        for path in (ROOT / "tests/stand_ins/paddlecv").glob("*.py")
    }
    url, commit = repository(folder / "paddlecv", files)
    return {"paddlecv_resnet50_repo": url, "paddlecv_resnet50_commit": commit}


def pytorch_examples(folder):
    """Return the variables that make torch_examples_resnet50 check out a stand-in, which trains."""
    trainer = (ROOT / "tests/stand_ins/pytorch_examples/main.py").read_text()
    url, commit = repository(folder / "examples", {"imagenet/main.py": trainer})
    return {"torch_examples_resnet50_repo": url, "torch_examples_resnet50_commit": commit}


def trainers(folder):
    """Return the variables that make all roles check out a stand-in; three of them train."""
    variables = {**bing_bert(folder), **gluoncv(folder), **paddlecv(folder), **pytorch_examples(folder)}
    for name, of_roles in TRAINERS.items():
        url, commit = repository(
            folder / name, dict.fromkeys(of_roles.values(), "raise SystemExit('it must not be run')\n")
        )
        for role in of_roles:
            variables |= {f"{role}_repo": url, f"{role}_commit": commit}
    return variables
