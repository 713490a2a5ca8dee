# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make or check the data set of a BERT pretraining: text, vocabulary, tfrecord files, model configurations.

    python3 make_data.py '<JSON of Job>'       prints {"changed": bool, "manifest": {...}}

The text goes through tf-models-official's own create_pretraining_data.py. Without a text of the user's one is
made here: an invented language with a Zipf-like word frequency, the same on every machine for the same seed.
manifest.json is written last; a directory whose manifest fits the job is complete and left as it is.
Exit status 3: refused, the reason on standard error. Standard library only, Python 3.6 or newer.
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

SCHEMA = 1
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEXICON = 2000  # different words of the invented language
WHOLE = 900  # of them, the most frequent, in the vocabulary as whole words; the others are spelled


class RefusedError(ValueError):
    """The data set cannot be made or used as asked; the message says why."""


def draw(rng, items):
    """One item; rng.random() alone is promised to give the same numbers on every Python."""
    return items[int(rng.random() * len(items))]


def lexicon(seed):
    """LEXICON different invented words, most frequent (and on the whole shortest) first."""
    rng = random.Random(seed)
    onsets = ["b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr", "kl", "sh"]
    nuclei = ["a", "e", "i", "o", "u", "ai", "ea", "ou"]
    codas = ["", "", "", "n", "r", "s", "l", "m"]
    words = []
    seen = set()
    while len(words) < LEXICON:
        syllables = 1 + len(words) // 400 if rng.random() < 0.7 else 2
        word = "".join(draw(rng, onsets) + draw(rng, nuclei) + draw(rng, codas) for _ in range(syllables))
        if word not in seen:
            seen.add(word)
            words.append(word)
    return words


def vocabulary(seed):
    """Lines of the vocabulary file: the special tokens, letters, letters within a word, whole words."""
    return SPECIAL + list(LETTERS) + ["##" + letter for letter in LETTERS] + lexicon(seed)[:WHOLE]


def documents(seed, count):
    """Yield `count` documents, each a list of sentences (str)."""
    words = lexicon(seed)
    rng = random.Random(seed + 1)
    for _ in range(count):
        sentences = []
        for _ in range(6 + int(rng.random() * 14)):
            # Log-uniform rank: the frequency of a word falls as 1/rank.
            picked = [words[int(len(words) ** rng.random()) - 1] for _ in range(5 + int(rng.random() * 20))]
            sentences.append(" ".join(picked).capitalize() + " .")
        yield sentences


def corpus(seed, count):
    """The text in BERT's input format: a sentence a line, a blank line between documents."""
    return "\n\n".join("\n".join(document) for document in documents(seed, count)) + "\n"


def sha256(path):
    """Hex digest of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def expand(patterns, what):
    """Sorted files of a list of paths and glob patterns; refuses a pattern that fits no file."""
    files = []
    for pattern in patterns:
        found = sorted(path for path in glob.glob(pattern) if os.path.isfile(path))
        if not found:
            raise RefusedError("%s: no file fits %s" % (what, pattern))
        files += found
    return files


def stamp(path):
    """What tells that a file given by the user is the same still, without reading it: size and time."""
    status = os.stat(path)
    return {"path": path, "bytes": status.st_size, "modified": status.st_mtime_ns}


def vocabulary_size(path):
    """Number of lines of a vocabulary file."""
    with open(path, encoding="utf-8") as stream:
        return sum(1 for _ in stream)


def parameters(job):
    """Everything that decides what the data are, apart from the number of files."""
    given = {key: job[key] for key in ("seq_length", "predictions", "seed", "documents", "dupe_factor")}
    given["schema"] = SCHEMA
    given["configs"] = job["configs"]
    given["text_files"] = [stamp(path) for path in expand(job["text_files"], "tf2_bert_text_files")]
    given["tfrecords"] = [stamp(path) for path in expand(job["tfrecords"], "tf2_bert_tfrecords")]
    given["vocab_file"] = job["vocab_file"] and sha256(job["vocab_file"])
    return given


def complete(job, wanted):
    """The manifest of a finished data set that fits the job, or None."""
    try:
        with open(os.path.join(job["data"], "manifest.json"), encoding="utf-8") as stream:
            manifest = json.load(stream)
        # Finished files of the user's own are as many as they are; fewer than nodes were refused before.
        if manifest["parameters"] != wanted or (
            not job["tfrecords"] and len(manifest["tfrecords"]) < job["files"]
        ):
            return None
        for entry in manifest["tfrecords"] + manifest["made"]:
            if os.path.getsize(os.path.join(job["data"], entry["path"])) != entry["bytes"]:
                return None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # nothing there, or not ours: it is made anew
    return manifest


def write(path, text):
    """Write a text file."""
    with open(path, "w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


def run_create_pretraining_data(job, text_files, vocab, outputs):
    """Run the official script; raises RefusedError with its last lines where it fails."""
    environ = dict(os.environ, PYTHONPATH=job["pythonpath"], PYTHONNOUSERSITE="1", CUDA_VISIBLE_DEVICES="")
    command = [
        job["python"],
        os.path.join(job["pythonpath"], job["script"]),
        "--input_file=" + ",".join(text_files),
        "--output_file=" + ",".join(outputs),
        "--vocab_file=" + vocab,
        "--max_seq_length=%d" % job["seq_length"],
        "--max_predictions_per_seq=%d" % job["predictions"],
        "--random_seed=%d" % job["seed"],
        "--dupe_factor=%d" % job["dupe_factor"],
    ]
    done = subprocess.run(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True
    )
    if done.returncode:
        raise RefusedError(
            "create_pretraining_data.py ended with status %d: %s"
            % (done.returncode, " / ".join(done.stdout.splitlines()[-5:]))
        )


def model_configs(configs, tokens):
    """The configurations, each with at least `tokens` vocabulary entries.

    Our own `tiny` grows with the vocabulary. The size of any other is part of what is measured.
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


