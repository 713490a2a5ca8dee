#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Take a picture of the first screen of a report for the README.

    ansible-playbook report.yml -e campaign_dir=docs/results/h200x4-2026-11-26/torch_resnet50
    tests/browser/picture.py docs/results/h200x4-2026-11-26/torch_resnet50 docs/report.png

The first command makes report.html, which git ignores there.  The picture ends where the table of contents
begins.
"""

import base64
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))

import chromium  # noqa: E402 - is next to the tests

WIDTH = 1280


def main():
    page, out = Path(sys.argv[1]).resolve() / "report" / "report.html", Path(sys.argv[2])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = chromium.Chromium(profile)
        browser.open(page, WIDTH)
        height = browser.run("document.querySelector('nav').getBoundingClientRect().top")
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
        made = browser.command("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        browser.close()
    out.write_bytes(base64.b64decode(made["data"]))


if __name__ == "__main__":
    main()
