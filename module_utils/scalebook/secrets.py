# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What a secret looks like: text is shown without it, and a campaign that holds one is not packed.

The shapes of tokens are those of detect-secrets 1.5.0 (Yelp, Apache-2.0), and of other services.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

HIDDEN = "***"

# What comes before the @ of a host, and what follows a question mark: tokens are given as either.
_OF_A_URL = re.compile(r"(?<=://)[^\s/@'\"]+(?=@)|(?<=\?)[^\s'\"#<>]+", re.ASCII)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.ASCII | re.IGNORECASE)

_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}",
    r"gl(?:pat|dt|ft|soat|rt|ptt|cbt|imt|agent|oas|ffct)-[\w-]{20,}|GR1348941[\w-]{20,}",
    r"hf_[A-Za-z0-9]{30,}|pypi-[\w-]{40,}|npm_[A-Za-z0-9]{36}|rubygems_[0-9a-f]{48}|nvapi-[\w-]{20,}",
    r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}",
    r"sk-[\w-]{20,}|xai-\w{40,}|gsk_\w{40,}|r8_\w{30,}|pplx-\w{40,}",
    r"xox[a-z]-[\w-]{10,}|xapp-[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|(?:sk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{24,}",
    r"dapi[0-9a-f]{32}|dop_v1_[0-9a-f]{64}|hv[sbr]\.[\w-]{20,}|gl(?:sa|c)_[A-Za-z0-9+/=_]{30,}|NRAK-[A-Z0-9]{27}",
    r"ATATT3[\w=-]{50,}|lin_api_\w{40}|shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}|sq0(?:atp|csp|idp)-[\w-]{22,}",
    r"dckr_pat_[\w-]{20,}|tskey-[a-z]+-[\w-]{20,}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|\w{14}\.atlasv1\.[\w-]{60,}",
    r"[MNO][A-Za-z\d_-]{23,25}\.[A-Za-z\d_-]{6}\.[A-Za-z\d_-]{27,}|\d{8,10}:AA[\w-]{33}|[0-9a-f]{32}-us\d{1,2}",
    r"(?:AC|SK)[0-9a-f]{32}|AKC[A-Za-z0-9]{60,}|secret_[A-Za-z0-9]{43}|ntn_\w{40,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,}|eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]*)?",
)
_TOKEN = re.compile(
    rf"(?<![\w/+.-])(?:{'|'.join(_TOKENS)})(?![\w])|(?<=/)(?:{'|'.join(_TOKENS[:3])})(?!\w)", re.ASCII
)

_VALUE = r"[\"']?(?!\*\*\*|none\b|null\b|true\b|false\b|[\[{(<$])[^\s\"',;<>{}$]"
_WORDS = (
    r"pass(?:word|wd|phrase)|(?:ssh|become|sudo|user|db|admin|root)_pass|secret(?:_?access)?_?key|client_?secret|(?:api|access|account|private|auth)_?key"
    r"|(?:access|auth|api|refresh|session|id|bearer|security|registration)_?token"
)
# Other names that end in such a word: their values count where they look random, with a digit and a letter.
_ENDS = r"token|secret|credentials?|pat|pwd|api_?key|client-key-data"
_IS = r"[ \t]{0,10}(?:[=:]|=>|:=)[ \t]{0,10}"
_RANDOM = r"(?=[\w.~+/=-]{0,200}\d)(?=[\w.~+/=-]{0,200}[a-z])[\w.~+/=-]{16,}"

EXACT = {
    "a private key": re.compile(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY|PuTTY-User-Key-File-\d"
    ),
    "a vault": re.compile(r"\$ANSIBLE_VAULT;[\d.]+;"),
    "a token": _TOKEN,
}
"""What a secret looks like, by what it is called."""

LOWER_CASE = {
    "a password in a URL": re.compile(
        r"[a-z][a-z0-9+.-]{0,20}://(?:[^\s/@:'\"]*:(?!\*\*\*)[^\s/@'\"]+|(?!\*\*\*)[^\s/@:'\"]{16,})@"
    ),
    "a signed URL": re.compile(
        r"[?&](?:sig|signature|x-(?:amz|goog)-(?:signature|security-token|credential)|token|access_token|api_?key|key)"
        r"=(?!\*\*\*)[^&\s\"'<>]{8,}"
    ),
    "a webhook": re.compile(
        r"hooks\.slack\.com/(?:services|workflows)/[\w/]{20,}|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}"
        r"|webhook\.office\.com/webhookb2/[\w@/-]{20,}"
    ),
    "an authorization header": re.compile(
        r"authorization[\"']?\s*[:=]\s*[\"']?(?:basic|bearer|token|digest|negotiate)\s+(?!\*\*\*)[\w+/=.~-]{8,}"
        r"|(?:private-token|x-[a-z-]{0,30}(?:token|key))[\"']?\s*:\s*[\"']?(?!\*\*\*)[\w+/=.~-]{8,}"
        r"|\b(?:set-)?cookie:\s*[^\s=]{1,60}=[^\s;]{16,}"
    ),
    "a login": re.compile(
        r"\blogin\s+\S+\s+password\s+\S+|\"auth\"\s*:\s*\"[a-z0-9+/]{8,}=*\"|\bidentitytoken\"\s*:\s*\"\S{8,}"
        r"|\bsshpass\s+-p\s*\S+|\bcurl\b[^\n]{0,300}\s(?:-u|--user)[ =][^\s:]{1,60}:(?!\*\*\*)\S{4,}"
    ),
    "a password": re.compile(
        rf"(?:{_WORDS.replace('_?', '[_-]?')})\w{{0,20}}[\"']?{_IS}{_VALUE}{{6,}}"
        rf"|(?:{_ENDS})[\"']?{_IS}[\"']?{_RANDOM}"
        rf"|--?(?:password|passwd|token|secret|api-?key)[ =](?!\*\*\*|-)[\"']?{_RANDOM}"
    ),
}
"""The same, of text in lower case: a pattern that ignores case is several times slower."""

MOST_FOUND = 20
"""Places of one kind in one file that are named: more tell nothing else."""


def without_secrets(text: str) -> str:
    """Return `text` with the secrets of the URLs in it, and tokens of known services, replaced by `***`.

    >>> without_secrets("Cannot reach https://me:token@mirror/simple?key=1 today")
    'Cannot reach https://***@mirror/simple?*** today'
    """
    return _TOKEN.sub(HIDDEN, _URL.sub(lambda url: _OF_A_URL.sub(HIDDEN, url[0]), text))


def hidden(value: Any) -> Any:
    """Return `value` with every text in it without secrets: what an error message may show."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, (list, tuple)):
        return [hidden(each) for each in value]
    if isinstance(value, dict):
        return {hidden(key): hidden(each) for key, each in value.items()}
    return value


def has_secret(value: Any) -> bool:
    """Return whether a text, or one of a list of them, holds a secret of a URL, or a token."""
    if isinstance(value, (list, tuple)):
        return any(has_secret(each) for each in value)
    return without_secrets(str(value)) != str(value)


def secrets(content: bytes) -> Iterator[tuple[int, str]]:
    """Yield (line, what it is) of everything in a file that looks like a secret."""
    text = content.decode("latin-1")  # a character for each byte, in lower case too
    for shapes, searched in ((EXACT, text), (LOWER_CASE, text.lower())):
        for what, pattern in shapes.items():
            for match in islice(pattern.finditer(searched), MOST_FOUND):
                yield text.count("\n", 0, match.start()) + 1, what
