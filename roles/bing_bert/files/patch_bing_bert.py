# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Patch DeepSpeed 1afca8f with DeepSpeedExamples ba63ad0 so that they run DLPerf's benchmark of bing_bert.

    python3 patch_bing_bert.py DEEPSPEED VOCABULARY [--check]

DEEPSPEED is the checkout, VOCABULARY the directory of NAME-vocab.txt. The lines to change are found by their
text, never by their numbers. Every file must be either as published or as patched: any other is refused,
before anything is written. Files are replaced atomically. Prints one JSON object: {"changed": [file, ...]}.
Exit status 3: refused, the reason is on stderr. Standard library only, Python 3.6 or newer.
"""

import json
import os
import sys
import tempfile
from typing import Dict, List, Tuple

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


def positions(lines: List[str], block: List[str]) -> List[int]:
    """Return the indices at which the lines of `block` occur, without regard to indentation."""
    block = [line.strip() for line in block]
    lines = [line.strip() for line in lines]
    return [i for i in range(len(lines) - len(block) + 1) if lines[i : i + len(block)] == block]


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
    start = before[0]
    first = lines[start]
    indent = first[: len(first) - len(first.lstrip())]
    ending = "\r\n" if first.endswith("\r\n") else "\n"
    new = [indent + line + ending for line in patched]
    return "".join(lines[:start] + new + lines[start + len(published) :])


def plan(root: str, vocabulary: str) -> Dict[str, str]:
    """Return {file: new text} of the files that have to change; raises UnknownFileError and OSError."""
    texts, changed = {}, {}
    for name, reason, published, patched in edits(vocabulary):
        path = os.path.join(root, name)
        if name not in texts:
            # Line ends stay as they are: the published trainer has those of Windows.
            with open(path, encoding="utf-8", newline="") as stream:
                texts[name] = stream.read()
        try:
            new = patch(texts[name], published, patched)
        except UnknownFileError as exc:
            raise UnknownFileError(
                "%s is not the published file (%s): the lines %s" % (path, reason, exc)
            ) from exc
        if new != texts[name]:
            texts[name] = changed[name] = new
    return changed


def write_whole(path: str, text: str) -> None:
    """Replace the content of a file atomically; its mode stays."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".patch-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(arguments: List[str]) -> int:
    """Command line; returns the exit status."""
    root, vocabulary = [argument for argument in arguments if argument != "--check"]
    try:
        changed = plan(root, vocabulary)
    except UnknownFileError as exc:
        print("refused: %s" % exc, file=sys.stderr)
        return 3
    if "--check" not in arguments:
        for name, text in changed.items():
            write_whole(os.path.join(root, name), text)
    print(json.dumps({"changed": sorted(changed)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
