# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""URLs that users give: secrets in them are known as such, and never shown."""

import time

import measured
import pytest
from ansible.module_utils.scalebook.secrets import has_secret, hidden, secrets, without_secrets
from ansible.module_utils.scalebook.store.source import PLANS


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:token@mirror/simple", "https://***@mirror/simple"),
        ("https://token@mirror/simple", "https://***@mirror/simple"),
        ("https://mirror/key.asc?token=abc&x=1", "https://mirror/key.asc?***"),
        ("https://me:to%2Fken@mirror:8443/a?b", "https://***@mirror:8443/a?***"),
        ("git+ssh://git@host/repository", "git+ssh://***@host/repository"),
    ],
)
def test_a_url_with_a_secret_is_known_and_shown_without_it(url, shown):
    assert has_secret(url)
    assert without_secrets(f"cannot read '{url}': 401") == f"cannot read '{shown}': 401"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://mirror/simple",
        "file:///srv/nvidia/repository",
        "/srv/key.asc",
        "me@host",
        "https://mirror/a@b",
    ],
)
def test_a_url_without_one_is_shown_as_it_is(url):
    assert not has_secret(url)
    assert without_secrets(url) == url


def test_one_of_many_is_enough():
    assert has_secret(["https://one/", "https://me:token@two/"])
    assert not has_secret(["https://one/"])


def test_every_url_of_a_text_is_cleaned():
    assert without_secrets("http://a:b@c/ and\nhttp://d:e@f/") == "http://***@c/ and\nhttp://***@f/"


def test_a_token_of_a_known_service_is_hidden_anywhere():
    token = "ghp" + "_" + "a1B2" * 9
    assert without_secrets(f"bsz={token}: no") == "bsz=***: no"
    assert without_secrets(f"https://mirror/{token}/simple") == "https://mirror/***/simple"


def test_values_are_hidden_at_any_depth():
    assert hidden({"a": ["https://me:token@h/", 3]}) == {"a": ["https://***@h/", 3]}


