# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""URLs that users give: secrets in them are known as such, and never shown."""

import pytest
from ansible.module_utils.scalebook.provision.urls import has_secret, redact


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
    assert redact(f"cannot read '{url}': 401") == f"cannot read '{shown}': 401"


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
    assert redact(url) == url


def test_one_of_many_is_enough():
    assert has_secret(["https://one/", "https://me:token@two/"])
    assert not has_secret(["https://one/"])


def test_every_url_of_a_text_is_cleaned():
    assert redact("http://a:b@c/ and\nhttp://d:e@f/") == "http://***@c/ and\nhttp://***@f/"
