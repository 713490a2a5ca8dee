# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Images like those of ImageNet for tests: JPEGs of 500 x 375 with coloured noise.

Their bytes are the same on every machine, whichever libraries it has: no encoder is used. Pieces of noise are
encoded once, and an image is a random choice of them, so a thousand images take as long as three. A piece is
a row of blocks that ends with a restart marker, which is why they fit together. The amplitudes fall with the
frequency as those of photographs do, and an image has about as many bytes as one of ImageNet.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

import random
import struct
from typing import Iterator, List, Tuple

WIDTH, HEIGHT = 500, 375  # the commonest size in ImageNet
VERSION = 1  # of the bytes that this module makes
SEED = 2020

UNIT = 16  # pixels of a unit in both directions: 2 x 2 blocks of light, one of each colour
COLUMNS, ROWS = -(-WIDTH // UNIT), -(-HEIGHT // UNIT)
PIECES = 64  # rows of units from which every image is put together
STEP = 8  # of quantisation, for all frequencies
LIGHT, COLOUR = 48, 12  # the largest coefficients of the two kinds of blocks
LARGEST = 64  # mean of a block, in steps
COEFFICIENTS = 64

# All codes have one length, so a symbol's code is its place in the list of symbols.
MEANS = list(range(12))  # numbers of bits
MEAN_CODE = 4
RUNS = sorted([0x00, 0xF0] + [zeros << 4 | bits for zeros in range(16) for bits in range(1, 11)])
RUN_CODE = 8
END, SIXTEEN_ZEROS = 0x00, 0xF0


def number(value: int) -> str:
    """Return the bits of a number other than 0, whose count its symbol tells."""
    count = abs(value).bit_length()
    return format(value if value > 0 else value + (1 << count) - 1, "0%db" % count)


def mean(difference: int) -> str:
    """Return the bits of a block's mean, as a difference to that of the block before it."""
    code = format(MEANS.index(abs(difference).bit_length()), "0%db" % MEAN_CODE)
    return code + (number(difference) if difference else "")


CODES = {symbol: format(place, "0%db" % RUN_CODE) for place, symbol in enumerate(RUNS)}


def frequencies(noise: random.Random, largest: int) -> str:
    """Return the bits of a block's other coefficients, whose amplitudes fall with the frequency."""
    bits, zeros = [], 0
    for place in range(1, COEFFICIENTS):
        value = int((2 * noise.random() - 1) * largest / place)
        if not value:
            zeros += 1
            continue
        bits += [CODES[SIXTEEN_ZEROS]] * (zeros // 16)
        bits += [CODES[zeros % 16 << 4 | abs(value).bit_length()], number(value)]
        zeros = 0
    return "".join(bits) + (CODES[END] if zeros else "")


def piece(noise: random.Random) -> bytes:
    """Return a row of units, without its restart marker."""
    bits: List[str] = []
    before = [0, 0, 0]
    for _ in range(COLUMNS):
        for component, largest in enumerate((LIGHT, COLOUR, COLOUR)):
            for _ in range(1 if component else 4):
                now = int((2 * noise.random() - 1) * LARGEST)
                bits += [mean(now - before[component]), frequencies(noise, largest)]
                before[component] = now
    text = "".join(bits)
    text += "1" * (-len(text) % 8)
    # A byte of ones would begin a marker.
    return int(text, 2).to_bytes(len(text) // 8, "big").replace(b"\xff", b"\xff\x00")


def segment(marker: int, body: bytes) -> bytes:
    """Return a segment of the file's head."""
    return struct.pack(">BBH", 0xFF, marker, len(body) + 2) + body


def codes(kind: int, symbols: List[int], length: int) -> bytes:
    """Return a table of codes of one length; `kind` is 0 for means and 0x10 for the others."""
    counts = [len(symbols) if bits == length else 0 for bits in range(1, 17)]
    return segment(0xC4, bytes([kind] + counts + symbols))


def head() -> bytes:
    """Return everything before the pieces."""
    components: List[Tuple[int, int]] = [(1, 0x22), (2, 0x11), (3, 0x11)]  # (number, blocks in a unit)
    frame = struct.pack(">BHHB", 8, HEIGHT, WIDTH, len(components))
    frame += b"".join(bytes([number, blocks, 0]) for number, blocks in components)
    scan = bytes([len(components)]) + b"".join(bytes([number, 0]) for number, _ in components)
    return b"".join(
        [
            b"\xff\xd8",
            segment(0xE0, b"JFIF\x00" + struct.pack(">HBHHBB", 0x0101, 0, 1, 1, 0, 0)),
            segment(0xDB, bytes([0] + [STEP] * COEFFICIENTS)),
            segment(0xC0, frame),
            codes(0x00, MEANS, MEAN_CODE),
            codes(0x10, RUNS, RUN_CODE),
            segment(0xDD, struct.pack(">H", COLUMNS)),
            segment(0xDA, scan + bytes([0, COEFFICIENTS - 1, 0])),
        ]
    )


def images(count: int) -> Iterator[bytes]:
    """Yield `count` JPEGs. More of them begin with the same ones."""
    noise = random.Random(SEED)
    pieces = [piece(noise) for _ in range(PIECES)]
    first = head()
    for _ in range(count):
        # Only random() is the same in all versions of Python.
        chosen = [pieces[int(noise.random() * PIECES)] for _ in range(ROWS)]
        marked = [part + bytes([0xFF, 0xD0 + row % 8]) for row, part in enumerate(chosen[:-1])]
        yield first + b"".join(marked) + chosen[-1] + b"\xff\xd9"
