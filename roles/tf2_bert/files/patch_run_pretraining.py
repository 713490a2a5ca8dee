# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Teach tf-models-official's run_pretraining.py to train on several nodes, with XLA and a chosen all-reduce.

    python3 patch_run_pretraining.py FILE STATE [--check]

The genuine script defines --worker_hosts, --task_index, --all_reduce_alg and --enable_xla and ignores some of
them without a word: a run on four nodes would be four runs on one node each. What to change is told by the
text of the lines, never by their numbers, and a file in which neither the genuine nor the patched lines stand
exactly once is refused. FILE is replaced whole or not at all; STATE gets the sha256 of FILE before and after.
Prints one JSON object: {"changed": bool, "state": {...}}. Exit status 3: refused, the reason on stderr.
Standard library only, Python 3.6 or newer.
"""

import hashlib
import json
import os
import sys
import tempfile

# The lines are compared without their indentation; the indentation of the first one found is given to all.
# Inner indentation is relative to it.
VARIANTS = [
    {
        "name": "2.3.0",
        "genuine": [
            "strategy = distribution_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    num_gpus=FLAGS.num_gpus,",
            "    tpu_address=FLAGS.tpu)",
        ],
        "patched": [
            "from official.utils.misc import keras_utils",
            "keras_utils.set_session_config(enable_xla=FLAGS.enable_xla)",
            "distribution_utils.configure_cluster(",
            "    FLAGS.worker_hosts,",
            "    FLAGS.task_index)",
            "strategy = distribution_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    all_reduce_alg=FLAGS.all_reduce_alg,",
            "    num_gpus=FLAGS.num_gpus,",
            "    tpu_address=FLAGS.tpu)",
        ],
    },
    {
        # configure_cluster is there, but under num_gpus > 0: a cluster of CPUs would silently not be formed.
        "name": "2.15",
        "genuine": [
            "if FLAGS.num_gpus > 0:",
            "  _ = distribute_utils.configure_cluster(FLAGS.worker_hosts, FLAGS.task_index)",
            "strategy = distribute_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    num_gpus=FLAGS.num_gpus,",
            "    all_reduce_alg=FLAGS.all_reduce_alg,",
            "    tpu_address=FLAGS.tpu)",
        ],
        "patched": [
            "from official.utils.misc import keras_utils",
            "keras_utils.set_session_config(enable_xla=FLAGS.enable_xla)",
            "_ = distribute_utils.configure_cluster(FLAGS.worker_hosts, FLAGS.task_index)",
            "strategy = distribute_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    num_gpus=FLAGS.num_gpus,",
            "    all_reduce_alg=FLAGS.all_reduce_alg,",
            "    tpu_address=FLAGS.tpu)",
        ],
    },
]

# Calls that the patched lines make. Elsewhere in the file they are somebody else's patch.
CALLS = ("set_session_config(", "configure_cluster(", "get_distribution_strategy(")


class UnknownFileError(ValueError):
    """The file is neither the genuine nor the patched one."""


def positions(lines, block):
    """Indices at which the lines of `block` stand one after the other, indentation aside."""
    wanted = [line.strip() for line in block]
    have = [line.strip() for line in lines]
    return [i for i in range(len(have) - len(wanted) + 1) if have[i : i + len(wanted)] == wanted]


def counts(lines):
    """How often each of CALLS stands in the lines."""
    return [sum(line.count(call) for line in lines) for call in CALLS]


def patch(text):
    """Return (new text, name of the variant); the text is the same where it is patched already.

    Raises UnknownFileError with what was expected.
    """
    lines = text.splitlines(True)
    for variant in VARIANTS:
        for kind in ("patched", "genuine"):
            block = variant[kind]
            found = positions(lines, block)
            if not found:
                continue
            if len(found) > 1:
                raise UnknownFileError("the lines from `%s` on stand %d times in it" % (block[0], len(found)))
            if counts(lines) != counts(block):
                raise UnknownFileError(
                    "besides the expected lines it calls one of %s elsewhere: somebody else's patch?"
                    % ", ".join(call + ")" for call in CALLS)
                )
            if kind == "patched":
                return text, variant["name"]
            start = found[0]
            first = lines[start]
            indent = first[: len(first) - len(first.lstrip())]
            ending = "\r\n" if first.endswith("\r\n") else "\n"
            new = [indent + line + ending for line in variant["patched"]]
            return "".join(lines[:start] + new + lines[start + len(block) :]), variant["name"]
    expected = "; or ".join(
        "of tf-models-official %s: %s" % (v["name"], " / ".join(line.strip() for line in v["genuine"]))
        for v in VARIANTS
    )
    raise UnknownFileError("the block to replace does not stand in it. Expected were the lines %s" % expected)


def sha256(data):
    """Hex digest of bytes."""
    return hashlib.sha256(data).hexdigest()


def write_whole(path, data, mode=None):
    """Replace a file by bytes, whole or not at all; keeps `mode` where given."""
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(os.path.abspath(path)), prefix=".patch-")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644 if mode is None else mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read_state(path):
    """The recorded state, or an empty dict where none can be read: it is then written anew."""
    try:
        with open(path, encoding="utf-8") as stream:
            state = json.load(stream)
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def apply(path, state_path, check=False):
    """Patch the file at `path` and record the state; returns {"changed": bool, "state": dict}.

    The state is written before the file: a state without its file is found by its `after`, a patched file
    without the digest of the genuine one would be lost. With `check` nothing is written.
    Raises UnknownFileError (message names the file) and OSError.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        new_text, variant = patch(data.decode("utf-8"))
    except (UnknownFileError, UnicodeDecodeError) as exc:
        raise UnknownFileError("%s is not a run_pretraining.py that is known here: %s" % (path, exc)) from exc
    new = new_text.encode("utf-8")
    old = read_state(state_path)
    before = sha256(data) if new != data else (old.get("before") if old.get("after") == sha256(new) else None)
    state = {"schema": 1, "file": path, "variant": variant, "before": before, "after": sha256(new)}
    changed = new != data or state != old
    if changed and not check:
        write_whole(state_path, (json.dumps(state, indent=2, sort_keys=True) + "\n").encode("utf-8"))
        if new != data:
            write_whole(path, new, os.stat(path).st_mode & 0o7777)
    return {"changed": changed, "state": state}


def main(arguments):
    """Command line; returns the exit status."""
    check = "--check" in arguments
    path, state_path = [argument for argument in arguments if argument != "--check"]
    try:
        print(json.dumps(apply(path, state_path, check)))
    except UnknownFileError as exc:
        print("refused: %s" % exc, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
