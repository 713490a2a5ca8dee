# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The sentences of messages in Chinese, by code; catalogue.py says what stands in braces."""

from __future__ import annotations

MESSAGES = {
    # -- join: what joins the parts of a list --------------------------------------------------------
    "join.list": "；",
    "join.comma": "、",
    "join.and": "、",
    "join.sentences": "",
    # -- flag: flags of rows: judge/flags.py ---------------------------------------------------------
    #
    # -- note: notes of a report ---------------------------------------------------------------------
    #
    # -- bottleneck: bottlenecks and advice: judge/bottleneck.py -------------------------------------
    "bottleneck.judged": "{sentences:sentences}",
    "bottleneck.likely": "{what}（{evidence:comma}）。",
    "bottleneck.none": "没有明显的瓶颈（{evidence:comma}）。",
    "bottleneck.also": "另有 {causes:and}。",
    "bottleneck.other": "{cause}（{evidence:comma}）",
    "bottleneck.try": "可尝试：{advice}。",
    "bottleneck.exchange": "每步有一部分可能用于设备间通信（{evidence:comma}）。",
    "bottleneck.not_measured": "未测量：{names:comma}。",
    "bottleneck.percent": "{of} {value:.3g} %",
    "bottleneck.part": "{of} {value:percent3}",
    "bottleneck.number": "{of} {value:.3g}",
    "cause.power-limited": "受功耗限制",
    "cause.communication-bound": "受通信限制",
    "cause.memory-capacity-bound": "受内存或显存容量限制",
    "cause.memory-bound": "受显存带宽限制",
    "cause.gpu-bound": "受 GPU 算力限制",
    "cause.input-bound": "受数据输入限制",
    "cause.shared-processors": "处理器不足",
    "cause.launch-bound": "受 kernel 启动限制",
    "cause.host-bound": "受主机限制",
    "cause.waiting": "等待",
    "cause.thread-bound": "受单个线程限制",
    "cause.processor-bound": "受处理器限制",
    "bottleneck.power_limited": "受功耗限制：功耗上限压低了 GPU 频率",
    "bottleneck.link_full": "受通信限制：网络链路接近满载，扩展效率下降",
    "bottleneck.gpu_memory_full": "受显存容量限制：GPU 未占满，而更大的 batch 显存不足",
    "bottleneck.memory_bound": "受显存带宽限制：GPU 大部分时间在搬运数据",
    "bottleneck.gpu_bound": "受 GPU 算力限制：GPU 几乎一直在计算",
    "bottleneck.sm_lost": "可能受通信限制：kernel 一直在运行，但对 GPU 的占用低于单设备",
    "bottleneck.gpus_wait_for_input": "可能受数据输入限制：主机工作时 GPU 有部分时间在等待",
    "bottleneck.gpus_short_of_processors": "处理器不足：其他程序占用处理器时 GPU 有部分时间在等待",
    "bottleneck.launch_bound": "可能受 kernel 启动限制：小 kernel 接连启动，启动它们的线程从不等待",
    "bottleneck.host_bound": "受主机限制：GPU 在等待主机，主机同一时刻只有一个线程在准备数据或启动 kernel",
    "bottleneck.gpus_wait": "等待：GPU 有部分时间空闲，而处理器和磁盘并不繁忙；未测量其等待的对象",
    "bottleneck.thread_bound": "受单个线程限制：任务的一个线程从不等待，其余线程在等待，且等待的不是处理器；该线程在准备数据，或在计算其他线程所等待的结果",
    "bottleneck.short_of_processors": "处理器不足：处理器繁忙，但主要用于其他程序或其他模拟节点",
    "bottleneck.processor_bound": "受处理器限制：处理器几乎一直繁忙",
    "bottleneck.memory_full": "受内存容量限制：节点内存已满",
    "bottleneck.storage_bound": "可能受数据输入限制：大部分时间有磁盘繁忙，或有处理器在等待磁盘",
    "bottleneck.processes_wait_for_others": "可能受通信限制：扩展效率下降，且进程的等待多于单设备",
    "bottleneck.processes_wait_for_input": "可能受数据输入限制：进程在等待，且等待的既不是处理器也不是其他设备",
    "bottleneck.processes_wait": "等待：任务的进程有部分时间空闲，而磁盘并不繁忙；未测量其等待的对象",
    "bottleneck.fused": "算子融合（xla=true）",
    "bottleneck.bits": "16 位精度（dtype={dtype}）",
    "bottleneck.larger_batch": "更大的 batch（bsz={bsz}；{evidence}）",
    "bottleneck.larger_batch_unknown": "更大的 batch（bsz={bsz}；bsz=max 可找出放得下的最大值）",
    "bottleneck.half_batch": "batch 减半并设 accumulation={steps}",
    "bottleneck.accumulation": "梯度累积（accumulation={steps}），以减少通信次数",
    "bottleneck.larger_pieces": "更大的梯度分块（{variable}=200）",
    "bottleneck.steps_per_loop": "框架每次调用执行多步（{variable}=10）",
    "bottleneck.checkpointing": "梯度检查点",
    "bottleneck.checkpointing_by": "梯度检查点（{variable}=true）",
    "bottleneck.faster_storage": "更快的存储",
    "bottleneck.more_loaders": "更多数据加载进程",
    "bottleneck.prepared_input": "预先处理输入数据或将其留在内存中",
    "bottleneck.power_limit": "条件允许时提高功耗上限，并按每焦耳样本数评判",
    "bottleneck.more_devices": "更多设备",
    "bottleneck.more_processors": "更多处理器或节点",
    "bottleneck.own_machines": "使用专用的机器",
    "bottleneck.profile": "剖析该线程",
    "bottleneck.threads": "该线程在计算时增加每个进程的线程数，在准备输入时增加数据加载进程",
    "bottleneck.look": "检查输入数据、网络存储、锁和其他节点",
    # -- quantity: what telemetry measures: quantities.py --------------------------------------------
    "quantity.cpu": "CPU",
    "quantity.memory": "内存",
    "quantity.network": "网络收发",
    "quantity.network_link": "最忙的网络链路",
    "quantity.network_link_of_capacity": "最忙的网络链路占其带宽",
    "quantity.disk": "磁盘读写",
    "quantity.disk_busy": "最忙的磁盘",
    "quantity.gpu": "GPU 利用率",
    "quantity.sm_active": "SM 活跃率",
    "quantity.pipe_tensor_active": "Tensor 流水线活跃率",
    "quantity.dram_active": "DRAM 活跃率",
    "quantity.gpu_memory": "GPU 显存",
    "quantity.gpu_power": "GPU 功率",
    "quantity.gpu_energy": "每样本 GPU 能耗",
    "quantity.gpu_samples_per_joule": "GPU 每焦耳样本数",
    "quantity.gpu_energy_per_million": "每百万样本 GPU 能耗",
    "quantity.job_queued": "任务每设备等待的处理器数",
    "quantity.storage_waits": "等待存储的处理器数",
    "quantity.busiest_thread": "任务中最忙的线程",
    "quantity.next_thread": "次忙的线程",
    "quantity.busiest_core": "最忙的处理器",
    "quantity.job_cpu": "任务可用的处理器",
    "quantity.job_processors": "任务每设备占用的处理器数",
    "quantity.job_share": "任务占繁忙处理器的比例",
    "quantity.power_capped": "处于功耗上限的时间",
    "quantity.power_used": "GPU 功率占其上限",
    "quantity.efficiency": "扩展效率",
    "quantity.sm_active_of_one": "1n1g 的 SM 活跃率",
    "quantity.beyond_slowest": "单步时间中超出最慢设备的部分",
    "quantity.process_processors": "每进程",
    "quantity.job_processors_of_one": "1n1g 的任务占用的处理器数",
    "quantity.job_queued_of_one": "1n1g 的任务等待的处理器数",
    "quantity.panel_utilisation": "利用率，%",
    "quantity.panel_memory": "内存，%",
    "quantity.panel_power": "GPU 功率，W",
    "quantity.panel_moved": "传输速率，MB/s",
    "quantity.met": "不低于 {criterion:g}%",
    "quantity.not_met": "低于 {criterion:g}%",
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
