#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Check that a file holds one OpenPGP public key, the wanted one, and write it as apt's keyring.

    read_key.py FINGERPRINT WITHDRAWN FILE [KEYRING]

FINGERPRINT: all 40 hexadecimal digits. WITHDRAWN: ends of fingerprints to refuse, separated by commas.
Exit status 1 and one sentence on stderr where the key is another one. A bare host has no gpg, and apt
says only that a repository is not signed; the signatures themselves remain apt's to verify.
Packets, fingerprints and subpackets: RFC 4880, sections 4.2, 12.2 and 5.2.3.
"""

import base64
import binascii
import hashlib
import re
import struct
import sys
import time

SIGNATURE, PUBLIC_KEY = 2, 6
KEY_EXPIRES, CREATED, EXPIRES_KINDS = 9, 2, (0x10, 0x11, 0x12, 0x13, 0x1F)


class KeyRefusedError(ValueError):
    """The file does not hold the key that is wanted."""


def dearmor(data):
    """Return the packets (bytes) of a key file, which may be ASCII-armored (section 6.2)."""
    if not data.lstrip().startswith(b"-----BEGIN"):
        return data
    blocks = re.findall(
        rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(.*?)-----END PGP PUBLIC KEY BLOCK-----", data, re.S
    )
    packets = b""
    for block in blocks:
        body = re.split(rb"\r?\n[ \t]*\r?\n", b"\n" + block, maxsplit=1)[-1]
        lines = [line.strip() for line in body.splitlines()]
        try:
            # The line that starts with `=` is a checksum, which OpenPGP itself has come to drop.
            packets += base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")))
        except binascii.Error as error:
            raise KeyRefusedError("the armor is damaged (%s)" % error) from error
    return packets


def _length(data, at):
    """Return (length, offset after it) of a new-format length octet sequence at an offset."""
    first = data[at]
    if first < 192:
        return first, at + 1
    if first < 224:
        return ((first - 192) << 8) + data[at + 1] + 192, at + 2
    if first == 255:
        return struct.unpack(">I", data[at + 1 : at + 5])[0], at + 5
    raise KeyRefusedError("a packet has a partial length, which keys do not have")


def packets(data):
    """Yield (tag, body) of every packet."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise KeyRefusedError("the file is no OpenPGP key")
        if head & 0x40:
            tag = head & 0x3F
            length, at = _length(data, at + 1)
        else:
            tag, size = (head >> 2) & 0x0F, (1, 2, 4, 0)[head & 3]
            if not size:
                raise KeyRefusedError("a packet has no length, which keys do not have")
            length = int.from_bytes(data[at + 1 : at + 1 + size], "big")
            at += 1 + size
        if at + length > len(data):
            raise KeyRefusedError("the file ends within a packet")
        yield tag, data[at : at + length]
        at += length


def _subpackets(area):
    at = 0
    while at < len(area):
        length, at = _length(area, at)
        yield area[at] & 0x7F, area[at + 1 : at + length]
        at += length


def read(data):
    """Return [(fingerprint, created, expires)] of the primary keys; times in seconds, expires may be None.

    expires is what the newest certification of the key's own says (it is not verified here).
    """
    keys, newest = [], -1
    for tag, body in packets(data):
        if tag == PUBLIC_KEY:
            if body[:1] != b"\x04":
                raise KeyRefusedError("the key is of version %d, wanted is 4" % body[0])
            digest = hashlib.sha1(b"\x99" + struct.pack(">H", len(body)) + body)  # noqa: S324 - RFC 4880's
            keys.append([digest.hexdigest().upper(), struct.unpack(">I", body[1:5])[0], None])
            newest = -1
        elif tag == SIGNATURE and keys and body[:1] == b"\x04" and body[1] in EXPIRES_KINDS:
            hashed = dict(_subpackets(body[6 : 6 + struct.unpack(">H", body[4:6])[0]]))
            made = int.from_bytes(hashed.get(CREATED, b""), "big")
            # Certifications by others carry no key expiration time.
            if made > newest and (KEY_EXPIRES in hashed or keys[-1][2] is None):
                newest = made
                lasts = int.from_bytes(hashed.get(KEY_EXPIRES, b""), "big")
                keys[-1][2] = keys[-1][1] + lasts if lasts else None
    return [tuple(key) for key in keys]


def check(data, wanted, withdrawn, now):
    """Return the packets of the wanted key; raise KeyRefusedError where the file holds anything else."""
    if not re.match(r"[0-9A-F]{40}\Z", wanted):
        raise KeyRefusedError("the fingerprint to compare with must have all 40 digits, not %r" % wanted)
    binary = dearmor(data)
    try:
        keys = read(binary)
    except (IndexError, struct.error) as error:
        raise KeyRefusedError("the file is no whole OpenPGP key") from error
    for fingerprint, _created, _expires in keys:
        if any(fingerprint.endswith(end) for end in withdrawn):
            raise KeyRefusedError(
                "%s is the key that its owner withdrew (NVIDIA's until April 2022): guides and repository "
                "packages from before carry it. Take the key that replaced it, %s" % (fingerprint, wanted)
            )
    if [key[0] for key in keys] != [wanted]:
        held = ", ".join(key[0] for key in keys) or "no key"
        raise KeyRefusedError("the file holds %s, wanted is exactly %s" % (held, wanted))
    expires = keys[0][2]
    if expires is not None and expires <= now:
        day = time.strftime("%Y-%m-%d", time.gmtime(expires))
        raise KeyRefusedError("the key %s expired on %s" % (wanted, day))
    return binary


def main(argv):
    """Check a file as the command line says; return the exit status."""
    wanted = argv[1].replace(" ", "").upper()
    withdrawn = [end.strip().upper() for end in argv[2].split(",") if end.strip()]
    try:
        with open(argv[3], "rb") as file:
            keyring = check(file.read(), wanted, withdrawn, time.time())
        if len(argv) > 4:
            with open(argv[4], "wb") as file:
                file.write(keyring)
    except (KeyRefusedError, OSError) as error:
        print("%s: %s" % (argv[3], error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
