# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Which key an apt repository may be signed with: exactly one, known by its whole fingerprint.

Both keys were made by gpg 2.2.40 for this test; the second one with a faked date, to last a year.
"""

import base64
from pathlib import Path

import pytest
import yaml
from role_files import load
from run_module import call_module

ROOT = Path(__file__).resolve().parents[3]
cuda_key = load("cuda", "cuda_key")

GOOD = b"""-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEawERvBYJKwYBBAHaRw8BAQdAubNNFK6+kpFsssCDZLpysGPLZLg9Fpk7ghGu
bblEHdq0HWdvb2QgPGdvb2RAc2NhbGVib29rLmludmFsaWQ+iJAEExYIADgWIQQv
Cmmai/2zCazQ8jmW/HHKYO5yPwUCawERvAIbAwULCQgHAgYVCgkICwIEFgIDAQIe
AQIXgAAKCRCW/HHKYO5yPzMHAP9M+P6yJ+/VN/OSQ5KJgPQKqjFRmQLR+ed0jznb
rTLUqwD+LykAl2N5C3H3Co1Z+2SA9UgaNB9kmGUBWZB8kKB7gQY=
=IRft
-----END PGP PUBLIC KEY BLOCK-----
"""
GOOD_FINGERPRINT = "2F0A699A8BFDB309ACD0F23996FC71CA60EE723F"
OLD = b"""-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEXgvhABYJKwYBBAHaRw8BAQdAc1U2eaMsEUsUd0EwtrtmXUs7SctK9UejEQB0
9cdtryW0G29sZCA8b2xkQHNjYWxlYm9vay5pbnZhbGlkPoiWBBMWCAA+FiEE1Ezn
KV1ngjz1qE/oiWg5BFx+jdsFAl4L4QACGwMFCQHhM4AFCwkIBwIGFQoJCAsCBBYC
AwECHgECF4AACgkQiWg5BFx+jdtWUgEArSc3bJHBZpjfcPIpHQ880MOhk+A2MZXw
onc/TBuaJkUBAPAuJTK2CWhAQwlTouPgGYD/2rJUS7BrgWfAuESUQ0EP
=rKon
-----END PGP PUBLIC KEY BLOCK-----
"""
OLD_FINGERPRINT = "D44CE7295D67823CF5A84FE8896839045C7E8DDB"
MADE, END = 1577836800, 1577836800 + 365 * 86400


def check(data, wanted=GOOD_FINGERPRINT, withdrawn=("7FA2AF80",), now=1795219345):
    return cuda_key.check(data, wanted, withdrawn, now)


def test_fingerprint_and_times_are_gpgs():
    assert cuda_key.read(cuda_key.dearmor(OLD)) == [(OLD_FINGERPRINT, MADE, END)]


def test_a_key_without_an_end_has_none():
    [(fingerprint, _, expires)] = cuda_key.read(cuda_key.dearmor(GOOD))
    assert (fingerprint, expires) == (GOOD_FINGERPRINT, None)


def test_the_wanted_key_becomes_the_keyring():
    assert check(GOOD) == base64.b64decode(b"".join(GOOD.splitlines()[2:-2]))


def test_a_binary_key_is_read_too():
    assert check(check(GOOD)) == check(GOOD)


def test_windows_line_ends_do_no_harm():
    assert check(GOOD.replace(b"\n", b"\r\n")) == check(GOOD)


@pytest.mark.parametrize(
    ("data", "wanted", "reason"),
    [
        (OLD, GOOD_FINGERPRINT, f"holds {OLD_FINGERPRINT}, expected is exactly {GOOD_FINGERPRINT}"),
        (GOOD + OLD, GOOD_FINGERPRINT, "expected is exactly"),
        (OLD, OLD_FINGERPRINT, "expired on 2020-12-31"),
        (GOOD, GOOD_FINGERPRINT[-16:], "must have all 40 hexadecimal digits"),
        (GOOD, GOOD_FINGERPRINT + "00", "must have all 40 hexadecimal digits"),
        (GOOD[:300], GOOD_FINGERPRINT, "holds no key"),
        (b"", GOOD_FINGERPRINT, "holds no key"),
        (b"<html>404 Not Found</html>", GOOD_FINGERPRINT, "not an OpenPGP key"),
        (check(GOOD)[:40], GOOD_FINGERPRINT, "ends within a packet"),
        (GOOD.replace(b"mDME", b"mDM"), GOOD_FINGERPRINT, "armor is damaged"),
    ],
)
def test_anything_but_the_wanted_key_is_refused(data, wanted, reason):
    with pytest.raises(cuda_key.KeyRefusedError, match=reason):
        check(data, wanted)


def test_a_withdrawn_key_is_refused_even_where_it_is_wanted():
    with pytest.raises(cuda_key.KeyRefusedError, match="its owner withdrew"):
        check(GOOD, withdrawn=[GOOD_FINGERPRINT[-8:]])


def test_a_key_is_good_until_its_last_second():
    assert check(OLD, OLD_FINGERPRINT, now=END - 1)
    with pytest.raises(cuda_key.KeyRefusedError, match="expired"):
        check(OLD, OLD_FINGERPRINT, now=END)


def test_no_cut_of_a_key_is_taken_for_it():
    """The key itself may be whole without its last certification, which apt then misses; never less."""
    whole = check(GOOD)
    first = 2 + whole[1]
    for end in range(first):
        with pytest.raises(cuda_key.KeyRefusedError):
            check(whole[:end])


def test_one_flipped_bit_in_the_key_is_another_key():
    whole = check(GOOD)
    for at in range(2, 2 + whole[1]):
        changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
        with pytest.raises(cuda_key.KeyRefusedError):
            check(changed)


def test_a_refusal_names_the_file_and_writes_nothing(tmp_path):
    (tmp_path / "key").write_bytes(OLD)
    paths = {"path": str(tmp_path / "key"), "keyring": str(tmp_path / "ring")}
    result = call_module(cuda_key, fingerprint=GOOD_FINGERPRINT, **paths)
    assert result["failed"] and result["msg"].startswith(f"{tmp_path}/key: the file holds {OLD_FINGERPRINT}")
    assert not (tmp_path / "ring").exists()


def test_the_keyring_is_written_once_and_not_in_a_check(tmp_path):
    (tmp_path / "key").write_bytes(GOOD)
    options = {
        "path": str(tmp_path / "key"),
        "keyring": str(tmp_path / "ring"),
        "fingerprint": GOOD_FINGERPRINT,
    }
    checked = call_module(cuda_key, check=True, diff=True, **options)
    assert checked["changed"] is True and checked["diff"]["after"] == f"{GOOD_FINGERPRINT}\n"
    assert not (tmp_path / "ring").exists()
    assert call_module(cuda_key, **options)["changed"] is True
    assert (tmp_path / "ring").read_bytes() == check(GOOD)
    assert call_module(cuda_key, **options)["changed"] is False


def test_without_a_keyring_a_key_is_only_checked(tmp_path):
    (tmp_path / "key").write_bytes(GOOD)
    result = call_module(cuda_key, path=str(tmp_path / "key"), fingerprint=GOOD_FINGERPRINT.lower())
    assert (result["changed"], result["fingerprint"]) == (False, GOOD_FINGERPRINT)


@pytest.mark.parametrize(
    ("tool", "fingerprint"),
    [
        ("apt", "EB693B3035CD5710E231E123A4B469963BF863CC"),
        ("dnf", "610C7B14E068A878070DA4E99CD0A493D42D0685"),
    ],
)
def test_nvidias_fingerprints_are_the_pinned_ones(tool, fingerprint):
    """The keys since the rotation of April 2022, as NVIDIA published them; a short one would not do."""
    pinned = yaml.safe_load((ROOT / "roles/cuda/vars/main.yml").read_text())["__cuda_of_tool"][tool]
    assert pinned["fingerprint"] == fingerprint
    assert pinned["key"].upper() == f"{fingerprint[-8:]}.PUB"
    defaults = (ROOT / "roles/cuda/defaults/main.yml").read_text()
    assert 'cuda_key_fingerprint: "{{ __cuda_of_tool[__cuda_package_tool].fingerprint }}"\n' in defaults
    assert "cuda_key_withdrawn: [7FA2AF80]\n" in defaults
