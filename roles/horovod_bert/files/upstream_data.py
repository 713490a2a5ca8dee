# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Make what the fork's run_classifier.py reads: vocabularies, models' sizes, and pairs of sentences.

    python upstream_data.py DIRECTORY SAMPLES LENGTH SEED

Prints ``made``, or ``there`` where it had made the same before.

The task is the fork's own ``mrpc`` (GLUE's layout: a heading, then label, two numbers and two sentences,
with tabs between): whether two sentences say the same. Here, whether they are of the same half of an invented
language. Runs on the nodes, Python 3.6 or newer, standard library only; the same for the same arguments.
"""

import json
import os
import random
import sys

import made
import sizes

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # [PAD] is word 0, as the fork pads
DEV = 64  # pairs to evaluate with
VERSION = 1  # of what this file makes


def config(model):
    """Return what the fork calls bert_config.json."""
    return {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": model["hidden"],
        "initializer_range": 0.02,
        "intermediate_size": model["intermediate"],
        "max_position_embeddings": sizes.POSITIONS,
        "num_attention_heads": model["heads"],
        "num_hidden_layers": model["layers"],
        "type_vocab_size": sizes.SEGMENTS,
        "vocab_size": model["vocabulary"],
    }


def pairs(count, length, words, dice):
    """Return the task's table: two sentences a line, which fill `length` words with three of the fork's."""
    half = len(words) // 2
    lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
    for number in range(count):
        label = dice.randrange(2)
        side = dice.randrange(2)
        told = []
        for of in (side, side if label else 1 - side):
            size = (length - 3) // 2
            told.append(" ".join(words[of * half + int(half * dice.random() ** 2)] for _ in range(size)))
        lines.append("%d\t%d\t%d\t%s\t%s" % (label, 2 * number, 2 * number + 1, told[0], told[1]))
    return lines


def write(folder, name, lines):
    """Write a text file whole, with the same bytes on every system."""
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(lines) + "\n")


def main():
    """Write the files."""
    folder = sys.argv[1]
    count, length, seed = (int(argument) for argument in sys.argv[2:])
    wanted = {"version": VERSION, "samples": count, "length": length, "seed": seed}
    if made.of(folder) == wanted:
        print("there")
        return
    if not os.path.isdir(folder):
        os.makedirs(folder)
    # Words of the smallest vocabulary are in the others too. The fork splits words: letters alone stay whole.
    names = ["w" + "".join("abcdefghijklmnop"[n >> at & 15] for at in (12, 8, 4, 0)) for n in range(1 << 16)]
    for name in sorted(sizes.MODELS):
        model = sizes.MODELS[name]
        write(folder, "bert_config_%s.json" % name, [json.dumps(config(model), indent=2, sort_keys=True)])
        write(folder, "vocab_%s.txt" % name, SPECIAL + names[: model["vocabulary"] - len(SPECIAL)])
    words = names[: min(model["vocabulary"] for model in sizes.MODELS.values()) - len(SPECIAL)]
    dice = random.Random(seed)
    write(folder, "train.tsv", pairs(count, length, words, dice))
    write(folder, "dev.tsv", pairs(DEV, length, words, dice))
    made.note(folder, wanted)
    print("made")


if __name__ == "__main__":
    main()