R = "a1B2c3D4e5F6" * 8  # as random as a token looks
HEX = "0a1b2c3d4e5f6789" * 4
# What people's logs and configuration hold, by kind. In two parts, since this file is not a leak.
KINDS = {
    "aws id": ("AKIA", "IOSFODNN7EXAMPLE"),
    "aws secret": ("AWS_SECRET_ACCESS", "_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "aws secret in ini": ("aws_secret_access", "_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    "aws session": ("AWS_SESSION", f"_TOKEN={R}"),
    "openai": ("sk-", R[:48]),
    "openai project": ("sk-proj-", R[:60]),
    "anthropic": ("sk-ant-api03-", R[:80]),
    "slack bot": ("xox", f"b-123456789012-123456789012-{R[:24]}"),
    "slack webhook": ("https://hooks.slack", f".com/services/T00000000/B00000000/{R[:24]}"),
    "google api": ("AIza", "SyA1234567890abcdefghijklmnopqrstuv"),
    "google oauth": ("ya29.", R[:60]),
    "google client": ("GOCSPX-", R[:28]),
    "jwt": ("eyJhbGciOiJIUzI1NiIsInR5cCI6", "IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"),
    "nvidia": ("nvapi-", R[:64]),
    "npm": ("npm_", R[:36]),
    "npmrc": ("//registry.npmjs.org/:_auth", f"Token={HEX[:36]}"),
    "pypi": ("pypi-", "AgEIcHlwaS5vcmc" + R[:70]),
    "hugging face": ("hf_", R[:34]),
    "wandb": ("WANDB_API", f"_KEY={HEX[:40]}"),
    "github": ("ghp_", R[:36]),
    "github fine": ("github_pat_", R[:60]),
    "gitlab": ("glpat-", R[:20]),
    "gitlab runner": ("glrt-", R[:20]),
    "gitlab header": ("PRIVATE-TOKEN", f": {R[:20]}"),
    "rsa key": ("-----BEGIN RSA", " PRIVATE KEY-----"),
    "pgp key": ("-----BEGIN PGP", " PRIVATE KEY BLOCK-----"),
    "ssh2 key": ("---- BEGIN SSH2", " ENCRYPTED PRIVATE KEY ----"),
    "putty key": ("PuTTY-User-Key", "-File-3: ssh-ed25519"),
    "age key": ("AGE-SECRET", "-KEY-1" + "QPZRY9X8" * 8),
    "vault": ("$ANSIBLE", "_VAULT;1.1;AES256"),
    "netrc": ("machine h login me pass", "word geheim"),
    "sas": ("https://a.blob.core.windows.net/c?sv=2020-08-04&si", f"g={R[:43]}%3D"),
    "azure account": ("Account", f"Key={R[:86]}=="),
    "azure bus": ("SharedAccess", f"Key={R[:43]}="),
    "s3 url": ("https://b.s3.amazonaws.com/k?X-Amz-Sig", f"nature={HEX}"),
    "gcs url": ("https://storage.googleapis.com/b/o?X-Goog-Sig", f"nature={HEX}"),
    "client secret": ("client_", f"secret={R[:20]}"),
    "client secret in json": ('"client_', f'secret": "{R[:20]}"'),
    "x-auth": ("X-Auth", f"-Token: {R[:32]}"),
    "x-api": ("x-api", f"-key: {R[:32]}"),
    "bearer": ("Authorization: ", f"Bearer {R[:32]}"),
    "basic": ("Proxy-Authorization: ", "Basic bWU6Z2VoZWlt"),
    "cookie": ("Set-Cook", f"ie: session={R[:32]}; HttpOnly"),
    "docker auth": ('{"auths": {"h": {"au', 'th": "bWU6Z2VoZWlt"}}}'),
    "url": ("postgres://me:", "geheim@db/x"),
    "url without user": ("redis://:", "geheim@h:6379/0"),
    "url with a token": ("https://", f"{R[:24]}@dl.example.org/simple"),
    "password": ("PGPASS", "WORD=geheim1"),
    "become": ("ansible_become", "_pass: geheim1"),
    "sshpass": ("ssh", "pass -p geheim ssh h"),
    "curl": ("curl -s -u ", "me:geheim https://h"),
    "option": ("tool --tok", f"en {R[:24]}"),
    "kubeconfig": ("client-key", f"-data: {R[:64]}"),
    "kubeconfig token": ("  tok", f"en: {R[:40]}"),
    "stripe": ("sk_", f"live_{R[:24]}"),
    "sendgrid": ("SG.", f"{R[:22]}.{R[:43]}"),
    "twilio": ("SK", HEX[:32]),
    "telegram": ("123456789:AA", R[:33]),
    "discord": ("MTA1", f"{R[:20]}.{R[:6]}.{R[:27]}"),
    "databricks": ("dapi", HEX[:32]),
    "digitalocean": ("dop_", f"v1_{HEX}"),
    "hashicorp": ("hvs.", R[:24]),
    "grafana": ("glsa_", R[:41]),
    "mailchimp": (HEX[:32], "-us12"),
    "docker": ("dckr_", f"pat_{R[:27]}"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_secret_is_found_with_its_line(kind):
    line = "".join(KINDS[kind])
    assert {number for number, _ in secrets(f"step 1\n{line}\n".encode())} == {2}


@pytest.mark.parametrize(
    "line",
    [
        "max_tokens=131072 pad_token=[PAD] bos_token='<s>' cls_token: [CLS]",
        "num_key_value_heads: 8, key=attention.query.weight/Adam_1 secret=False",
        "tokens per second: 123456.789 token_type_embeddings.weight torch.Size([2, 768])",
        "sk-learn 1.3.2 hf_transfer task-runner risk-0123456789abcdef0123",
        "https://mirror.example/simple?page=2 ssh://git@host/repository password=*** api_key: null",
        "commit 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 sha256:" + HEX,
        "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9 NODE1:29500 login node cookie cutter",
    ],
)
def test_what_logs_of_training_hold_is_no_secret(line):
    assert list(secrets(line.encode())) == []


@pytest.mark.parametrize(
    "word", ["token=", "login ", "a://x:", "password:", "eyJ.eyJ", "/ghp_", "cookie:", "curl -u "]
)
def test_text_that_is_made_to_be_slow_is_searched_in_seconds(word):
    began = time.monotonic()
    list(secrets(word.encode() * (200_000 // len(word))))
    assert time.monotonic() - began < 3


def test_the_committed_campaigns_hold_nothing_that_looks_like_a_secret():
    opened = [(name, measured.source(name)) for name in measured.campaigns()]
    assert len(opened) > 20
    found = [name for name, source in opened for plan in PLANS if any(secrets(source.read(plan)))]
    assert found == []