def entry(path, base):
    """Manifest entry of a file; its path relative to `base` where it lies below."""
    shown = os.path.relpath(path, base) if path.startswith(base + os.sep) else path
    return {"path": shown, "bytes": os.path.getsize(path), "sha256": sha256(path)}


def identity(manifest):
    """Digest that is the same on two nodes with the same data.

    The bytes of generated tfrecord files are left out: protocol buffers do not promise the order of a map.
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


def build(job, wanted, into):
    """Make the data set in the empty directory `into`; returns its manifest."""
    made = []
    vocab = os.path.join(into, "vocab.txt")
    if job["vocab_file"]:
        shutil.copyfile(job["vocab_file"], vocab)
    elif not (job["tfrecords"] or job["text_files"]):
        write(vocab, "\n".join(vocabulary(job["seed"])) + "\n")
    elif job["text_files"]:
        raise RefusedError("tf2_bert_text_files needs a vocabulary for its language: set tf2_bert_vocab_file")
    tokens = vocabulary_size(vocab) if os.path.exists(vocab) else 0
    if tokens:
        made.append(vocab)
    for name, config in sorted(model_configs(job["configs"], tokens).items()):
        path = os.path.join(into, "bert_config_%s.json" % name)
        write(path, json.dumps(config, indent=2, sort_keys=True) + "\n")
        made.append(path)

    if job["tfrecords"]:
        records = expand(job["tfrecords"], "tf2_bert_tfrecords")
    else:
        text_files = expand(job["text_files"], "tf2_bert_text_files")
        if not text_files:
            text = os.path.join(into, "corpus.txt")
            write(text, corpus(job["seed"], job["documents"]))
            text_files = [text]
            made.append(text)
        os.mkdir(os.path.join(into, "tfrecord"))
        records = [os.path.join(into, "tfrecord", "part-%05d.tfrecord" % i) for i in range(job["files"])]
        run_create_pretraining_data(job, text_files, vocab, records)
    for path in records:
        if os.path.getsize(path) == 0:
            raise RefusedError("%s is empty: the text is too short for %d files" % (path, len(records)))
    manifest = {
        "schema": SCHEMA,
        "parameters": wanted,
        "vocabulary": tokens,
        "tfrecords": [entry(path, into) for path in records],
        "made": [entry(path, into) for path in made],
    }
    manifest["identity"] = identity(manifest)
    return manifest


def prepare(job):
    """Make the data set unless it is complete; returns {"changed": bool, "manifest": dict}.

    Raises RefusedError and OSError. With job["check"] nothing is written.
    """
    wanted = parameters(job)
    if job["tfrecords"] and len(wanted["tfrecords"]) < job["nodes"]:
        raise RefusedError(
            "tf2_bert_tfrecords has %d files for %d nodes: they are dealt out, each node needs its own"
            % (len(wanted["tfrecords"]), job["nodes"])
        )
    manifest = complete(job, wanted)
    if manifest or job["check"]:
        return {"changed": not manifest, "manifest": manifest or {}}
    data = job["data"]
    os.makedirs(os.path.dirname(data), exist_ok=True)
    # Several logical nodes share a directory: the first makes the data, the others find them made.
    with open(data + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        manifest = complete(job, wanted)
        if manifest:
            return {"changed": False, "manifest": manifest}
        new = data + ".new"
        shutil.rmtree(new, ignore_errors=True)  # of an interrupted run, or not there
        os.mkdir(new)
        manifest = build(job, wanted, new)
        write(os.path.join(new, "manifest.json"), json.dumps(manifest, indent=1, sort_keys=True) + "\n")
        if os.path.exists(data):
            shutil.rmtree(data)
        os.rename(new, data)
    return {"changed": True, "manifest": manifest}


def main():
    """Read the job from the first argument, print the outcome."""
    try:
        print(json.dumps(prepare(json.loads(sys.argv[1]))))
    except RefusedError as exc:
        print("refused: %s" % exc, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
