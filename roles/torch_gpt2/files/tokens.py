# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sequences of tokens on the device: invented ones, or those of a file of 16-bit tokens, one after the other.

usage: tokens.py FILE SEQ-LENGTH [VOCABULARY]

As a program it checks the file and prints what it is as one JSON object, or a sentence and status 1.
"""

import hashlib
import json
import os
import sys
from typing import Any, Dict, Tuple

import numpy as np

VOCABULARY = 50257  # of GPT-2; the trainer checks that of its model
POOL = 4  # invented batches that take turns
CHUNK = 1 << 24  # tokens that are looked at together


class TokenError(ValueError):
    """A file that cannot be used; the message says why and what is needed."""


def read(path: str, seq: int, vocabulary: int) -> Any:
    """Return the tokens of a file, mapped into memory; raise TokenError where they do not fit."""
    try:
        size = os.path.getsize(path)
    except OSError as error:
        raise TokenError("%s: %s" % (path, error.strerror)) from None
    if size % 2 or size < 2 * (seq + 1):
        raise TokenError(
            "%s has %d bytes, needed are %d or more, two for each token (unsigned, little-endian)"
            % (path, size, 2 * (seq + 1))
        )
    tokens = np.memmap(path, dtype="<u2", mode="r")
    highest = max(int(tokens[start : start + CHUNK].max()) for start in range(0, len(tokens), CHUNK))
    if highest >= vocabulary:
        raise TokenError(
            "%s has the token %d, the vocabulary of the model ends at %d" % (path, highest, vocabulary - 1)
        )
    return tokens


def describe(path: str, seq: int, vocabulary: int = VOCABULARY) -> Dict[str, Any]:
    """Return the number of tokens and the checksum of a file."""
    tokens, digest = read(path, seq, vocabulary), hashlib.sha256()
    for start in range(0, len(tokens), CHUNK):
        digest.update(tokens[start : start + CHUNK].tobytes())
    return {"tokens": len(tokens), "sha256": digest.hexdigest()}


class Sequences:
    """Endless batches (tokens, next tokens), each [batch, seq] on the device, by replica.

    Without `tokens` they are invented: made once with a seed and kept on the device.
    """

    def __init__(self, tokens: Any, batch: int, seq: int, vocabulary: int, seed: int, device: Any) -> None:
        import torch

        self.torch, self.tokens, self.batch, self.seq, self.device = torch, tokens, batch, seq, device
        self.random = np.random.RandomState(seed)
        self.pool = []
        if tokens is None:
            for _ in range(POOL):
                # A log-uniform rank: the frequency of a token falls as 1/rank (Zipf's law).
                ranks = vocabulary ** self.random.random_sample((batch, seq + 1))
                self.pool.append(self._copied(np.minimum(ranks.astype(np.int64) - 1, vocabulary - 1)))
        self.turn = 0

    def _copied(self, rows: Any) -> Tuple[Any, Any]:
        whole = self.torch.from_numpy(rows)
        if self.device.type == "cuda":
            whole = whole.pin_memory().to(self.device, non_blocking=True)
        return whole[:, :-1].contiguous(), whole[:, 1:].contiguous()

    def __next__(self) -> Tuple[Any, Any]:
        if self.tokens is None:
            self.turn += 1
            return self.pool[self.turn % POOL]
        starts = self.random.randint(0, len(self.tokens) - self.seq, self.batch)
        rows = np.stack([self.tokens[start : start + self.seq + 1] for start in starts])
        return self._copied(rows.astype(np.int64))


def main() -> None:
    """Print the description."""
    try:
        print(json.dumps(describe(sys.argv[1], *map(int, sys.argv[2:]))))
    except TokenError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
