#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: cuda_key
short_description: Check the OpenPGP key of an apt repository and write it as a keyring
description:
  - Fails unless a file holds exactly one OpenPGP public key, the expected one, that is neither withdrawn nor
    expired.
  - A bare host has no gpg, and apt only reports that a repository is not signed. The signatures themselves
    are verified by apt.
  - Packets, fingerprints and subpackets are those of RFC 4880, sections 4.2, 12.2 and 5.2.3.
options:
  path:
    description: The file, binary or ASCII-armored.
    type: path
    required: true
  fingerprint:
    description: Fingerprint of the expected key, all 40 hexadecimal digits.
    type: str
    required: true
  withdrawn:
    description: Ends of fingerprints that are refused.
    type: list
    elements: str
    default: []
  keyring:
    description: File to write the key to, in apt's binary format. Without it the key is only checked.
    type: path
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
  diff_mode:
    support: full
    description: Shows the files before and after.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Check the key
  cuda_key:
    path: /tmp/3bf863cc.pub
    fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC
    withdrawn: [7FA2AF80]
    keyring: /etc/apt/keyrings/scalebook-nvidia.gpg
"""

RETURN = r"""
fingerprint:
  description: Fingerprint of the key.
  returned: success
  type: str
"""

import base64
import binascii
import hashlib
import re
import struct
import time
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import write_whole

SIGNATURE = 2
PUBLIC_KEY = 6
KEY_EXPIRES = 9
CREATED = 2
EXPIRES_KINDS = (0x10, 0x11, 0x12, 0x13, 0x1F)


class KeyRefusedError(ValueError):
    """The file does not hold the expected key."""


def argument_spec() -> Dict[str, Any]:
    return {
        "path": {"type": "path", "required": True},
        "fingerprint": {"type": "str", "required": True},
        "withdrawn": {"type": "list", "elements": "str", "default": []},
        "keyring": {"type": "path"},
    }


def dearmor(data: bytes) -> bytes:
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
            # The line that starts with `=` is a checksum, which newer versions of OpenPGP omit.
            packets += base64.b64decode(b"".join(line for line in lines if not line.startswith(b"=")))
        except binascii.Error as error:
            raise KeyRefusedError("the armor is damaged (%s)" % error) from error
    return packets


def _length(data: bytes, offset: int) -> Tuple[int, int]:
    """Return (length, offset after it) of a new-format length octet sequence at an offset."""
    first = data[offset]
    if first < 192:
        return first, offset + 1
    if first < 224:
        return ((first - 192) << 8) + data[offset + 1] + 192, offset + 2
    if first == 255:
        return struct.unpack(">I", data[offset + 1 : offset + 5])[0], offset + 5
    raise KeyRefusedError("a packet has a partial length, which keys do not have")


def packets(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Yield (tag, body) of every packet."""
    offset = 0
    while offset < len(data):
        head = data[offset]
        if not head & 0x80:
            raise KeyRefusedError("the file is not an OpenPGP key")
        if head & 0x40:
            tag = head & 0x3F
            length, offset = _length(data, offset + 1)
        else:
            tag, size = (head >> 2) & 0x0F, (1, 2, 4, 0)[head & 3]
            if not size:
                raise KeyRefusedError("a packet has no length, which keys do not have")
            length = int.from_bytes(data[offset + 1 : offset + 1 + size], "big")
            offset += 1 + size
        if offset + length > len(data):
            raise KeyRefusedError("the file ends within a packet")
        yield tag, data[offset : offset + length]
        offset += length


def _subpackets(area: bytes) -> Iterator[Tuple[int, bytes]]:
    offset = 0
    while offset < len(area):
        length, offset = _length(area, offset)
        yield area[offset] & 0x7F, area[offset + 1 : offset + length]
        offset += length


