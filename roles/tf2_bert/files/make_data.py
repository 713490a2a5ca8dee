# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Generate or check a data set for BERT pretraining: text, vocabulary, TFRecord files, model configurations.

    python3 make_data.py '<JSON of the request>'       prints {"changed": bool, "manifest": {...}}

create_pretraining_data.py of tf-models-official converts the text to TFRecord files. Without a text from the
user, a text is generated: an invented language whose word frequencies follow Zipf's law. The same seed gives
the same text on every machine. manifest.json is written last; a directory whose manifest fits the request is
complete and is not changed.

Exit status 3: the request was refused; the reason is on standard error.

Requires Python 3.6 or later; standard library only.
"""

import fcntl
import glob
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set

SCHEMA = 1
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEXICON = 2000  # number of different words of the invented language
WHOLE = 900  # so many of the most frequent words are in the vocabulary; other words are split into letters


class RefusedError(ValueError):
    """The data set cannot be generated or used as requested; the message says why."""


def draw(rng: random.Random, items: Sequence[str]) -> str:
    """Return a random item; only rng.random() is guaranteed to return the same numbers with every Python."""
    return items[int(rng.random() * len(items))]


def lexicon(seed: int) -> List[str]:
    """Return LEXICON different invented words; the most frequent (and mostly shortest) words come first."""
    rng = random.Random(seed)
    onsets = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr", "kl", "sh"]
    nuclei = ["a", "e", "i", "o", "u", "ai", "ea", "ou"]
    codas = ["", "", "", "n", "r", "s", "l", "m"]
    words: List[str] = []
    words_so_far: Set[str] = set()
    while len(words) < LEXICON:
        syllables = 1 + len(words) // 400 if rng.random() < 0.7 else 2
        word = "".join(draw(rng, onsets) + draw(rng, nuclei) + draw(rng, codas) for _ in range(syllables))
        if word not in words_so_far:
            words_so_far.add(word)
            words.append(word)
    return words


def vocabulary(seed: int) -> List[str]:
    """Return the lines of the vocabulary file: special tokens, letters, inner letters, whole words."""
    return SPECIAL + list(LETTERS) + ["##" + letter for letter in LETTERS] + lexicon(seed)[:WHOLE]


def documents(seed: int, count: int) -> Iterator[List[str]]:
    """Yield `count` documents, each a list of sentences (str)."""
    words = lexicon(seed)
    rng = random.Random(seed + 1)
    for _ in range(count):
        sentences = []
        for _ in range(6 + int(rng.random() * 14)):
            # A log-uniform rank: the frequency of a word is proportional to 1/rank.
            picked = [words[int(len(words) ** rng.random()) - 1] for _ in range(5 + int(rng.random() * 20))]
            sentences.append(" ".join(picked).capitalize() + " .")
        yield sentences


def corpus(seed: int, count: int) -> str:
    """Return the text in BERT's input format: one sentence per line, a blank line between documents."""
    return "\n\n".join("\n".join(document) for document in documents(seed, count)) + "\n"


def sha256(path: str) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def expand(patterns: Sequence[str], what: str) -> List[str]:
    """Return the files that paths and glob patterns match; raise RefusedError if one matches no file."""
    files: List[str] = []
    for pattern in patterns:
        matching = sorted(path for path in glob.glob(pattern) if os.path.isfile(path))
        if not matching:
            raise RefusedError("%s: no file fits %s" % (what, pattern))
        files += matching
    return files


def stamp(path: str) -> Dict[str, Any]:
    """Return size and time of a file from the user: they show that it is unchanged, without reading it."""
    status = os.stat(path)
    return {"path": path, "bytes": status.st_size, "modified": status.st_mtime_ns}


def vocabulary_size(path: str) -> int:
    """Return the number of lines of a vocabulary file."""
    with open(path, encoding="utf-8") as stream:
        return sum(1 for _ in stream)


