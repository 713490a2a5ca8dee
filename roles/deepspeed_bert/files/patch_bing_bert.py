# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make DeepSpeed 1afca8f with DeepSpeedExamples ba63ad0 run DLPerf's benchmark of bing_bert.

    python3 patch_bing_bert.py DEEPSPEED VOCABULARY [--check]

DEEPSPEED is the checkout, VOCABULARY the directory in which NAME-vocab.txt lies. What to change is told by
the text of the lines, never by their numbers. Every file is either as it was published or as this leaves it:
any other is refused, before anything is written. Files are replaced whole.
Prints one JSON object: {"changed": [file, ...]}. Exit status 3: refused, the reason on stderr.
Standard library only, Python 3.6 or newer.
"""

import json
import os
import sys
import tempfile

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


def edits(vocabulary):
    """Return the edits: (file, why, genuine lines, patched lines).

    Lines stand one after the other and are compared without their indentation; the first one's indentation is
    given to all, and what a line of the patched ones begins with comes on top.
    """
    places = ['"%s/%s-vocab.txt",' % (vocabulary.rstrip("/"), name) for name in VOCABULARIES]
    return [
        (
            "install.sh",
            "pip is that of the python in use, not one of the user's own",
            ["else", 'PIP_SUDO=""'],
            ["else", '    PIP_SUDO="python3 -m "'],
        ),
        (
            "requirements/requirements.txt",
            "torch is there already; the trainer imports two packages that nothing asks for",
            ["torch>=1.2", "torchvision>=0.4.0"],
            ["# torch>=1.2", "# torchvision>=0.4.0", "boto3", "h5py"],
        ),
        (
            TRAINER,
            "fp32 on several nodes ends at its first boundary: lr_this_step was assigned for fp16 alone",
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
            "vocabularies lie on the node",
            ["'%s':" % name, '%s%s-vocab.txt",' % (STORE, name)],
            ["'%s':" % name, place],
        )
        for name, place in zip(VOCABULARIES, places)  # noqa: B905 - strict is not known to Python 3.6
    ]


def positions(lines, block):
    """Indices at which the lines of `block` stand one after the other, indentation aside."""
    wanted = [line.strip() for line in block]
    have = [line.strip() for line in lines]
    return [i for i in range(len(have) - len(wanted) + 1) if have[i : i + len(wanted)] == wanted]


def patch(text, genuine, patched):
    """Return the text with the edit made; the same text where it is made already.

    Raises UnknownFileError when the lines are not there exactly once.
    """
    lines = text.splitlines(True)
    found, done = positions(lines, genuine), positions(lines, patched)
    if (len(found), len(done)) == (0, 1):
        return text
    if (len(found), len(done)) != (1, 0):
        raise UnknownFileError(
            "stand %d times in it, and as they would be changed %d times: %s"
            % (len(found), len(done), " / ".join(genuine))
        )
    start = found[0]
    first = lines[start]
    indent = first[: len(first) - len(first.lstrip())]
    ending = "\r\n" if first.endswith("\r\n") else "\n"
    new = [indent + line + ending for line in patched]
    return "".join(lines[:start] + new + lines[start + len(genuine) :])


def plan(root, vocabulary):
    """Return {file: new text} of the files that have to change; raises UnknownFileError and OSError."""
    texts, changed = {}, {}
    for name, why, genuine, patched in edits(vocabulary):
        path = os.path.join(root, name)
        if name not in texts:
            # Line ends stay as they are: the trainer was published with those of Windows.
            with open(path, encoding="utf-8", newline="") as stream:
                texts[name] = stream.read()
        try:
            new = patch(texts[name], genuine, patched)
        except UnknownFileError as exc:
            raise UnknownFileError(
                "%s is not the file that is known here (%s): the lines %s" % (path, why, exc)
            ) from exc
        if new != texts[name]:
            texts[name] = changed[name] = new
    return changed


def write_whole(path, text):
    """Replace a file by text, whole or not at all; its mode stays."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".patch-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        os.chmod(temporary, os.stat(path).st_mode & 0o7777)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(arguments):
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
