# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make samples of the user's own texts: a tokenizer for each model, and the numbers of the words as arrays.

    python make_data.py '<JSON of the request>'      prints {"changed": bool, "manifest": {...}}

The texts are lines of text files, a sample each, or a directory that `datasets` wrote (save_to_disk). A seed
selects the samples. Text files, and a data set without a split for evaluation, give both parts, which have no
sample in common. A tokenizer (WordPiece, as BERT's) gets a vocabulary from them, of the size of each model's,
and train.npy and eval.npy [samples, words] of a model are written to its directory: a text is cut to the
length of a sample, or padded to it. manifest.json is written last; where it fits the request and the files of
the user are unchanged, nothing is done.

Exit status 3: the request was refused; the reason is on standard error.
"""

import collections
import fcntl
import glob
import hashlib
import json
import os
import shutil
import sys
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # the first numbers, as word_samples.py has them
SCHEMA = 1
COLUMN = "text"
EVALUATION = ("validation", "test")
"""Splits of a data set that the samples of the evaluation are taken from; the first that it has."""


class RefusedError(ValueError):
    """Data that cannot be used; the message names the path, what was found and what is expected."""


def is_dataset(path: str) -> bool:
    """Return whether `datasets` wrote a directory."""
    return any(os.path.exists(os.path.join(path, name)) for name in ("state.json", "dataset_dict.json"))


def text_files(path: str) -> List[str]:
    """Return the files of a data set or those that a pattern matches, in order."""
    if is_dataset(path):
        paths = [os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names]
    else:
        paths = [name for name in glob.glob(path) if os.path.isfile(name)]
    if not paths:
        raise RefusedError(
            "hf_mlm_own_data=%s: found neither text files nor a directory of save_to_disk (datasets)" % path
        )
    return sorted(paths)


def stamp(path: str) -> List[Any]:
    """Return path, size and time of a file: they show that it is unchanged, without reading it."""
    status = os.stat(path)
    return [path, status.st_size, status.st_mtime_ns]


def read_lines(path: str) -> List[str]:
    """Return the lines of text files that are not blank."""
    lines: List[str] = []
    for name in text_files(path):
        try:
            with open(name, encoding="utf-8") as file:
                lines += [line.strip() for line in file if line.strip()]
        except UnicodeDecodeError as error:
            raise RefusedError("%s: found bytes that are not UTF-8 (%s)" % (name, error)) from error
    return lines


def read_dataset(path: str) -> Dict[str, Any]:
    """Return the splits that samples are taken from, as `train` and, if there is one, `eval`."""
    try:
        import datasets
    except ImportError as error:
        raise RefusedError(
            "%s: the interpreter has no package datasets, which reads this directory: %s" % (path, error)
        ) from error
    dataset = datasets.load_from_disk(path)
    splits = dict(dataset) if isinstance(dataset, dict) else {"train": dataset}
    if "train" not in splits:
        raise RefusedError("%s: found the splits %s, expected train" % (path, ", ".join(sorted(splits))))
    held = [splits[name] for name in EVALUATION if name in splits][:1]
    parts = dict(zip(("train", "eval"), [splits["train"], *held], strict=False))
    for part in parts.values():
        if COLUMN not in part.column_names:
            raise RefusedError(
                "%s: found the columns %s, expected %s" % (path, ", ".join(part.column_names), COLUMN)
            )
    return parts


def choose(path: str, pool: Any, seed: int, *counts: Tuple[str, int]) -> Dict[str, Any]:
    """Return indices of samples by the name of their part, each sample once; `counts` has how many."""
    count = sum(number for _, number in counts)
    if len(pool) < count:
        names = " and ".join("hf_mlm_%s_samples=%d" % pair for pair in counts)
        raise RefusedError("%s: found %d samples, expected %d for %s" % (path, len(pool), count, names))
    order = np.random.RandomState(seed).permutation(len(pool)).tolist()
    chosen = {}
    for name, number in counts:
        chosen[name], order = order[:number], order[number:]
    return chosen


def select(path: str, train: int, evaluation: int, seed: int) -> Dict[str, List[str]]:
    """Return the texts of both parts, `train` and `eval`."""
    if not is_dataset(path):
        lines = read_lines(path)
        chosen = choose(path, lines, seed, ("train", train), ("eval", evaluation))
        return {part: [lines[index] for index in indices] for part, indices in chosen.items()}
    pools = read_dataset(path)
    if "eval" in pools:
        chosen = choose(path, pools["train"], seed, ("train", train))
        chosen.update(choose(path, pools["eval"], seed, ("eval", evaluation)))
    else:
        chosen = choose(path, pools["train"], seed, ("train", train), ("eval", evaluation))
    return {
        part: pools.get(part, pools["train"]).select(indices)[COLUMN][:] for part, indices in chosen.items()
    }


def vocabulary(words: Any, size: int) -> List[str]:
    """Return at most `size` tokens: the special ones, letters, alone and inside a word, and counted words.

    The most frequent are taken; of equally frequent ones the first in the order of their letters. The
    trainers of the package tokenizers give other numbers with each run, and nodes need the same samples.
    """
    letters: Any = collections.Counter()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
    # The letters alone may be more than a small vocabulary holds; those of Chinese are thousands.
    chosen = by_count(letters)[: size // 4]
    tokens = SPECIAL + chosen + ["##" + letter for letter in chosen]
    token_set = set(tokens)
    return (tokens + [word for word in by_count(words) if word not in token_set])[:size]


def by_count(counts: Any) -> List[str]:
    """Return the keys of a counter, the most frequent first."""
    return sorted(counts, key=lambda key: (-counts[key], key))


def tokenizer(lines: List[str], size: int, length: int) -> Any:
    """Return a WordPiece tokenizer with a vocabulary of the lines, for samples of `length` words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    normalizer, splitter = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    words = collections.Counter(
        word for line in lines for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(line))
    )
    tokens = vocabulary(words, size)
    numbers = {token: number for number, token in enumerate(tokens)}
    new_tokenizer = Tokenizer(models.WordPiece(numbers, unk_token=SPECIAL[1]))
    new_tokenizer.normalizer, new_tokenizer.pre_tokenizer = normalizer, splitter
    new_tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, numbers[name]) for name in ("[CLS]", "[SEP]")]
    )
    new_tokenizer.enable_truncation(length)
    new_tokenizer.enable_padding(length=length)
    return new_tokenizer


