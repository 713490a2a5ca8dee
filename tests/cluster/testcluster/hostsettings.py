# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""How this machine reaches its package registries, so that the nodes can do the same.

Everything is read when the cluster is made, from the machine's own settings; nothing of it is kept
in the repository. The nodes get it as an administrator would give it to them: files below /etc.
"""

import configparser
import dataclasses
import hashlib
import os
import re
import shutil
from pathlib import Path
from urllib.parse import unquote, urlsplit

from .base import run

# Of the nodes, unless another one is asked for.
SUITE = "bookworm"
PYTHON = {"bookworm": "3.11", "trixie": "3.13"}
"""Suite of Debian that nodes can have -> its Python."""
# Where Debian's ca-certificates keeps all authorities in one file; the nodes have the same.
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"

_BUNDLE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
_PROXY_VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_INDEX_VARIABLES = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST", "PIP_PROXY"),
    *("PIP_NO_INDEX", "PIP_DEFAULT_TIMEOUT", "PIP_RETRIES"),
    *("UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS"),
    *("UV_PYTHON_INSTALL_MIRROR", "UV_HTTP_TIMEOUT"),
)
_PIP_SETTINGS = (
    *("index-url", "extra-index-url", "find-links", "trusted-host", "proxy", "cert"),
    *("no-index", "timeout", "default-timeout", "retries"),
)
# apt's settings that decide whether a repository can be reached at all. Switching the checks of
# certificates or signatures off is not among them.
_APT_SETTINGS = re.compile(
    r"Acquire::(?:https?::(?:[^: ]+::)?(?:Proxy|Timeout)|Check-Valid-Until|Check-Date|Retries) "
)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)


@dataclasses.dataclass
class HostSettings:
    """What the nodes take over from this machine.

    suite: the nodes' suite of Debian. apt_sources: lines of sources.list, Debian's own suites only.
    mirror: the first one's URI, or None. apt_settings: lines of apt.conf. pip: settings of pip.conf.
    env: variables of /etc/environment. bundle: the machine's CA bundle, PEM. folders: folders of this
    machine that hold a local package index. mtu: of the interface with the default route.
    """

    suite: str
    apt_sources: list
    mirror: str | None
    apt_settings: list
    pip: dict
    env: dict
    bundle: str
    folders: list
    mtu: int

    def extra_certificates(self, known: str) -> dict:
        """Return {file name: PEM} of the authorities in the bundle that `known` (PEM) lacks."""
        have = {"".join(pem.split()) for pem in _CERTIFICATE.findall(known)}
        extra = {}
        for pem in _CERTIFICATE.findall(self.bundle):
            if "".join(pem.split()) not in have:
                extra[f"host-{hashlib.sha256(pem.encode()).hexdigest()[:12]}.crt"] = pem.rstrip() + "\n"
        return extra


def discover(subnet: str, suite: str = SUITE) -> HostSettings:
    """Read this machine's settings for nodes of a suite; `subnet` is what they must reach past any proxy."""
    sources, mirror = _apt_sources(suite)
    pip = _pip_settings()
    env = {name: os.environ[name] for name in _INDEX_VARIABLES if os.environ.get(name)}
    env.update({name: BUNDLE for name in _BUNDLE_VARIABLES if os.environ.get(name)})
    proxies = {name: os.environ[name] for name in _PROXY_VARIABLES if os.environ.get(name)}
    if proxies:
        for name in ("no_proxy", "NO_PROXY"):
            proxies[name] = ",".join(filter(None, [proxies.get(name), "localhost,127.0.0.1", subnet]))
        env.update(proxies)
    places = " ".join([*pip.values(), *env.values()])
    return HostSettings(
        suite=suite,
        apt_sources=sources,
        mirror=mirror,
        apt_settings=_apt_settings(),
        pip=pip,
        env=env,
        bundle=_bundle(),
        folders=_folders(places),
        mtu=_mtu(),
    )


def _apt_sources(suite: str) -> tuple:
    """Return (sources.list lines, mirror) of a suite, from where this machine gets Debian's own suites."""
    if not shutil.which("apt-get"):
        return [], None  # no Debian: debootstrap and the nodes use Debian's own mirror
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    done = run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], check=False)
    own = re.compile(rf"({'|'.join(PYTHON)})(|-updates|-security)")
    lines, mirror = [], None
    for line in sorted(set(done.stdout.splitlines())):
        uri, release, component = (line.split() + ["", "", ""])[:3]
        match = own.fullmatch(release)
        if match and component == "main":
            lines.append(f"deb {uri} {suite}{match[2]} main")
            if not match[2]:
                mirror = uri
    return lines, mirror


def _apt_settings() -> list:
    lines = []
    if shutil.which("apt-config"):
        dump = run(["apt-config", "dump"], check=False).stdout.splitlines()
        lines = [line for line in dump if _APT_SETTINGS.match(line)]
    return [*lines, f'Acquire::https::CAInfo "{BUNDLE}";']


def _pip_settings() -> dict:
    """Return the reachability settings of this machine's pip.conf files, later files winning."""
    home = Path.home()
    files = [
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
        home / ".pip" / "pip.conf",
        home / ".config" / "pip" / "pip.conf",
        Path(os.environ.get("PIP_CONFIG_FILE") or "/nonexistent"),
    ]
    parser = configparser.RawConfigParser()
    parser.read([file for file in files if file.is_file()])
    if not parser.has_section("global"):
        return {}
    settings = {name: value for name, value in parser.items("global") if name in _PIP_SETTINGS}
    if "cert" in settings:
        settings["cert"] = BUNDLE
    return settings


def _bundle() -> str:
    """Return this machine's CA bundle; Debian's place, a variable that names one, Red Hat's place."""
    named = [os.environ.get(name) for name in _BUNDLE_VARIABLES]
    for place in [*filter(None, named), BUNDLE, "/etc/pki/tls/certs/ca-bundle.crt"]:
        if Path(place).is_file():
            return Path(place).read_text(errors="replace")
    return ""


def _folders(text: str) -> list:
    """Return the folders that file: URLs and absolute paths in `text` name.

    A package index keeps its files beside its folder `simple`, so there the parent is taken.
    """
    found = set()
    for word in re.split(r"[\s,=]+", text):
        path = Path(unquote(urlsplit(word).path) if word.startswith("file:") else word)
        if path.is_absolute() and path.is_dir():
            found.add(str(path.parent if path.name == "simple" else path))
    return sorted(found - {"/", "/etc", "/usr", "/root", "/home", "/opt", "/var"})


def _mtu() -> int:
    """Return the MTU of the interface that the default route leaves by (1500 if there is none)."""
    for line in Path("/proc/net/route").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[1] == "00000000":
            return int(Path(f"/sys/class/net/{fields[0]}/mtu").read_text())
    return 1500
