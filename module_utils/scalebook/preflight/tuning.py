# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Checks of how machines are set up: what costs speed, or may change under a campaign (preflight.judge)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import Any

from ansible.module_utils.scalebook.contracts import Finding, as_message, message
from ansible.module_utils.scalebook.preflight.site import Check, Site, finding

DEEP = 100
"""Microseconds to wake up from which on an idle state is deep."""

DNF_DRIVER = re.compile(
    r"(a?kmod|dkms)-nvidia|nvidia-(driver|kmod|open)|libnvidia-(?!container)|cuda-drivers"
)
"""The packages of the driver in NVIDIA's repositories for the RHEL family."""

REDIRECTS = 0b11100
"""Bits of the ACS control register that send what devices say to each other through the processor."""


def processors(site: Site) -> Iterator[Finding]:
    """Processors run at full speed, wake up fast, and memory stays where it is."""
    for machine, facts in site.facts("processors"):
        slow = {name: number for name, number in facts["governors"].items() if name != "performance"}
        if slow:
            governors = [
                message("preflight.governor", count=number, name=name) for name, number in slow.items()
            ]
            count = sum(facts["governors"].values())
            observed = message("preflight.governors", count=count, each=governors)
            fix = as_message("cpupower frequency-set -g performance")
            yield finding("cpu", "warn", machine["nodes"], observed=observed, expected="performance", fix=fix)
        deep = [
            f"{state['name']} ({state['latency']} µs)"
            for state in facts["idle"]
            if state["disable"] == "0" and state["latency"].isdigit() and int(state["latency"]) >= DEEP
        ]
        if deep:
            observed = message("preflight.idle-states", states=deep)
            fix = message("fix.idle-states", microseconds=DEEP)
            expected = message("expected.wake-up", microseconds=DEEP)
            yield finding("cpu", "warn", machine["nodes"], observed=observed, expected=expected, fix=fix)
        if facts["numa_nodes"] > 1 and facts["numa_balancing"] not in ("", "0"):
            observed = message("preflight.numa-balancing", count=facts["numa_nodes"])
            fix = as_message("sysctl -w kernel.numa_balancing=0")
            yield finding(
                "cpu", "warn", machine["nodes"], observed=observed, expected=message("expected.off"), fix=fix
            )


def path(site: Site) -> Iterator[Finding]:
    """Neither the IOMMU nor ACS sends what GPUs and network adapters say to each other through the processor.

    https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html (PCI ACS)
    """
    for machine, gpus in site.facts("switches"):
        translated = sorted({gpu["iommu"] for gpu in gpus.values() if gpu["iommu"].startswith("DMA")})
        if translated:
            observed = message("preflight.iommu", types=", ".join(translated))
            fix = message("fix.iommu")
            yield finding("path", "warn", machine["nodes"], observed=observed, expected="identity", fix=fix)
        redirecting = {
            port: control
            for gpu in gpus.values()
            for port, control in gpu["ports"].items()
            if control and control & REDIRECTS
        }
        if redirecting:
            observed = message("preflight.acs", ports=sorted(redirecting))
            fix = message("fix.acs")
            yield finding(
                "path", "warn", machine["nodes"], observed=observed, expected=message("expected.off"), fix=fix
            )


def path_applies(site: Site) -> bool:
    """Return whether a GPU of a machine has another, or a network adapter, to talk to."""
    several = any(len(gpus) > 1 for _, gpus in site.facts("switches"))
    return site.with_gpus and (site.connected or several)


def upgrade(site: Site) -> Iterator[Finding]:
    """Nothing replaces the driver by itself while a campaign goes on."""
    for machine, apt in site.facts("upgrades"):
        if not apt or 'APT::Periodic::Unattended-Upgrade "1";' not in apt["settings"]:
            continue
        barred = [line.split('"')[1] for line in apt["settings"] if "Package-Blacklist" in line]
        names = [line.split()[1] for line in apt["packages"] if line.startswith("ii")]  # hi: on hold
        open_to_it = [name for name in names if not any(re.match(pattern, name) for pattern in barred)]
        driver = [
            name for name in open_to_it if re.match(r"nvidia-(driver|dkms|kernel)|libnvidia-compute", name)
        ]
        if "unattended-upgrades" in names and driver:
            yield _open_to_upgrades(machine["nodes"], driver, f"apt-mark hold {' '.join(driver)}")
    for machine, dnf in site.facts("dnf_upgrades"):
        driver = _open_to_dnf(dnf) if dnf else []
        if driver:
            yield _open_to_upgrades(machine["nodes"], driver, f"dnf versionlock add {' '.join(driver)}")


def _open_to_upgrades(nodes: Sequence[str], packages: Sequence[str], command: str) -> Finding:
    observed = message("preflight.upgrades", packages=[*packages])
    fix = as_message(command)
    return finding("upgrade", "warn", nodes, observed=observed, expected=message("expected.on-hold"), fix=fix)


def _open_to_dnf(dnf: Mapping[str, Any]) -> list[str]:
    """Return the packages of the driver that dnf-automatic may replace."""
    applies = re.search(r"(?im)^\s*apply_updates\s*=\s*(yes|true|1|on)\b", dnf["automatic"])
    if not ("dnf-automatic-install.timer" in dnf["timers"] or (dnf["timers"] and applies)):
        return []
    lists = re.findall(r"(?m)^\s*exclude(?:pkgs)?\s*=(.*)$", f"{dnf['dnf']}\n{dnf['automatic']}")
    excluded = [pattern for line in lists for pattern in re.split(r"[\s,]+", line) if pattern]
    # name-epoch:version, or only the name
    locked = {re.sub(r"-\d+:.*", "", line.strip()) for line in dnf["locked"].splitlines()}
    return [
        name
        for name in dnf["packages"]
        if DNF_DRIVER.match(name)
        and name not in locked
        and not any(fnmatch(name, pattern) for pattern in excluded)
    ]


CHECKS = (
    Check("cpu", processors),
    Check("path", path, path_applies),
    Check("upgrade", upgrade, lambda site: site.with_gpus),
)
