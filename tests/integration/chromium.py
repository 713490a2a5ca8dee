# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over a pipe by the DevTools protocol, and the tools to judge pages with."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"chromium": "chromium", "pdftotext": "poppler-utils", "npm": "npm"}
FONTS = "fonts-noto-cjk"
PARTS = Path("/usr/lib/libreoffice/program")
# A machine may have soffice without the part that is needed, and without letters of the widths of Word's.
LIBREOFFICE = {
    str(PARTS / "libswlo.so"): "libreoffice-writer-nogui",
    str(PARTS / "libsclo.so"): "libreoffice-calc-nogui",
    "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf": "fonts-liberation",
}
SECONDS = 60


class BrowserError(AssertionError):
    """Chromium refused a command, or did not answer."""


def _is_there(name):
    return Path(name).exists() if name.startswith("/") else shutil.which(name)


def missing(packages=PACKAGES):
    """Install what is not there yet, if this may be done; return the commands and files still missing."""
    absent = [name for name in packages if not _is_there(name)]
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if (
        absent
        and shutil.which("apt-get")
        and subprocess.run([*root, "true"], capture_output=True).returncode == 0
    ):
        install = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q"]
        subprocess.run([*install, "update"], capture_output=True, check=False)
        words = [
            "install",
            "-y",
            "--no-install-recommends",
            *[packages[name] for name in absent],
            *([FONTS] if {"chromium", *LIBREOFFICE} & set(absent) else []),
        ]
        subprocess.run([*install, *words], capture_output=True, check=False)
    return [name for name in packages if not _is_there(name)]


def axe():
    """Return the source of axe-core, installed by npm as tests/browser/package-lock.json pins it."""
    files = [ROOT / "tests" / "browser" / name for name in ("package.json", "package-lock.json")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    place = ROOT / ".scalebook" / "browser" / digest
    script = place / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        place.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, place)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return script.read_text(encoding="utf-8")


def _pipe():
    """Return both ends of a pipe, neither of them on a descriptor that Chromium's own get."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Chromium:
    """One browser with one page; every command waits for its answer, events are kept in `events`."""

    def __init__(self, profile):
        # Chromium reads commands from descriptor 3 and writes to 4; the messages end with a zero byte.
        commands, self._write = _pipe()
        self._read, answers = _pipe()
        words = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
        ]
        words += ["--disable-dev-shm-usage", "--remote-debugging-pipe", f"--user-data-dir={profile}"]
        script = f'exec "$@" 3<&{commands} 4>&{answers} {commands}<&- {answers}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", script, "bash", *words],
            pass_fds=(commands, answers),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._buffer, self._number, self._session = b"", 0, None
        self.events = []
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.command(f"{domain}.enable")

    def close(self):
        """End the browser."""
        self.process.terminate()
        self.process.wait(SECONDS)
        os.close(self._write)
        os.close(self._read)

    def command(self, method, **params):
        """Send a command and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        return self._answer(lambda each: each.get("id") == self._number, method)

    def wait(self, event):
        """Wait for an event that has not been seen yet."""
        return self._answer(lambda each: each.get("method") == event, event)

    def _answer(self, wanted, what):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            while b"\0" in self._buffer:
                text, self._buffer = self._buffer.split(b"\0", 1)
                message = json.loads(text)
                if "method" in message:
                    self.events.append(message)
                if wanted(message):
                    if "error" in message:
                        raise BrowserError(f"{what}: {message['error']}")
                    return message.get("result", {})
            if select.select([self._read], [], [], 1)[0]:
                chunk = os.read(self._read, 1 << 20)
                if not chunk:
                    raise BrowserError(f"{what}: Chromium has ended with {self.process.wait()}")
                self._buffer += chunk
        raise BrowserError(f"{what}: no answer within {SECONDS} s")

    def open(self, path, width=1280, dark=False, script=True):
        """Open a file in a window of `width` pixels."""
        phone = width < 500
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=phone
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.command("Emulation.setEmulatedMedia", media="", features=scheme)
        self.command("Emulation.setScriptExecutionDisabled", value=not script)
        self.events.clear()
        self.command("Page.navigate", url=path.as_uri())
        self.wait("Page.loadEventFired")

    def run(self, expression):
        """Return the value of a JavaScript expression in the page; a promise is awaited."""
        result = self.command(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(result["exceptionDetails"])
        return result["result"].get("value")

    def requests(self):
        """Return the addresses that the page asked for since it was opened."""
        sent = [each for each in self.events if each["method"] == "Network.requestWillBeSent"]
        return [each["params"]["request"]["url"] for each in sent]

    def complaints(self):
        """Return what stands in the console: errors, and what the Content-Security-Policy has blocked."""
        logged = [
            each["params"]["entry"]["text"] for each in self.events if each["method"] == "Log.entryAdded"
        ]
        thrown = [str(each["params"]) for each in self.events if each["method"] == "Runtime.exceptionThrown"]
        return logged + thrown

    def screenshot(self, path):
        """Write the whole page as a picture."""
        made = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(made["data"]))

    def printed(self, path):
        """Print the page as A4 and return the text of the PDF in the order in which it was drawn."""
        made = self.command("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(made["data"]))
        command = ["pdftotext", "-raw", str(path), "-"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