def parameters(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return all parameters that determine the content of the data, except the number of files."""
    values = {key: request[key] for key in ("seq_length", "predictions", "seed", "documents", "dupe_factor")}
    values["schema"] = SCHEMA
    values["configs"] = request["configs"]
    values["text_files"] = [stamp(path) for path in expand(request["text_files"], "tf2_bert_text_files")]
    values["tfrecords"] = [stamp(path) for path in expand(request["tfrecords"], "tf2_bert_tfrecords")]
    values["vocab_file"] = request["vocab_file"] and sha256(request["vocab_file"])
    return values


def complete(request: Dict[str, Any], expected: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the manifest if the data set is complete and fits the request, otherwise None."""
    try:
        with open(os.path.join(request["data"], "manifest.json"), encoding="utf-8") as stream:
            manifest: Dict[str, Any] = json.load(stream)
        # TFRecord files from the user can be any number; prepare() has refused fewer files than nodes.
        if manifest["parameters"] != expected or (
            not request["tfrecords"] and len(manifest["tfrecords"]) < request["files"]
        ):
            return None
        for entry in manifest["tfrecords"] + manifest["made"]:
            if os.path.getsize(os.path.join(request["data"], entry["path"])) != entry["bytes"]:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no manifest, or not one of ours: generate the data again
    return manifest


def write(path: str, text: str) -> None:
    """Write a text file."""
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def run_create_pretraining_data(
    request: Dict[str, Any], text_files: List[str], vocab: str, outputs: List[str]
) -> None:
    """Run the official script; raise RefusedError with its last lines if it fails."""
    environ = dict(
        os.environ, PYTHONPATH=request["pythonpath"], PYTHONNOUSERSITE="1", CUDA_VISIBLE_DEVICES=""
    )
    command = [
        request["python"],
        os.path.join(request["pythonpath"], request["script"]),
        "--input_file=" + ",".join(text_files),
        "--output_file=" + ",".join(outputs),
        "--vocab_file=" + vocab,
        "--max_seq_length=%d" % request["seq_length"],
        "--max_predictions_per_seq=%d" % request["predictions"],
        "--random_seed=%d" % request["seed"],
        "--dupe_factor=%d" % request["dupe_factor"],
    ]
    process = subprocess.run(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    if process.returncode:
        raise RefusedError(
            "create_pretraining_data.py ended with status %d: %s"
            % (process.returncode, " / ".join(process.stdout.splitlines()[-5:]))
        )


def model_configs(configs: Dict[str, Dict[str, Any]], tokens: int) -> Dict[str, Dict[str, Any]]:
    """Return the model configurations, each with at least `tokens` vocabulary entries.

    The vocabulary of our own model `tiny` grows as needed. Other models keep their size, because it is part
    of what is measured.
    """
    result = {}
    for name, config in configs.items():
        config = dict(config)
        if name == "tiny":
            config["vocab_size"] = max(config["vocab_size"], tokens)
        if config["vocab_size"] < tokens:
            raise RefusedError(
                "the vocabulary has %d entries, the model %s only vocab_size %d"
                % (tokens, name, config["vocab_size"])
            )
        result[name] = config
    return result


def entry(path: str, base: str) -> Dict[str, Any]:
    """Return the manifest entry of a file; its path is relative to `base` if the file is below it."""
    written_path = os.path.relpath(path, base) if path.startswith(base + os.sep) else path
    return {"path": written_path, "bytes": os.path.getsize(path), "sha256": sha256(path)}


def identity(manifest: Dict[str, Any]) -> str:
    """Return a checksum that is the same on two nodes with the same data.

    It leaves out the content of generated TFRecord files: protocol buffers do not guarantee the order of a
    map.
    """
    own = bool(manifest["parameters"]["tfrecords"])
    facts = {
        "parameters": dict(manifest["parameters"], text_files=[], tfrecords=[]),
        "made": manifest["made"],
        "tfrecords": [
            (os.path.basename(e["path"]), e["bytes"], e["sha256"] if own else "")
            for e in manifest["tfrecords"]
        ],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode("utf-8")).hexdigest()


def build(request: Dict[str, Any], expected: Dict[str, Any], into: str) -> Dict[str, Any]:
    """Generate the data set in the empty directory `into`; return its manifest."""
    new_files = []
    vocab = os.path.join(into, "vocab.txt")
    if request["vocab_file"]:
        shutil.copyfile(request["vocab_file"], vocab)
    elif not (request["tfrecords"] or request["text_files"]):
        write(vocab, "\n".join(vocabulary(request["seed"])) + "\n")
    elif request["text_files"]:
        raise RefusedError("tf2_bert_text_files needs a vocabulary for its language: set tf2_bert_vocab_file")
    tokens = vocabulary_size(vocab) if os.path.exists(vocab) else 0
    if tokens:
        new_files.append(vocab)
    for name, config in sorted(model_configs(request["configs"], tokens).items()):
        path = os.path.join(into, "bert_config_%s.json" % name)
        write(path, json.dumps(config, indent=2, sort_keys=True) + "\n")
        new_files.append(path)

    if request["tfrecords"]:
        records = expand(request["tfrecords"], "tf2_bert_tfrecords")
    else:
        text_files = expand(request["text_files"], "tf2_bert_text_files")
        if not text_files:
            text = os.path.join(into, "corpus.txt")
            write(text, corpus(request["seed"], request["documents"]))
            text_files = [text]
            new_files.append(text)
        os.mkdir(os.path.join(into, "tfrecord"))
        records = [os.path.join(into, "tfrecord", "part-%05d.tfrecord" % i) for i in range(request["files"])]
        run_create_pretraining_data(request, text_files, vocab, records)
    for path in records:
        if os.path.getsize(path) == 0:
            raise RefusedError("%s is empty: the text is too short for %d files" % (path, len(records)))
    manifest = {
        "schema": SCHEMA,
        "parameters": expected,
        "vocabulary": tokens,
        "tfrecords": [entry(path, into) for path in records],
        "made": [entry(path, into) for path in new_files],
    }
    manifest["identity"] = identity(manifest)
    return manifest


def refuse_foreign(data: str) -> None:
    """Raise RefusedError for a directory that holds anything that this program does not write.

    Without a manifest, which each directory of this program has from the start, everything is the user's.
    """
    names = sorted(os.listdir(data))
    ours = ("manifest.json", "vocab.txt", "corpus.txt", "tfrecord", "bert_config_")
    foreign = [name for name in names if not name.startswith(ours) or "manifest.json" not in names]
    if foreign:
        raise RefusedError("tf2_bert_data=%s: %s would be removed; name a new directory" % (data, foreign[0]))


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    """Generate the data set unless it is complete; return {"changed": bool, "manifest": dict}.

    Raises RefusedError and OSError. Writes nothing if request["check"] is true.
    """
    expected = parameters(request)
    if request["tfrecords"] and len(expected["tfrecords"]) < request["nodes"]:
        raise RefusedError(
            "tf2_bert_tfrecords has %d files for %d nodes: they are dealt out, each node needs its own"
            % (len(expected["tfrecords"]), request["nodes"])
        )
    manifest = complete(request, expected)
    if manifest or request["check"]:
        return {"changed": not manifest, "manifest": manifest or {}}
    data = request["data"]
    os.makedirs(os.path.dirname(data), exist_ok=True)
    # Simulated nodes share a directory: the first one generates the data, the others use them.
    # Where others can write too, as in /tmp, a link may wait under this name.
    with os.fdopen(os.open(data + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = complete(request, expected)
        if manifest:
            return {"changed": False, "manifest": manifest}
        new = data + ".new"
        shutil.rmtree(new, ignore_errors=True)  # left by an interrupted run, or absent
        os.mkdir(new)
        manifest = build(request, expected, new)
        write(os.path.join(new, "manifest.json"), json.dumps(manifest, indent=1, sort_keys=True) + "\n")
        if os.path.exists(data):
            refuse_foreign(data)
            shutil.rmtree(data)
        os.rename(new, data)
    return {"changed": True, "manifest": manifest}


def main() -> int:
    """Read the request from the first argument and print the result."""
    try:
        print(json.dumps(prepare(json.loads(sys.argv[1]))))
    except RefusedError as exc:
        print("refused: %s" % exc, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
