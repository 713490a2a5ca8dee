# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make HDF5 files of samples for BERT, in NVIDIA's layout, of the user's own texts or dumps of Wikipedia.

    python make_hdf5.py '<JSON of the request>'      prints {"changed": bool, "samples": int, "identity": str}

The request has data (the directory), text_files (paths or patterns), vocab_file, seq_length, predictions,
seed, files (how many; more for texts above 64 MB a file), processes (0: one for each core), workload (for
messages) and check (nothing is written). bert_text.py says which texts are read.

The documents are dealt out to the files, then each file is made by a process of its own, at most `processes`
at a time: the content does not depend on their number. A file and the record of its samples and checksum get
their names when they are complete, so that a run that was interrupted goes on with those that are missing. A
file that does not fit its record is made again. At the end all are read and compared with their records;
manifest.json is written last. progress.txt has the lines that also go to standard error.

Exit status 3: the request was refused; the reason is on standard error. Python 3.6 or newer, h5py and NumPy.
"""

import ctypes
import fcntl
import glob
import hashlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import sys
import time
from contextlib import ExitStack
from itertools import islice
from multiprocessing.connection import wait
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import bert_text
import h5py
import numpy as np
import nvidia_hdf5

VERSION = 1  # of the samples that this program makes
DUPLICATES = 5
"""How often a text is used, each time with other words masked: as often as NVIDIA's scripts use it."""
TEXT_OF_A_FILE = 64 << 20
MOST_FILES = 512
COMPRESSED = 4
"""How many times larger a text is assumed to be than its compressed file."""
AT_ONCE = 8192
"""Samples that become arrays together."""
FIT = 0.5
"""The largest part of the tokens that a vocabulary may not know."""
OURS = re.compile(
    r"(parameters|manifest)\.json(\.part)?$|progress\.txt$|texts$|training_\d{3}\.(hdf5|json)(\.part)?$"
)
PR_SET_PDEATHSIG = 1


class RefusedError(ValueError):
    """The files cannot be made as requested; the message says why."""


REFUSALS = (RefusedError, bert_text.RefusedError, nvidia_hdf5.RefusedError)


def write_json(path: str, value: Any) -> None:
    """Write a value as JSON, completely or not at all."""
    with open(path + ".part", "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1, sort_keys=True)
    os.replace(path + ".part", path)


def read_json(path: str) -> Any:
    """Return the value of a JSON file; None where there is no such file, or another one."""
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError):
        return None


def say(data: str, text: str) -> None:
    """Print a line of progress and add it to progress.txt."""
    line = "%s %s" % (time.strftime("%H:%M:%S"), text)
    print(line, file=sys.stderr, flush=True)
    with open(os.path.join(data, "progress.txt"), "a", encoding="utf-8") as stream:
        stream.write(line + "\n")


# The request


def text_paths(request: Dict[str, Any]) -> List[str]:
    """Return the files that the patterns of the request match."""
    all_paths: List[str] = []
    for pattern in request["text_files"]:
        paths = sorted(path for path in glob.glob(pattern, recursive=True) if os.path.isfile(path))
        if not paths:
            raise RefusedError("%s_text=%s: found no such file" % (request["workload"], pattern))
        all_paths += paths
    return all_paths


