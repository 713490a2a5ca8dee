# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make the data that the fork's run_classifier.py reads: vocabularies, model sizes, and pairs of sentences.

    python make_data.py DIRECTORY SAMPLES LENGTH SEED [DATA_DIR]

Prints ``made``, or ``unchanged`` where the same data exists already, or DATA_DIR has the user's own.

The task is the fork's ``mrpc`` (GLUE's layout: a heading, then label, two numbers and two sentences,
separated by tabs): whether two sentences have the same meaning. Here, whether they are of the same half of an
artificial language. The same arguments give the same bytes. Runs on the nodes, Python 3.6 or newer, standard
library only.
"""

import json
import os
import random
import sys
from typing import Any, Dict, Iterable, List

import bert_sizes
import data_stamp

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # [PAD] is word 0, as the fork pads
DEV = 64  # pairs to evaluate with
VERSION = 1  # of the data that this program makes


def config(model: Dict[str, int]) -> Dict[str, Any]:
    """Return the content of bert_config.json."""
    return {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": model["hidden"],
        "initializer_range": 0.02,
        "intermediate_size": model["intermediate"],
        "max_position_embeddings": bert_sizes.POSITIONS,
        "num_attention_heads": model["heads"],
        "num_hidden_layers": model["layers"],
        "type_vocab_size": bert_sizes.SEGMENTS,
        "vocab_size": model["vocabulary"],
    }


def pairs(count: int, length: int, words: List[str], rng: random.Random) -> List[str]:
    """Return the lines of the table: two sentences each, `length` words with the three of the fork."""
    half = len(words) // 2
    lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    for number in range(count):
        label = rng.randrange(2)
        side = rng.randrange(2)
        sentences = []
        for which in (side, side if label else 1 - side):
            size = (length - 3) // 2
            sentences.append(
                " ".join(words[which * half + int(half * rng.random() ** 2)] for _ in range(size))
            )
        lines.append("%d\t%d\t%d\t%s\t%s" % (label, 2 * number, 2 * number + 1, sentences[0], sentences[1]))
    return lines


def write(folder: str, name: str, lines: Iterable[str]) -> None:
    """Write a text file, with the same bytes on every system."""
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")


def main() -> None:
    """Write the files."""
    folder = sys.argv[1]
    count, length, seed = (int(argument) for argument in sys.argv[2:5])
    values = {"version": VERSION, "samples": count, "length": length, "seed": seed}
    if any(sys.argv[5:]) or data_stamp.read(folder) == values:
        print("unchanged")
        return
    if not os.path.isdir(folder):
        os.makedirs(folder)
    # The smallest vocabulary is part of the others. The fork splits words; words of letters only stay whole.
    names = [
        "w" + "".join("abcdefghijklmnop"[n >> shift & 15] for shift in (12, 8, 4, 0)) for n in range(1 << 16)
    ]
    for name in sorted(bert_sizes.MODELS):
        model = bert_sizes.MODELS[name]
        write(folder, "bert_config_%s.json" % name, [json.dumps(config(model), indent=2, sort_keys=True)])
        write(folder, "vocab_%s.txt" % name, SPECIAL + names[: model["vocabulary"] - len(SPECIAL)])
    words = names[: min(model["vocabulary"] for model in bert_sizes.MODELS.values()) - len(SPECIAL)]
    rng = random.Random(seed)
    write(folder, "train.tsv", pairs(count, length, words, rng))
    write(folder, "dev.tsv", pairs(DEV, length, words, rng))
    data_stamp.write(folder, values)
    print("made")


if __name__ == "__main__":
    main()
