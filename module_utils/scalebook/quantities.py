# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The table of what telemetry measures: from which columns of the sampler, and where it is printed.

A quantity has one line here and one in each catalogue (`quantity.<name>`).  The table of utilisation, the
sheet, the charts over time, the metrics and the evidence of the bottleneck follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

MEGA = 1e6


class Reading(NamedTuple):
    """A column, `group:instance:quantity`, of any instance with `*`, and the fact of which it is a part."""

    column: str
    whole: str = ""


class Quantity(NamedTuple):
    """One quantity: `factor` times each reading, as a part of its whole, combined and divided by `per`.

    Without `combine` each instance has a value of its own, by the first of the readings that it has.
    """

    name: str
    unit: str
    reads: tuple[Reading, ...]
    factor: float = 1
    combine: Callable[[Iterable[float]], float] | None = None
    per: float = 1
    judged: bool = False  # whether its mean is judged by itself
    panel: str = ""  # of the charts over time
    column: int = 0  # its place in the tables of an evaluation, 0 for none
    metric: str = ""  # its name in metrics.prom, without prefix and unit; what it is there
    help: str = ""
    heading: str = ""  # the word of its heading in the table, where that is not its name

    @property
    def code(self) -> str:
        """Return the code of the heading of the table."""
        return f"quantity.{self.heading or self.name}"


def _read(*columns: str, whole: str = "") -> tuple[Reading, ...]:
    return tuple(Reading(column, whole) for column in columns)


def _gpu(*columns: str, whole: str = "") -> tuple[Reading, ...]:
    return _read(*(f"gpu:*:{column}" for column in columns), whole=whole)


def _moved(*ways: str, ethernet: str = "", infiniband: str = "") -> tuple[Reading, ...]:
    return tuple(
        Reading(f"{group}:*:{way}", whole)
        for group, whole in (("network", ethernet), ("infiniband", infiniband))
        for way in ways
    )


TABLE = (
    Quantity(
        "cpu", "%", _read("cpu::busy", whole="cores"), 100, judged=True, panel="utilisation", column=4,
        metric="cpu_utilisation", help="Processors that were busy.",
    ),
    Quantity(
        "memory", "%", _read("memory::used", whole="memory"), 100, judged=True, panel="memory", column=5,
        metric="memory_used", help="Memory in use.",
    ),
    Quantity(
        "network", "MB/s", _moved("received", "sent"), combine=sum, per=MEGA, panel="moved", column=8,
        metric="network", help="Sent and received.",
    ),
    Quantity(
        "network_link", "%", _moved("received", "sent", ethernet="ethernet", infiniband="infiniband"),
        100 * 8, max, judged=True, heading="network_link_of_capacity",
        metric="network_link_utilisation", help="Busiest link, of its capacity.",
    ),
    Quantity(
        "disk", "MB/s", _read("disk:*:read", "disk:*:written"), combine=sum, per=MEGA, panel="moved",
        column=7, metric="disk", help="Read and written.",
    ),
    Quantity(
        "disk_busy", "%", _read("disk:*:busy"), 100, max, judged=True, column=6,
        metric="disk_busy", help="Time in which the busiest disk was busy.",
    ),
    Quantity(
        "gpu", "%", _gpu("utilization"), judged=True, panel="utilisation", column=1,
        metric="gpu_utilisation", help="Time in which some kernel ran.",
    ),
    Quantity(
        "sm_active", "%", _gpu("sm_active"), panel="utilisation", column=2,
        metric="gpu_sm_active", help="Multiprocessors on which a kernel ran.",
    ),
    Quantity(
        "pipe_tensor_active", "%", _gpu("pipe_tensor_active"),
        metric="gpu_tensor_active", help="Activity of the tensor pipe.",
    ),
    Quantity(
        "dram_active", "%", _gpu("dram_active"),
        metric="gpu_dram_active", help="Bandwidth of the GPU memory in use.",
    ),
    Quantity(
        "gpu_memory", "%", _gpu("memory", whole="gpu_memory"), 100, panel="memory", column=3,
        metric="gpu_memory_used", help="GPU memory in use.",
    ),
    # The rate of the energy counter is the power over exactly the window.
    Quantity(
        "gpu_power", "W", _gpu("energy", "power"), panel="power", column=9,
        metric="gpu_power", help="Power of a GPU.",
    ),
    # What follows from the power and the rate.
    Quantity(
        "gpu_energy", "J", (), column=10,
        metric="gpu_energy", help="Energy of all GPUs for one sample.",
    ),
    Quantity("gpu_energy_per_token", "J", ()),
    Quantity("gpu_samples_per_joule", "1/J", ()),
    Quantity("gpu_energy_per_million", "kWh", ()),
)  # fmt: skip
"""The quantities of the table of utilisation, in its order."""

MORE = (
    Quantity("stolen", "%", _read("cpu::steal", whole="needed"), 100),
    Quantity("job_queued", "", _read("job::queued")),
    Quantity("storage_waits", "", _read("cpu::iowait")),
    Quantity("busiest_thread", "%", _read("job::busiest_thread"), 100),
    Quantity("next_thread", "%", _read("job::next_thread"), 100),
    Quantity("busiest_core", "%", _read("core:*:busy"), 100, max),
    Quantity("job_cpu", "%", _read("job::cores_busy", whole="job_cores"), 100),
    Quantity("job_processors", "", _read("job::busy")),
    Quantity("job_share", "%", _read("job::busy", whole="computing"), 100),
    Quantity("power_capped", "%", _gpu("throttle_power_cap"), 100),
    Quantity("power_used", "%", _gpu("energy", "power", whole="power_limit"), 100),
)
"""What rows and bottlenecks are judged by besides; no unit are processors."""

QUANTITIES = {quantity.name: quantity for quantity in (*TABLE, *MORE)}


def _panels() -> dict[str, list[Quantity]]:
    """Return the quantities of each chart over time, those of GPUs first."""
    charted = [quantity for quantity in TABLE if quantity.panel]
    of_panel: dict[str, list[Quantity]] = {}
    for quantity in sorted(charted, key=lambda each: not each.reads[0].column.startswith("gpu:")):
        of_panel.setdefault(quantity.panel, []).append(quantity)
    return of_panel


PANELS = _panels()


def _timeline_columns() -> re.Pattern[str]:
    """Return what the charts need: of several readings of the same the last, which is read most often."""
    charted = [
        reading.column
        for quantities in PANELS.values()
        for quantity in quantities
        for reading in (quantity.reads if quantity.combine else quantity.reads[-1:])
    ]
    return re.compile("|".join(re.escape(column).replace(r"\*", "[^:]*") for column in charted))


TIMELINE_COLUMNS = _timeline_columns()
