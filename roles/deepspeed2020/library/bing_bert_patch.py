#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: bing_bert_patch
short_description: Patch DeepSpeed of 2020 and bing_bert so that they run DLPerf's benchmark
description:
  - For DeepSpeed 1afca8f with DeepSpeedExamples ba63ad0. The edits are those of DLPerf's instructions; each
    has its reason in the source of this module.
  - The lines to change are found by their text, never by their numbers. Every file must be either as
    published or as patched; any other is refused before anything is written. A file is replaced whole or not
    at all.
options:
  path:
    description: The checkout of DeepSpeed, with the examples below it.
    type: path
    required: true
  vocabulary:
    description: Directory of the files C(NAME-vocab.txt), which replace the addresses of vocabularies.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
  diff_mode:
    support: full
    description: Shows the files before and after.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Patch the sources
  bing_bert_patch:
    path: /opt/scalebook/bing_bert/DeepSpeed
    vocabulary: /opt/scalebook/bing_bert/vocabulary
"""

RETURN = r"""
files:
  description: The files that were changed, relative to O(path).
  returned: success
  type: list
"""

import os
from typing import Any, Dict, List, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import replace_texts
from ansible.module_utils.scalebook.patch_lines import positions, replaced

TRAINER = "DeepSpeedExamples/bing_bert/deepspeed_train.py"
TOKENIZATION = "DeepSpeedExamples/bing_bert/pytorch_pretrained_bert/tokenization.py"
STORE = '"https://s3.amazonaws.com/models.huggingface.co/bert/'
VOCABULARIES = [
    "bert-%s" % name
    for name in (
        "base-uncased",
        "large-uncased",
        "base-cased",
        "large-cased",
        "base-multilingual-uncased",
        "base-multilingual-cased",
        "base-chinese",
    )
]


class UnknownFileError(ValueError):
    """A file that is neither as published nor as patched; the message names it."""


def edits(vocabulary: str) -> List[Tuple[str, str, List[str], List[str]]]:
    """Return the edits: (file, reason, published lines, patched lines).

    The lines are consecutive and compared without their indentation. Patched lines get the indentation of the
    first published line, plus their own.
    """
    paths = ['"%s/%s-vocab.txt",' % (vocabulary.rstrip("/"), name) for name in VOCABULARIES]
    return [
        (
            "install.sh",
            "use the pip of the running python, not one of the user",
            ["else", 'PIP_SUDO=""'],
            ["else", '    PIP_SUDO="python3 -m "'],
        ),
        (
            "requirements/requirements.txt",
            "torch is installed already; the trainer imports two packages that are not required here",
            ["torch>=1.2", "torchvision>=0.4.0"],
            ["# torch>=1.2", "# torchvision>=0.4.0", "boto3", "h5py"],
        ),
        (
            TRAINER,
            "fp32 on several nodes failed at its first boundary: lr_this_step was assigned for fp16 only",
            ["if model.network.is_gradient_accumulation_boundary():", "if args.fp16:"],
            [
                "if model.network.is_gradient_accumulation_boundary():",
                '    lr_this_step = optimizer.param_groups[0]["lr"]',
                "    if args.fp16:",
            ],
        ),
        (
            TRAINER,
            "--max_steps_per_epoch counts micro-steps, so that 120 of them end the run",
            ["else:", "# Call DeepSpeed engine step on micro steps"],
            ["else:", "    epoch_step += 1", "    # Call DeepSpeed engine step on micro steps"],
        ),
    ] + [
        (
            TOKENIZATION,
            "vocabularies are on the node",
            ["'%s':" % name, '%s%s-vocab.txt",' % (STORE, name)],
            ["'%s':" % name, path],
        )
        for name, path in zip(VOCABULARIES, paths)  # noqa: B905 - Python 3.6 does not know strict
    ]


def patch(text: str, published: List[str], patched: List[str]) -> str:
    """Return the patched text; the same text where it is patched already.

    Raises UnknownFileError when the lines do not occur exactly once.
    """
    lines = text.splitlines(True)
    before, after = positions(lines, published), positions(lines, patched)
    if (len(before), len(after)) == (0, 1):
        return text
    if (len(before), len(after)) != (1, 0):
        raise UnknownFileError(
            "occur %d times, and as patched %d times: %s" % (len(before), len(after), " / ".join(published))
        )
    return replaced(lines, before[0], len(published), patched)


def plan(root: str, vocabulary: str) -> Dict[str, Tuple[str, str]]:
    """Return {file: (text, new text)} of the files that have to change.

    Raises UnknownFileError, with the file and its lines, and OSError.
    """
    before: Dict[str, str] = {}
    after: Dict[str, str] = {}
    for name, reason, published, patched in edits(vocabulary):
        path = os.path.join(root, name)
        if name not in before:
            # Line ends stay as they are: the published trainer has those of Windows.
            with open(path, encoding="utf-8", newline="") as stream:
                before[name] = after[name] = stream.read()
        try:
            after[name] = patch(after[name], published, patched)
        except UnknownFileError as exc:
            raise UnknownFileError(
                "%s is not the published file (%s): the lines %s" % (path, reason, exc)
            ) from exc
    return {name: (text, after[name]) for name, text in before.items() if after[name] != text}


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}, "vocabulary": {"type": "path", "required": True}}


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    replace_texts(module, lambda: plan(module.params["path"], module.params["vocabulary"]))


if __name__ == "__main__":
    main()
