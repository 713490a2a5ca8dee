# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make samples of the user's own texts: a tokenizer for each model, and the numbers of the words as arrays.

    python make_data.py '<JSON of the job>'      prints {"changed": bool, "manifest": {...}}

The texts are those that texts.py selects. A tokenizer (WordPiece, as BERT's) is trained with them for the
vocabulary of each model, and train.npy and eval.npy [samples, words] of a model are written to its directory:
a text is cut to the length of a sample, or padded to it. manifest.json is written last; where it fits the job
and the files of the user are unchanged, nothing is done.

Exit status 3: the request was refused; the reason is on standard error.
"""

import fcntl
import hashlib
import json
import os
import shutil
import sys
from typing import Any, Dict, List, Optional

import numpy as np
import texts

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # the first numbers, as samples.py has them
SCHEMA = 1


def tokenizer(lines: List[str], vocabulary: int, length: int) -> Any:
    """Return a tokenizer that was trained with the lines, for samples of `length` words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    made = Tokenizer(models.WordPiece(unk_token=SPECIAL[1]))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL,
        # The letters alone may be more than a small vocabulary holds; those of Chinese are thousands.
        limit_alphabet=vocabulary // 2,
        show_progress=False,
    )
    made.train_from_iterator(lines, trainer)
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    made.enable_truncation(length)
    made.enable_padding(length=length)
    return made


def wanted_parameters(job: Dict[str, Any]) -> Dict[str, Any]:
    """Return all that determines the samples."""
    keys = ("own", "train_samples", "eval_samples", "length", "seed")
    stamps = [texts.stamp(path) for path in texts.files(job["own"])]
    return dict({key: job[key] for key in keys}, schema=SCHEMA, files=stamps)


def complete(job: Dict[str, Any], wanted: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the manifest where the samples are complete and fit the job, otherwise None."""
    try:
        with open(os.path.join(job["data"], "manifest.json"), encoding="utf-8") as file:
            manifest: Dict[str, Any] = json.load(file)
        sizes = {name: os.path.getsize(os.path.join(job["data"], name)) for name in manifest["bytes"]}
        return manifest if (manifest["parameters"], manifest["bytes"]) == (wanted, sizes) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no manifest, or not one of ours: the samples are made again


def fill(job: Dict[str, Any], wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Write the samples of every model and the manifest; return the manifest."""
    import models

    parts = texts.select(job["own"], job["train_samples"], job["eval_samples"], job["seed"])
    shutil.rmtree(job["data"], ignore_errors=True)
    sizes, sums = {}, {}
    for name in models.MODELS:
        shape = models.config(name)
        length = min(job["length"], shape.max_position_embeddings)
        encoder = tokenizer(parts["train"] + parts["eval"], shape.vocab_size, length)
        os.makedirs(os.path.join(job["data"], name))
        for part, lines in parts.items():
            words = np.array([text.ids for text in encoder.encode_batch(lines)], np.int32)
            path = "%s/%s.npy" % (name, part)
            np.save(os.path.join(job["data"], path), words)
            sizes[path] = os.path.getsize(os.path.join(job["data"], path))
            sums[path] = hashlib.sha256(words.tobytes()).hexdigest()
    identity = hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()
    manifest = {"parameters": wanted, "bytes": sizes, "identity": identity}
    with open(os.path.join(job["data"], "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1, sort_keys=True)
    return manifest


def prepare(job: Dict[str, Any]) -> Dict[str, Any]:
    """Make the samples unless they are complete; return what the program prints."""
    wanted = wanted_parameters(job)
    manifest = complete(job, wanted)
    if manifest or job["check"]:
        return {"changed": not manifest, "manifest": manifest or {}}
    os.makedirs(os.path.dirname(job["data"]), exist_ok=True)
    # Simulated nodes share one directory.
    with open(job["data"] + ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return {"changed": True, "manifest": complete(job, wanted) or fill(job, wanted)}


def main() -> None:
    """Make or check the samples of the job on the command line."""
    try:
        print(json.dumps(prepare(json.loads(sys.argv[1]))))
    except texts.RefusedError as error:
        print("refused: %s" % error, file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
