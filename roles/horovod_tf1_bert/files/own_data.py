# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Check the user's own data with the fork's reader of the task, and write the models for its vocabulary.

    python own_data.py OUTPUT SAMPLES LENGTH SEED DATA_DIR TASK VOCABULARY CHECKPOINT

Without DATA_DIR, checks that OUTPUT has what make_data.py makes of SAMPLES, LENGTH and SEED. Else the fork
is beside OUTPUT, which gets vocab_MODEL.txt and bert_config_MODEL.json of each model: the size of a model
follows the number of lines of the vocabulary. The data are read by the fork, so TASK is any that its
run_classifier.py knows. Files that are unchanged since are not read again. Prints what a record says of the
data: the samples to train with, and a checksum that is the same on two nodes with the same files.

Exit status 3: the data were refused; the reason is on standard error. Python 3.6 and 3.7, with TensorFlow 1.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import runpy
import shutil
import sys
from typing import Any, Dict, List

import bert_sizes
import data_stamp
import make_data

WORDS = "bert/embeddings/word_embeddings"
"""The variable of a checkpoint that has a line per word."""


class RefusedError(ValueError):
    """Data that the fork cannot use; the message says what was found and what is expected."""


def files(directory: str) -> List[str]:
    """Return the paths of all files below a directory, in order."""
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names)


def stamp(path: str) -> List[Any]:
    """Return path, size and time of a file: they show that it is unchanged, without reading it."""
    status = os.stat(path)
    return [path, status.st_size, status.st_mtime_ns]


def tasks(text: str) -> Dict[str, str]:
    """Return the class that reads the data of each task, from the text of run_classifier.py."""
    return dict(re.findall(r"^ +[\"'](\w+)[\"']: *(\w+Processor),", text, re.MULTILINE))


def processor(fork: str, task: str) -> Any:
    """Return the fork's reader of a task."""
    program = os.path.join(fork, "run_classifier.py")
    with open(program, encoding="utf-8") as file:
        class_of_task = tasks(file.read())
    if task not in class_of_task:
        raise RefusedError(
            "horovod_tf1_bert_task=%s: found the tasks %s in %s; expected one of them"
            % (task, ", ".join(sorted(class_of_task)), program)
        )
    sys.path.insert(0, fork)
    return runpy.run_path(program, run_name="fork")[class_of_task[task]]()


def count(reader: Any, task: str, directory: str) -> int:
    """Return the number of samples to train with; raise RefusedError where the fork cannot read them."""
    labels, counts = set(reader.get_labels()), {}
    for part, get in (("train", reader.get_train_examples), ("dev", reader.get_dev_examples)):
        try:
            examples = get(directory)
        # The fork lets through whatever its reader raises: a missing file, or a line with too few columns.
        except Exception as error:
            raise RefusedError(
                "%s: the reader of task %s cannot read its %s data (%s: %s); expected the files and columns"
                " of this task" % (directory, task, part, type(error).__name__, error)
            ) from error
        strange = sorted({example.label for example in examples} - labels)
        if strange or not examples:
            problem = "the label %r" % strange[0] if strange else "no samples"
            raise RefusedError(
                "%s: %s data of task %s: found %s, expected samples with the labels %s"
                % (directory, part, task, problem, ", ".join(sorted(labels)))
            )
        counts[part] = len(examples)
    return counts["train"]


def check_checkpoint(checkpoint: str, vocabulary: int) -> None:
    """Raise RefusedError where a checkpoint cannot be read or is of another vocabulary."""
    import tensorflow as tf

    try:
        shapes = dict(tf.train.list_variables(checkpoint))
    except (tf.errors.OpError, ValueError) as error:
        raise RefusedError("horovod_tf1_bert_checkpoint=%s: %s" % (checkpoint, error)) from error
    rows = shapes.get(WORDS, [0])[0]
    if rows != vocabulary:
        raise RefusedError(
            "horovod_tf1_bert_checkpoint=%s: found %d words in %s, expected %d, the lines of"
            " horovod_tf1_bert_vocabulary" % (checkpoint, rows, WORDS, vocabulary)
        )


def prepare(output: str, directory: str, task: str, words: str, checkpoint: str) -> Dict[str, Any]:
    """Check the data unless they are unchanged; return the number of samples and the checksum."""
    fork = os.path.join(os.path.dirname(output), "bert")
    for path, variable in ((directory, "data_dir"), (words, "vocabulary")):
        if not os.path.exists(path):
            raise RefusedError("horovod_tf1_bert_%s=%s: found nothing there" % (variable, path))
    paths = [*files(directory), words]
    expected = {"task": task, "checkpoint": checkpoint, "files": [stamp(path) for path in paths]}
    stamp_of_data = data_stamp.read(output)
    if stamp_of_data and stamp_of_data.get("wanted") == expected:
        return {"samples": stamp_of_data["samples"], "identity": stamp_of_data["identity"]}
    with open(words, encoding="utf-8") as file:
        vocabulary = sum(1 for _ in file)
    samples = count(processor(fork, task), task, directory)
    if checkpoint:
        check_checkpoint(checkpoint, vocabulary)
    digest = hashlib.sha256(task.encode())
    for path in paths:
        with open(path, "rb") as file:
            digest.update(file.read())
    shutil.rmtree(output, ignore_errors=True)
    os.makedirs(output)
    for name, model in bert_sizes.MODELS.items():
        shutil.copyfile(words, os.path.join(output, "vocab_%s.txt" % name))
        config = make_data.config(dict(model, vocabulary=vocabulary))
        make_data.write(output, "bert_config_%s.json" % name, [json.dumps(config, indent=2, sort_keys=True)])
    result = {"samples": samples, "identity": digest.hexdigest()}
    data_stamp.write(output, dict(result, wanted=expected))
    return result


def describe(output: str, numbers: List[str], own: List[str]) -> str:
    """Return what a record says of the data; raise RefusedError for others than those that are asked for."""
    if not own[0]:
        samples, length, seed = map(int, numbers)
        values = {"samples": samples, "length": length, "seed": seed}
        why = data_stamp.problem("horovod_tf1_bert", output, values)
        if why:
            raise RefusedError(why)
        return "pairs of sentences, samples=%(samples)d length=%(length)d seed=%(seed)d" % values
    # Simulated nodes share one directory. The fork's reader may print too.
    with open(output + ".lock", "w", encoding="utf-8") as lock, contextlib.redirect_stdout(sys.stderr):
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = prepare(output, *own)
    return "own data, samples=%(samples)d identity=%(identity)s" % result


def main() -> None:
    """Check the data of the command line."""
    try:
        print(describe(sys.argv[1], sys.argv[2:5], sys.argv[5:]))
    except RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