def read(data: bytes) -> List[Tuple[str, int, Optional[int]]]:
    """Return [(fingerprint, created, expires)] of the primary keys; times in seconds, expires may be None.

    `expires` is taken from the newest self-certification, which is not verified here.
    """
    keys, newest = [], -1
    for tag, body in packets(data):
        if tag == PUBLIC_KEY:
            if body[:1] != b"\x04":
                raise KeyRefusedError("the key is of version %d, expected is 4" % body[0])
            digest = hashlib.sha1(b"\x99" + struct.pack(">H", len(body)) + body)  # noqa: S324 - RFC 4880's
            keys.append([digest.hexdigest().upper(), struct.unpack(">I", body[1:5])[0], None])
            newest = -1
        elif tag == SIGNATURE and keys and body[:1] == b"\x04" and body[1] in EXPIRES_KINDS:
            hashed = dict(_subpackets(body[6 : 6 + struct.unpack(">H", body[4:6])[0]]))
            created = int.from_bytes(hashed.get(CREATED, b""), "big")
            # Certifications by others carry no key expiration time.
            if created > newest and (KEY_EXPIRES in hashed or keys[-1][2] is None):
                newest = created
                lasts = int.from_bytes(hashed.get(KEY_EXPIRES, b""), "big")
                keys[-1][2] = keys[-1][1] + lasts if lasts else None
    return [tuple(key) for key in keys]


def check(data: bytes, expected: str, withdrawn: Iterable[str], now: float) -> bytes:
    """Return the packets of the expected key; raise KeyRefusedError where the file holds anything else."""
    if not re.match(r"[0-9A-F]{40}\Z", expected):
        raise KeyRefusedError("fingerprint=%s: it must have all 40 hexadecimal digits" % expected)
    binary = dearmor(data)
    try:
        keys = read(binary)
    except (IndexError, struct.error) as error:
        raise KeyRefusedError("the file is not a complete OpenPGP key") from error
    for fingerprint, _created, _expires in keys:
        if any(fingerprint.endswith(end) for end in withdrawn):
            raise KeyRefusedError(
                "%s is the key that its owner withdrew (NVIDIA's until April 2022); older guides and "
                "repository packages contain it. Fix: use the key that replaced it, %s"
                % (fingerprint, expected)
            )
    if [key[0] for key in keys] != [expected]:
        held = ", ".join(key[0] for key in keys) or "no key"
        raise KeyRefusedError("the file holds %s, expected is exactly %s" % (held, expected))
    expires = keys[0][2]
    if expires is not None and expires <= now:
        day = time.strftime("%Y-%m-%d", time.gmtime(expires))
        raise KeyRefusedError("the key %s expired on %s" % (expected, day))
    return binary


def keyring_text(data: bytes, path: str) -> str:
    """Return a keyring as text for a diff: the fingerprints that it holds."""
    try:
        held = read(dearmor(data)) if data else []
    except (KeyRefusedError, IndexError, struct.error):
        return "%s does not hold OpenPGP keys\n" % path
    return "".join(key[0] + "\n" for key in held)


def read_file(path: str) -> bytes:
    """Return the content of a file, nothing where it does not exist or is not readable."""
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    options = module.params
    expected = options["fingerprint"].replace(" ", "").upper()
    withdrawn = [end.strip().upper() for end in options["withdrawn"] if end.strip()]
    result: Dict[str, Any] = {"changed": False, "fingerprint": expected}
    try:
        with open(options["path"], "rb") as stream:
            keyring = check(stream.read(), expected, withdrawn, time.time())
        if options["keyring"]:
            before = read_file(options["keyring"])
            result["changed"] = write_whole(options["keyring"], keyring, write=not module.check_mode)
            if module._diff:  # the attribute that Ansible's own modules use
                result["diff"] = {
                    "before_header": options["keyring"],
                    "after_header": options["keyring"],
                    "before": keyring_text(before, options["keyring"]),
                    "after": expected + "\n",
                }
    except (KeyRefusedError, OSError) as error:
        module.fail_json(msg="%s: %s" % (options["path"], error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