def wanted_parameters(request: Dict[str, Any]) -> Dict[str, Any]:
    """Return all that determines the samples."""
    keys = ("own", "train_samples", "eval_samples", "length", "seed")
    stamps = [stamp(path) for path in text_files(request["own"])]
    return dict({key: request[key] for key in keys}, schema=SCHEMA, files=stamps)


def complete(request: Dict[str, Any], expected: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the manifest where the samples are complete and fit the request, otherwise None."""
    try:
        with open(os.path.join(request["data"], "manifest.json"), encoding="utf-8") as file:
            manifest: Dict[str, Any] = json.load(file)
        sizes = {name: os.path.getsize(os.path.join(request["data"], name)) for name in manifest["bytes"]}
        return manifest if (manifest["parameters"], manifest["bytes"]) == (expected, sizes) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no manifest, or not one of ours: the samples are made again


def fill(request: Dict[str, Any], expected: Dict[str, Any]) -> Dict[str, Any]:
    """Write the samples of every model and the manifest; return the manifest."""
    import models

    parts = select(request["own"], request["train_samples"], request["eval_samples"], request["seed"])
    shutil.rmtree(request["data"], ignore_errors=True)
    sizes, sums = {}, {}
    for name in models.MODELS:
        shape = models.config(name)
        length = min(request["length"], shape.max_position_embeddings)
        encoder = tokenizer(parts["train"] + parts["eval"], shape.vocab_size, length)
        os.makedirs(os.path.join(request["data"], name))
        for part, lines in parts.items():
            words = np.array([text.ids for text in encoder.encode_batch(lines)], np.int32)
            path = "%s/%s.npy" % (name, part)
            np.save(os.path.join(request["data"], path), words)
            sizes[path] = os.path.getsize(os.path.join(request["data"], path))
            sums[path] = hashlib.sha256(words.tobytes()).hexdigest()
    identity = hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()
    manifest = {"parameters": expected, "bytes": sizes, "identity": identity}
    with open(os.path.join(request["data"], "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, sort_keys=True)
    return manifest


def prepare(request: Dict[str, Any]) -> Dict[str, Any]:
    """Make the samples unless they are complete; return what the program prints."""
    parameters = wanted_parameters(request)
    manifest = complete(request, parameters)
    if manifest or request["check"]:
        return {"changed": not manifest, "manifest": manifest or {}}
    os.makedirs(os.path.dirname(request["data"]), exist_ok=True)
    # Simulated nodes share one directory.
    with open(request["data"] + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {"changed": True, "manifest": complete(request, parameters) or fill(request, parameters)}


def main() -> None:
    """Make or check the samples of the request on the command line."""
    try:
        print(json.dumps(prepare(json.loads(sys.argv[1]))))
    except RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