def parameters(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return all that determines the content of the files."""
    if not os.path.isfile(request["vocab_file"]):
        raise RefusedError(
            "%s_vocab_file=%s: found no such file" % (request["workload"], request["vocab_file"])
        )
    texts = [nvidia_hdf5.stamp(path) for path in text_paths(request)]
    size = sum(
        text["bytes"] * (COMPRESSED if text["path"].endswith((".bz2", ".gz")) else 1) for text in texts
    )
    return {
        "version": VERSION,
        "texts": texts,
        "vocabulary": nvidia_hdf5.sha256(request["vocab_file"]),
        "files": max(request["files"], min(MOST_FILES, -(-size // TEXT_OF_A_FILE))),
        "seq_length": request["seq_length"],
        "predictions": request["predictions"],
        "seed": request["seed"],
    }


# Processes


def run_all(processes: int, jobs: List[Tuple[Any, ...]], ended: Callable[[int, Any], None]) -> None:
    """Call functions with their arguments in processes of their own, at most so many at a time.

    A job is (name, function, argument, ...). After each, `ended` gets how many have ended, and its name.
    """
    fork = multiprocessing.get_context("fork")
    waiting, count = jobs[::-1], 0
    running: Dict[Any, Tuple[str, Any]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                job = waiting.pop()
                process = fork.Process(target=_run_job, args=(os.getpid(), *job[1:]))
                process.start()
                running[process.sentinel] = job[0], process
            for sentinel in wait(list(running)):
                name, process = running.pop(sentinel)
                process.join()
                if process.exitcode:
                    raise SystemExit(3) if process.exitcode == 3 else RefusedError(_why(name, process))
                count += 1
                ended(count, name)
    finally:
        for _, process in running.values():
            process.terminate()
            process.join()


def _why(name: str, process: Any) -> str:
    return "%s: its process ended with status %s; -9 is also a lack of memory, which fewer processes need" % (
        name,
        process.exitcode,
    )


def _run_job(parent: int, function: Callable[..., None], *arguments: Any) -> None:
    # The lock is this process's too: it must not outlive its parent.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)
    try:
        function(*arguments)
    except REFUSALS as error:
        print("refused: %s" % error, file=sys.stderr, flush=True)
        sys.exit(3)


# Texts


def deal_out(path: str, number: int, files: int, folder: str) -> None:
    """Write the documents of a text into a directory, in turn into a piece for each file of samples."""
    new = folder + ".part"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    with ExitStack() as stack:
        pieces = [
            stack.enter_context(open(_piece(new, file), "w", encoding="utf-8", newline="\n"))
            for file in range(files)
        ]
        for count, document in enumerate(bert_text.documents(path)):
            pieces[(number + count) % files].write("\n".join(document) + "\n\n")
    os.rename(new, folder)


def _piece(folder: str, file: int) -> str:
    return os.path.join(folder, "%03d" % file)


def text_folders(data: str, expected: Dict[str, Any]) -> List[str]:
    """Return the directory of the pieces of each text."""
    return [os.path.join(data, "texts", "%05d" % number) for number in range(len(expected["texts"]))]


def deal_out_all(data: str, expected: Dict[str, Any], processes: int) -> None:
    """Deal out the texts that are not yet."""
    folders = text_folders(data, expected)
    jobs = [
        (text["path"], deal_out, text["path"], number, expected["files"], folders[number])
        for number, text in enumerate(expected["texts"])
        if not os.path.isdir(folders[number])
    ]
    run_all(
        processes, jobs, lambda count, name: say(data, "text %d of %d read: %s" % (count, len(jobs), name))
    )


# Files of samples


def shard_path(data: str, file: int) -> str:
    """Return the path of a file of samples."""
    return os.path.join(data, "training_%03d.hdf5" % file)


def record_path(path: str) -> str:
    """Return the path of the record of a file of samples."""
    return path[: -len(nvidia_hdf5.SUFFIX)] + ".json"


def read_documents(folders: List[str], file: int, tokens: bert_text.Tokens) -> List[bert_text.Document]:
    """Return a file's documents as tokens; raise RefusedError where it has too few, or of other words."""
    read: List[bert_text.Document] = []
    total = unknown = 0
    for folder in folders:
        for document in bert_text.documents(_piece(folder, file)):
            numbers = [sentence for sentence in map(tokens.encode, document) if sentence]
            total += sum(map(len, numbers))
            unknown += sum(sentence.count(tokens.unknown) for sentence in numbers)
            if numbers:
                read.append(numbers)
    if len(read) < 2:
        raise RefusedError(
            "the texts are too short: file %d has %d documents and needs 2" % (file, len(read))
        )
    if unknown > total * FIT:
        raise RefusedError(
            "the vocabulary is not that of the texts: it lacks %d of %d words and signs" % (unknown, total)
        )
    return read


def make_shard(data: str, file: int, expected: Dict[str, Any], tokens: bert_text.Tokens) -> None:
    """Make one file of samples and its record."""
    path = shard_path(data, file)
    read = read_documents(text_folders(data, expected), file, tokens)
    generator = random.Random("%d %d" % (expected["seed"], file))
    maker = bert_text.Maker(tokens, generator, expected["seq_length"], expected["predictions"])
    new_samples = (sample for _ in range(DUPLICATES) for sample in maker.samples(read))
    parts = list(_arrays(new_samples, expected))
    order = np.random.RandomState([expected["seed"], file]).permutation(
        sum(len(part["input_ids"]) for part in parts)
    )
    with h5py.File(path + ".part", "w") as stream:
        for key in parts[0]:
            array = np.concatenate([part[key] for part in parts])[order]
            stream.create_dataset(key, data=array, compression="gzip", compression_opts=1, track_times=False)
    write_json(record_path(path), {"samples": len(order), "sha256": nvidia_hdf5.sha256(path + ".part")})
    os.replace(path + ".part", path)


def _arrays(samples: Iterator[bert_text.Sample], expected: Dict[str, Any]) -> Iterator[Dict[str, Any]]:
    """Yield the arrays of some samples at a time, by their keys."""
    ended = False
    while not ended:
        some = list(islice(samples, AT_ONCE))
        ended = len(some) < AT_ONCE
        arrays = {
            key: np.zeros((len(some), *form), np.int8 if key in _SMALL else np.int32)
            for key, form in nvidia_hdf5.forms(expected["seq_length"], expected["predictions"]).items()
        }
        for row, sample in enumerate(some):
            size, masked = len(sample.tokens), len(sample.positions)
            arrays["input_ids"][row, :size] = sample.tokens
            arrays["input_mask"][row, :size] = 1
            arrays["segment_ids"][row, sample.second : size] = 1
            arrays["masked_lm_positions"][row, :masked] = sample.positions
            arrays["masked_lm_ids"][row, :masked] = sample.labels
            arrays["next_sentence_labels"][row] = sample.following
        yield arrays


_SMALL = ("input_mask", "segment_ids", "next_sentence_labels")


def fits(path: str) -> bool:
    """Return whether a file of samples is the one of its record."""
    record = read_json(record_path(path))
    return bool(record) and os.path.exists(path) and nvidia_hdf5.sha256(path) == record["sha256"]


def make_shards(data: str, expected: Dict[str, Any], request: Dict[str, Any]) -> None:
    """Make the files of samples that are missing or damaged."""
    missing = []
    for file in range(expected["files"]):
        path = shard_path(data, file)
        if not fits(path):
            missing.append(file)
            if os.path.exists(path):
                say(data, "%s is damaged and made again" % path)
    if not missing:
        return
    processes = request["processes"] or len(os.sched_getaffinity(0))
    say(data, "%d of %d files to make, %d processes" % (len(missing), expected["files"], processes))
    deal_out_all(data, expected, processes)
    tokens = bert_text.Tokens(request["vocab_file"])
    began = time.time()

    def ended(count: int, name: str) -> None:
        spent = time.time() - began
        left = spent / count * (len(missing) - count)
        samples = read_json(record_path(os.path.join(data, name)))["samples"]
        say(
            data,
            "file %d of %d made: %s, %d samples; %.0f s, about %.0f s left"
            % (count, len(missing), name, samples, spent, left),
        )

    jobs = [
        (os.path.basename(shard_path(data, file)), make_shard, data, file, expected, tokens)
        for file in missing
    ]
    run_all(processes, jobs, ended)


# The directory


def complete(
    data: str, expected: Dict[str, Any], stamps: Callable[[str, Dict[str, Any]], Any]
) -> Optional[Dict[str, Any]]:
    """Return the manifest where the files are those that are required, unchanged since they were checked."""
    manifest = read_json(os.path.join(data, "manifest.json"))
    try:
        if manifest["parameters"] == expected and manifest["stamps"] == stamps(data, expected):
            return dict(manifest)
    except (OSError, KeyError, TypeError):
        pass
    return None


def _stamps(data: str, expected: Dict[str, Any]) -> List[Dict[str, Any]]:
    return [nvidia_hdf5.stamp(shard_path(data, file)) for file in range(expected["files"])]


def begin(data: str, expected: Dict[str, Any], workload: str) -> None:
    """Empty the directory where its files have other parameters; refuse one with files of others."""
    os.makedirs(data, exist_ok=True)
    names = sorted(os.listdir(data))
    earlier = read_json(os.path.join(data, "parameters.json"))
    begun = re.compile(r"parameters\.json\.part$") if earlier is None else OURS
    foreign = [name for name in names if not begun.match(name)]
    if foreign:
        raise RefusedError(
            "%s: %s is not of scalebook; name a new directory (%s_home)" % (data, foreign[0], workload)
        )
    if earlier == expected:
        return
    for name in names:
        path = os.path.join(data, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    write_json(os.path.join(data, "parameters.json"), expected)


def verify(data: str, expected: Dict[str, Any]) -> Dict[str, Any]:
    """Return the manifest; raise RefusedError where a file has other samples than its record says."""
    records = []
    for file in range(expected["files"]):
        path = shard_path(data, file)
        record = read_json(record_path(path))
        samples = nvidia_hdf5.check(path, expected["seq_length"], expected["predictions"])
        if not fits(path) or samples != record["samples"]:
            raise RefusedError("%s: differs from what was written; run it again" % path)
        records.append([os.path.basename(path), record["samples"], record["sha256"]])
    return {
        "parameters": expected,
        "stamps": _stamps(data, expected),
        "samples": sum(record[1] for record in records),
        "identity": hashlib.sha256(json.dumps(records).encode()).hexdigest(),
    }


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    """Make the files unless they are complete; return what the program prints."""
    data = request["data"]
    expected = parameters(request)
    manifest = complete(data, expected, _stamps)
    if manifest or request["check"]:
        return dict(manifest or {}, changed=not manifest)
    os.makedirs(os.path.dirname(data), exist_ok=True)
    # Simulated nodes share a directory. Where others can write too, a link may wait under this name.
    with os.fdopen(os.open(data + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = complete(data, expected, _stamps)
        if manifest:
            return dict(manifest, changed=False)
        begin(data, expected, request["workload"])
        make_shards(data, expected, request)
        manifest = verify(data, expected)
        if parameters(request) != expected:
            raise RefusedError("the texts or the vocabulary changed while they were read; run it again")
        write_json(os.path.join(data, "manifest.json"), manifest)
        shutil.rmtree(os.path.join(data, "texts"), ignore_errors=True)
        say(data, "%d samples in %d files, checked" % (manifest["samples"], expected["files"]))
    return dict(manifest, changed=True)


def answer(prepare: Callable[[Dict[str, Any]], Dict[str, Any]]) -> None:
    """Print what `prepare` returns for the request in the first argument; refuse as it does."""
    try:
        result = prepare(json.loads(sys.argv[1]))
    except REFUSALS as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)
    print(json.dumps({key: result[key] for key in ("changed", "samples", "identity") if key in result}))


def main() -> None:
    """Make the files of the request in the first argument."""
    answer(prepare)


if __name__ == "__main__":
    main()
