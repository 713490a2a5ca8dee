# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make tokens of text files of the user's own, with a tokenizer file of Hugging Face; nothing is downloaded.

    python own_text.py '<JSON of the request>'      prints {"changed": bool, "manifest": {...}}

A .jsonl file has a document `{"text": …}` a line; any other file is a document. Each ends with the token of
the tokenizer for that, if it has one. tokens.bin has the numbers of all, 4 bytes each. Where the files of the
user are unchanged, nothing is done.

Exit status 3: the request was refused; the reason is on standard error.
"""

import array
import fcntl
import glob
import hashlib
import itertools
import json
import os
import sys
from typing import Any, Dict, Iterator, List

import data_stamp

ENDS = ("<|end_of_text|>", "<|endoftext|>", "</s>")
LINES = 4096  # that are tokenized at once
FILE = "tokens.bin"


class RefusedError(ValueError):
    """Files that cannot be used; the message names the variable, its value, what is wrong and what to do."""


def text_files(request: Dict[str, Any]) -> List[str]:
    """Return the files that the pattern matches, in order."""
    paths = sorted(path for path in glob.glob(request["own"], recursive=True) if os.path.isfile(path))
    if not paths:
        raise RefusedError(
            "%(workload)s_own_data=%(own)s: no file matches; name text or .jsonl files that every node has"
            % request
        )
    return paths


def read_tokenizer(request: Dict[str, Any]) -> Any:
    """Return the user's tokenizer."""
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(request["tokenizer"])
    except Exception as error:  # the package raises no other type
        raise RefusedError(
            "%s_tokenizer=%s: %s; name the tokenizer.json of a model of Hugging Face, on every node"
            % (request["workload"], request["tokenizer"], error)
        ) from error


def documents(path: str) -> Iterator[Iterator[str]]:
    """Yield each document of a file as its lines; raise RefusedError for what is not text or has none."""
    with open(path, encoding="utf-8") as file:
        if not path.endswith(".jsonl"):
            yield iter(file)
            return
        for number, line in enumerate(file, 1):
            try:
                text = json.loads(line)["text"] if line.strip() else ""
                yield iter(text.splitlines(True))
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise RefusedError(
                    '%s: line %d is not {"text": "…"} (%s: %s); correct it or leave the file out'
                    % (path, number, type(error).__name__, error)
                ) from error


def encode(paths: List[str], tokenizer: Any) -> Any:
    """Return the tokens of all files, one after the other."""
    tokens = array.array("I")
    ends = [tokenizer.token_to_id(name) for name in ENDS if tokenizer.token_to_id(name) is not None][:1]
    for path in paths:
        try:
            for lines in documents(path):
                while True:
                    batch = list(itertools.islice(lines, LINES))
                    for text in tokenizer.encode_batch(batch, add_special_tokens=False):
                        tokens.extend(text.ids)
                    if len(batch) < LINES:
                        break
                tokens.extend(ends)
        except UnicodeDecodeError as error:
            raise RefusedError("%s: not UTF-8 (%s); convert it or leave it out" % (path, error)) from error
    return tokens


def fill(request: Dict[str, Any], source: Dict[str, Any]) -> Dict[str, Any]:
    """Write the tokens and how they were made; return the manifest."""
    tokens = encode(text_files(request), read_tokenizer(request))

    def write() -> None:
        with open(os.path.join(request["data"], FILE), "wb") as file:
            tokens.tofile(file)

    digest = hashlib.sha256(tokens.tobytes()).hexdigest()
    manifest = {"tokens": len(tokens), "highest": max(tokens, default=0), "identity": digest}
    data_stamp.make(request["data"], dict(source, **manifest), write)
    return manifest


def complete(request: Dict[str, Any], source: Dict[str, Any]) -> Dict[str, Any]:
    """Return the manifest of tokens that were made of these very files, {} where there are none."""
    stamp = data_stamp.read(request["data"]) or {}
    fits = all(stamp.get(name) == value for name, value in source.items())
    return {name: stamp[name] for name in ("tokens", "highest", "identity")} if fits else {}


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    """Make the tokens unless they are complete; return what the program prints."""
    files = [*text_files(request), request["tokenizer"]]
    if not os.path.isfile(request["tokenizer"]):
        read_tokenizer(request)  # which says what is wrong
    # Size and time show that a file is unchanged, without reading it.
    states = [(path, os.stat(path)) for path in files]
    source = {
        "own": request["own"],
        "files": [[path, state.st_size, state.st_mtime_ns] for path, state in states],
    }
    manifest = complete(request, source)
    changed = not manifest
    if changed and not request["check"]:
        # Simulated nodes share one directory.
        with open(request["data"] + ".lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            manifest = complete(request, source) or fill(request, source)
    if manifest and manifest["tokens"] <= request["length"]:
        raise RefusedError(
            "%s_own_data=%s: %d tokens; a sequence needs %d: name more text, or a shorter %s_seq_length"
            % (
                request["workload"],
                request["own"],
                manifest["tokens"],
                request["length"] + 1,
                request["workload"],
            )
        )
    return {"changed": changed, "manifest": manifest}


class Tokens:
    """The tokens of a directory as a trainer reads them; `own` is the pattern of their files."""

    def __init__(self, workload: str, directory: str, vocabulary: int) -> None:
        import numpy
        import trainer_kit

        stamp = data_stamp.read(directory)
        self.own = stamp["own"]
        if stamp["highest"] >= vocabulary:
            trainer_kit.refuse(
                "%s_tokenizer makes the token %d, the vocabulary of this model ends at %d: use a tokenizer"
                " with fewer tokens, or another model" % (workload, stamp["highest"], vocabulary - 1)
            )
        self.numbers = numpy.memmap(os.path.join(directory, FILE), dtype="<u4", mode="r")

    def rows(self, starts: Any, length: int) -> Any:
        """Return `length` tokens from each of `starts`, shares of the text from 0 to below 1."""
        import numpy

        places = (numpy.asarray(starts) * (len(self.numbers) - length + 1)).astype(numpy.int64)
        return numpy.stack([self.numbers[place : place + length] for place in places]).astype(numpy.int64)


def main() -> None:
    """Make or check the tokens of the request on the command line."""
    try:
        print(json.dumps(prepare(json.loads(sys.argv[1]))))
    except RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
