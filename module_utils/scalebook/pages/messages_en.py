# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sentences of messages in English, by code; catalogue.py says what stands in braces."""

from __future__ import annotations

MESSAGES = {
    # -- join: what joins the parts of a list --------------------------------------------------------
    "join.list": "; ",
    "join.comma": ", ",
    "join.and": " and ",
    "join.sentences": " ",
    # -- flag: flags of rows: judge/flags.py ---------------------------------------------------------
    #
    # -- note: notes of a report ---------------------------------------------------------------------
    #
    # -- bottleneck: bottlenecks and advice: judge/bottleneck.py -------------------------------------
    "bottleneck.judged": "{sentences:sentences}",
    "bottleneck.likely": "{what} ({evidence:comma}).",
    "bottleneck.none": "No bottleneck is evident ({evidence:comma}).",
    "bottleneck.also": "Also {causes:and}.",
    "bottleneck.other": "{cause} ({evidence:comma})",
    "bottleneck.try": "Try {advice}.",
    "bottleneck.exchange": "Part of each step is exchange between devices, likely ({evidence:comma}).",
    "bottleneck.not_measured": "Not measured: {names:comma}.",
    "bottleneck.percent": "{of} {value:.3g} %",
    "bottleneck.part": "{of} {value:percent3}",
    "bottleneck.number": "{of} {value:.3g}",
    "cause.power-limited": "power-limited",
    "cause.communication-bound": "communication-bound",
    "cause.memory-capacity-bound": "memory-capacity-bound",
    "cause.memory-bound": "memory-bound",
    "cause.gpu-bound": "gpu-bound",
    "cause.input-bound": "input-bound",
    "cause.shared-processors": "shared-processors",
    "cause.launch-bound": "launch-bound",
    "cause.host-bound": "host-bound",
    "cause.waiting": "waiting",
    "cause.thread-bound": "thread-bound",
    "cause.processor-bound": "processor-bound",
    "bottleneck.power_limited": "Power-limited: the power limit held the clocks of the GPUs down",
    "bottleneck.link_full": "Communication-bound: efficiency is lost while a network link is near its capacity",
    "bottleneck.gpu_memory_full": "Memory-capacity-bound: the GPUs are not full, and a larger batch ran out of memory",
    "bottleneck.memory_bound": "Memory-bound: the GPUs move data most of the time",
    "bottleneck.gpu_bound": "GPU-bound: the GPUs compute nearly all the time",
    "bottleneck.sm_lost": "Communication-bound, likely: kernels run all the time, but use less of the GPU than on one device",
    "bottleneck.gpus_wait_for_input": "Input-bound, likely: the GPUs wait part of the time while the host works",
    "bottleneck.gpus_short_of_processors": "Short of processors: the GPUs wait part of the time while other programs keep the processors busy",
    "bottleneck.launch_bound": "Launch-bound, likely: small kernels follow each other, and the thread that starts them never waits",
    "bottleneck.host_bound": (
        "Host-bound: the GPUs wait for the host, where one thread at a time prepares input or starts kernels"
    ),
    "bottleneck.gpus_wait": (
        "Waiting: the GPUs are idle part of the time while processors and disks are not busy; what they "
        "wait for was not measured"
    ),
    "bottleneck.thread_bound": (
        "Thread-bound: one thread of the job never waits, while its others do, and not for processors; it "
        "prepares input, or computes what the others wait for"
    ),
    "bottleneck.short_of_processors": "Short of processors: they are busy, mostly with other programs or other simulated nodes",
    "bottleneck.processor_bound": "Processor-bound: the processors are busy nearly all the time",
    "bottleneck.memory_full": "Memory-capacity-bound: the memory of the nodes is full",
    "bottleneck.storage_bound": "Input-bound, likely: a disk is busy, or processors wait for one, most of the time",
    "bottleneck.processes_wait_for_others": "Communication-bound, likely: efficiency is lost, and the processes wait more than on one device",
    "bottleneck.processes_wait_for_input": "Input-bound, likely: the processes wait, and neither for processors nor for other devices",
    "bottleneck.processes_wait": (
        "Waiting: the processes of the job are idle part of the time while disks are not busy; what they "
        "wait for was not measured"
    ),
    "bottleneck.fused": "fused operations (xla=true)",
    "bottleneck.bits": "16 bits (dtype={dtype})",
    "bottleneck.larger_batch": "a larger batch (bsz={bsz}; {evidence})",
    "bottleneck.larger_batch_unknown": "a larger batch (bsz={bsz}; bsz=max finds the largest that fits)",
    "bottleneck.half_batch": "half the batch with accumulation={steps}",
    "bottleneck.accumulation": "gradient accumulation (accumulation={steps}), which exchanges less often",
    "bottleneck.larger_pieces": "larger pieces of gradients ({variable}=200)",
    "bottleneck.steps_per_loop": "several steps in one call of the framework ({variable}=10)",
    "bottleneck.checkpointing": "gradient checkpointing",
    "bottleneck.checkpointing_by": "gradient checkpointing ({variable}=true)",
    "bottleneck.faster_storage": "faster storage",
    "bottleneck.more_loaders": "more loader processes",
    "bottleneck.prepared_input": "input data prepared beforehand or kept in memory",
    "bottleneck.power_limit": "a higher power limit where the site allows one, judged by samples per joule",
    "bottleneck.more_devices": "more devices",
    "bottleneck.more_processors": "more processors or nodes",
    "bottleneck.own_machines": "machines that run nothing else",
    "bottleneck.profile": "a profile of that thread",
    "bottleneck.threads": "more threads per process where it computes, more loader processes where it prepares input",
    "bottleneck.look": "a look at the input data, storage in the network, locks and other nodes",
    # -- quantity: what telemetry measures: quantities.py --------------------------------------------
    "quantity.cpu": "CPU",
    "quantity.memory": "memory",
    "quantity.network": "network, in and out",
    "quantity.network_link": "busiest network link",
    "quantity.network_link_of_capacity": "busiest network link, of its capacity",
    "quantity.disk": "disk, read and written",
    "quantity.disk_busy": "busiest disk",
    "quantity.gpu": "GPU utilisation",
    "quantity.sm_active": "SM active",
    "quantity.pipe_tensor_active": "tensor pipe active",
    "quantity.dram_active": "DRAM active",
    "quantity.gpu_memory": "GPU memory",
    "quantity.gpu_power": "GPU power",
    "quantity.gpu_energy": "GPU energy per sample",
    "quantity.gpu_samples_per_joule": "samples per joule of the GPUs",
    "quantity.gpu_energy_per_million": "GPU energy per million samples",
    "quantity.job_queued": "processors that the job waited for per device",
    "quantity.storage_waits": "processors that waited for storage",
    "quantity.busiest_thread": "busiest thread of the job",
    "quantity.next_thread": "next busiest thread",
    "quantity.busiest_core": "busiest processor",
    "quantity.job_cpu": "processors that the job may use",
    "quantity.job_processors": "processors that the job kept busy per device",
    "quantity.job_share": "the job's part of the busy processors",
    "quantity.power_capped": "time at the power limit",
    "quantity.power_used": "GPU power relative to its limit",
    "quantity.efficiency": "efficiency",
    "quantity.sm_active_of_one": "SM active of 1n1g",
    "quantity.beyond_slowest": "step beyond that of the slowest device",
    "quantity.process_processors": "per process",
    "quantity.job_processors_of_one": "processors of 1n1g that the job kept busy",
    "quantity.job_queued_of_one": "processors of 1n1g that the job waited for",
    "quantity.panel_utilisation": "utilisation, %",
    "quantity.panel_memory": "memory, %",
    "quantity.panel_power": "GPU power, W",
    "quantity.panel_moved": "moved, MB/s",
    "quantity.met": "at least {criterion:g} %",
    "quantity.not_met": "below {criterion:g} %",
    # -- reason: why runs do not count: read/, judge/ ------------------------------------------------
    #
    # -- skipped: why cases were not run: plan/ ------------------------------------------------------
    #
    # -- preflight: findings of preflight ------------------------------------------------------------
    #
    # -- mfu: peaks and operations -------------------------------------------------------------------
    #
    # -- compare: comparisons with earlier and published results -------------------------------------
    #
    # -- report: headings and texts of reports -------------------------------------------------------
    #
    # -- index: the page over all campaigns ----------------------------------------------------------
    #
    # -- microbench: micro-benchmarks ----------------------------------------------------------------
    #
    # -- evaluation: the evaluation ------------------------------------------------------------------
    #
}
