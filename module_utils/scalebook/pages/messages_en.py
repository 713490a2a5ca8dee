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
    "join.and-no": " and no ",
    # -- flag: flags of rows: judge/flags.py ---------------------------------------------------------
    "flag.incomplete": "INCOMPLETE: 0 of {repeats} valid",
    "flag.runs": "{good}/{planned} repeats valid",
    "flag.repeat": "{count} repeat",
    "flag.repeats": "{count} repeats",
    "flag.valid": "{count} valid",
    "flag.provisional": "provisional: {good} valid, {needed} are needed",
    "flag.outlier": "outlier: repeat {repeats:comma} (kept; the median is robust to it)",
    "flag.scattered": "the repeats differ by {percent:.1f} %",
    "flag.time-sources-differ": "two time sources differ by up to {percent:.1f} % (repeat {repeats:comma})",
    "flag.warm-up-not-over": "warm-up not over ({count} of {repeats})",
    "flag.slowing-down": "slowing down ({count} of {repeats})",
    "flag.no-baseline": "speedup n/a: no valid run of 1n1g in this table",
    "flag.no-baseline-of-batch": "speedup n/a: no valid run of 1n1g with this global batch",
    "flag.baseline-provisional": "speedup over a provisional 1n1g ({runs})",
    "flag.superlinear": "speedup {speedup:.2f} on {devices} devices is more than linear; likely: {causes:list}",
    "flag.baseline-few": "baseline too slow (1n1g has only {repeats})",
    "flag.baseline-scattered": "baseline too slow (the repeats of 1n1g differ by {percent:.1f} %)",
    "flag.baseline-unsteady": "baseline too slow (1n1g was not steady)",
    "flag.baseline-slow": "baseline too slow (1n1g throttled or sharing its machine), or gradient accumulation that differs with the number of devices",
    "flag.accumulation": "gradient accumulation: the window holds few all-reduces or none",
    "flag.slow-alone": "1n1g is slow with {samples} samples on one device, or short of memory",
    "flag.changed-file": "repeat {repeat}: {problem}",
    "flag.slower-than-one": "slower than one device: {hint}",
    "flag.power-limited": "the power limit held the clocks down: {gpus}",
    "flag.throttled": "the temperature held the clocks down: {gpus}",
    "flag.throttled-hardware": "the hardware held the clocks down (power supply or overheating): {gpus}",
    "flag.gpu-swings": "GPUs swing between idle and busy; idle: {gpus}",
    "flag.gpu": "{gpu} for {share:percent3} of the window",
    "flag.gpus": "{gpu} for {share:percent3} of the window ({count} more, from {least:percent3} on)",
    "flag.shared-machine": "{nodes} nodes, {machines} machine: this says nothing about a network between machines",
    "flag.shared-machines": "{nodes} nodes, {machines} machines: this says nothing about a network between machines",
    "flag.machines-unknown": "{nodes} nodes in containers: no record says on how many machines",
    "flag.stolen": "the hypervisor took up to {percent:.3g} % of a node's processor time (repeat {repeats:comma})",
    "flag.machine-changed": "not all repeats ran on the same machines, or one was started again in between (repeat {repeats:comma})",
    "flag.baseline-elsewhere": "1n1g (repeat {repeats:comma}) ran on a machine that this case did not use, or before it was started again: the speedup compares different machines",
    "flag.above-peak": "MFU {percent:.1f} %: faster than the peak ({peak})",
    "flag.not-on-tensor-cores": "tensor pipe active {active:.2g} %, MFU {percent:.1f} %: most products did not run on tensor cores, whose peak the MFU takes",
    # A flag in a cell.
    "short.incomplete": "INCOMPLETE",
    "short.runs": "runs excluded",
    "short.provisional": "provisional",
    "short.outlier": "outlier",
    "short.scattered": "scattered",
    "short.shared-machine": "shared machine",
    "short.above-peak": "above peak",
    "short.not-on-tensor-cores": "not on tensor cores",
    "short.time-sources-differ": "time sources differ",
    "short.warm-up-not-over": "warm-up not over",
    "short.slowing-down": "slowing down",
    "short.no-baseline": "no 1n1g",
    "short.superlinear": "above linear",
    "short.baseline-provisional": "baseline provisional",
    "short.slower-than-one": "slower than one",
    "short.changed-file": "changed file",
    "short.power-limited": "power limited",
    "short.throttled": "throttled",
    "short.stolen": "CPU time stolen",
    "short.machine-changed": "machine changed",
    "short.gpu-swings": "gpu swings",
    # -- note: notes of a report ---------------------------------------------------------------------
    "note.unsealed": "The archive has no {lacking:and-no}: whether its files are those that were packed cannot be checked",
    "note.printed-rates": "All rates are the mean of those that the workload prints (reading=printed), not from time stamps; runs without printed rates do not count",
    "note.not-counted": "not counted: {what}",
    "note.no-speedup": "{group}: without a valid run of 1n1g there is no speedup; the result JSON holds null (DLPerf writes 1.0)",
    "note.of-runs": "{note} ({runs:comma})",
    "note.of-more-runs": "{note} ({runs:comma} and {count} more runs)",
    "note.run": "{case} repeat {repeat}",
    "note.changed": "{file} has been changed since it was reported",
    "note.missing": "{file} is missing since it was reported",
    "note.added": "{file} has been added since it was reported",
    "note.first-checksum": "{problem}; manifest.json keeps its first checksum",
    "note.measured-again": "{run} ({status}) was measured again since the last report",
    "note.now-changed": "{file} is changed since the last report",
    "note.now-missing": "{file} is missing since the last report",
    "note.now-added": "{file} is added since the last report",
    "note.log-missing": "{files} is missing: its record alone says what was measured",
    "note.log-changed": "{files} is not the log that its record was made from: it has another sha256",
    "note.files": "{file} (and {count} more)",
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
    "reason.because": "{what}: {why}",
    "reason.together": "{parts:list}",
    "reason.rank": "{node} (rank {rank})",
    "reason.rank-of-host": "{node} (rank {rank}, host {host})",
    "reason.run-job": "run_job on {node}",
    "reason.run-node": "{node}: run_node of rank {rank} on {host}",
    "reason.exit": "ended with exit code {rc}",
    "reason.signal": "was ended by signal {number} ({name})",
    "reason.signal-number": "was ended by signal {number}",
    "reason.ended": "{who} {end}",
    "reason.it": "it {end}",
    "reason.signalled": "{who} was ended by a signal",
    "reason.terminated": "{who:comma} was terminated",
    "reason.refused": "{who} was refused",
    "reason.failed": "{who} failed",
    "reason.time-limit": "{who} ran past its time limit",
    "reason.was": "{who} was {status}",
    "reason.hung": "{who} hung",
    "reason.stopped": "{count} of its processes stopped (SIGSTOP)",
    "reason.lost": "{node} was lost",
    "reason.no-job": "{node} could not be given its job",
    "reason.unclosed": "{nodes:comma} left no closing line",
    "reason.rendezvous": "rendezvous timeout: {why}",
    "reason.no-login": "no login to {hosts:comma}",
    "reason.never-began": "{nodes:comma} never began",
    "reason.all-began": "all nodes began",
    "reason.out-of-memory": '{who} ran out of memory: its log says "{line}"; {then}',
    "reason.out-of-disk": '{who} ran out of disk: its log says "{line}"; {then}',
    "reason.killed-for-memory": "{who} ran out of memory: the kernel killed a process of its; it {end}",
    "reason.log-says": 'its log says "{line}"',
    "reason.log-of-says": 'the log of {node} says "{line}"',
    "reason.it-says": 'it says "{line}"',
    "reason.lost-contact": "mpirun lost contact with {host}",
    "reason.connection-broke": "the connection to {node} broke during the run",
    "reason.mpirun-time-limit": "mpirun ran past its time limit after {seconds} s",
    "reason.log-unclosed": "{file} ends without run_node's closing line: its machine or run_node died",
    "reason.missing": "{file} is missing",
    "reason.directory": "{file} is a directory",
    "reason.irregular": "{file} is not a regular file",
    "reason.unreadable": "{file} cannot be read: {why}",
    "reason.implausible": "{file} is not plausible: {why}",
    "reason.empty": "{file} is empty, step {step} is required",
    "reason.no-step": "{file} shows no step, step {step} is required",
    "reason.stops": "{file} stops at step {last}, step {step} is required",
    "reason.no-begin": "{file} does not show step {step}, where the window begins",
    "reason.no-end": "{file} does not show step {step}, where the window ends",
    "reason.other-length": "{file} says the run has {shown:comma} steps, the case has {steps}",
    "reason.other-value": "{file} shows {name} {value}, the case has {field} {wanted}",
    "reason.nodes-differ": "{file} shows {name} {value}, {other} shows {theirs}",
    "reason.absent": '{file} does not show {name} (a line with "{line}")',
    "reason.another-program": "another program wrote it",
    "reason.several-entries": "one line holds several entries of a step ({step}): two ranks or two runs in one file",
    "reason.step-twice": "step {step} is logged twice: two ranks or two runs in one file",
    "reason.step-after": "step {step} comes after step {before}: two ranks or two runs in one file",
    "reason.mixed-micro-steps": "some lines of steps count micro-steps, others do not: two runs in one file",
    "reason.step-too-large": "a step number is beyond all bounds",
    "reason.no-step-number": "a step line has no step number",
    "reason.no-time": "a step line has no time: {why}",
    "reason.odd-time": "{text} is not a time of the format {format}",
    "reason.clock-back": "the clock goes back between step {before} and step {step}",
    "reason.loss": "the loss is {value} at step {step}",
    "reason.rate": "a rate is {text}",
    "reason.odd-rate": "a rate is {text}, which cannot be read as a number",
    "reason.ranks-apart": "{first} and {other} did not train together",
    "reason.rank-refused": "{rank} {why}",
    "reason.rank-stops": "{rank} stops at step {step}",
    "reason.rank-takes": "{rank} takes {theirs:.3f} s for the window, not {ours:.3f} s",
    "reason.no-first-node": "the record has no node with task_index 0",
    "reason.no-reading": "no reading covers the window: neither time stamps of its first and last step nor rates",
    "reason.no-rates": "its log prints no rates for the window, which reading=printed asks for",
    "reason.two-rates": "by its steps the rate is {rate:.1f}, by its own lines {own:.1f}",
    "reason.times-as-much": "{count} times as much, and the case has {field} {count}",
    "reason.times-less": "{count} times less, and the case has {field} {count}",
    "reason.times-as-much-unknown": "{count} times as much, so batch, devices or accumulation of the log are not those of the case",
    "reason.micro-steps-contradicted": "seems to count micro-steps, {count} to a step, which its own rate contradicts",
    "reason.micro-steps-unproven": "seems to count micro-steps, {count} to a step, and prints no rate that tells",
    "reason.reads-it": "{parameters} reads it",
    "reason.window-fits": "{parameters} fits its steps",
    "reason.like-steps": '{count} lines look like steps, such as "{line}": no workload reads them',
    "reason.known-steps": '{count} lines such as "{line}" are steps of {program} {why}',
    "reason.reads-them": "bench.yml with {parameters} reads them",
    "source.times": "times",
    "source.received": "received",
    "source.rates": "rates",
    "unit.samples": "samples",
    "unit.images": "images",
    "unit.sequences": "sequences",
    "unit.tokens": "tokens",
    "run.readings-differ": "two readings differ by {differs:.1%}: {rate:.2f} {unit}/s by {source}, {other:.2f} by {second}",
    "run.own-mean": "the rate is {rate:.2f} by {source} and {own:.2f} by the mean rate that it prints",
    "run.own-lines": "the rate is {rate:.2f} by {source} and {own:.2f} by its own lines",
    "run.own-end": "the rate is {rate:.2f} by {source} and {own:.2f} by its closing line",
    "run.micro-steps": "its steps are micro-steps: the window has {count:g} steps of the optimizer",
    "run.straggler-computed": (
        "{node} may hold the others up: it computed {mine:.1f} s in the window of {window:.1f} s, the "
        "others {others:.1f} s"
    ),
    "run.straggler-computed-or-queued": (
        "{node} may hold the others up: it computed or queued for a processor {mine:.1f} s in the window "
        "of {window:.1f} s, the others {others:.1f} s"
    ),
    "run.windows-apart": (
        "the window is {ours:.3f} s on {first} and {theirs:.3f} s on {node} ({share:.1%} apart by {source})"
    ),
    "run.whole-seconds": "the time stamps are whole seconds: the window of {seconds:.0f} s is known to {share:.1%}",
    "run.long-step": "step {step} alone takes {longest:.3f} s of the window's {seconds:.3f} s",
    "run.steps-missing": "{count} steps of the window are not logged, the first is {first}",
    "run.rates-missing": "{rates} of {logged} steps of the window print a rate",
    "run.unstamped": "{count} step lines have no receive stamp",
    "run.received-back": "the receive stamps go back",
    "run.unread-lines": "{count} lines look like step lines but cannot be read",
    "run.odd-loss": "the loss at step {step} is {text}, which is not a number",
    "run.clock-set": "the clock was set by {seconds:+.1f} s during the run: its own times do not count",
    "run.bytes-nul": "has NUL bytes",
    "run.bytes-long-line": "has a line of more than 16 KiB, of which only the head was read",
    "run.bytes-not-utf8": "has bytes that are not UTF-8",
    "run.ranks": "launcher's tags: the steps of {rank} count, those of {others:comma} agree",
    "run.rank-windows-apart": "the window of {rank} is more than {share:.0%} off that of {others:comma}",
    "run.and-more": "{names:comma} and {count} more",
    "run.not-recorded": "no reason recorded",
    "run.unmeasured": "cannot be measured: {why}",
    "run.same-log": "its log has the same content as that of {place}: the same log counts as one run",
    "run.planned": "planned, but there is no readable result.json",
    "failure.shared-memory": (
        "the shared memory (/dev/shm) is full or too small. Fix: make /dev/shm larger, in a container "
        "with --shm-size or --ipc=host"
    ),
    "failure.file-system": "a file system cannot be used. Fix: check dmesg, the mounts and the server of the files",
    "failure.open-files": (
        "the limit of open files is too low. Fix: raise it (ulimit -n, LimitNOFILE) or use fewer workers "
        "of data loaders"
    ),
    "failure.locked-memory": (
        "InfiniBand may not lock enough memory. Fix: set ulimit -l unlimited for logins, as "
        "provision.yml does, and log in again"
    ),
    "failure.processes": (
        "the limit of processes or threads is too low. Fix: raise it (ulimit -u, pids limit of the container)"
    ),
    "failure.fabric-manager": (
        "the NVLink fabric of the GPUs is not ready (Error 802): the fabric manager does not run, or its "
        "version is not that of the driver. Fix: install nvidia-fabricmanager in the version of the "
        "driver and start it (systemctl status nvidia-fabricmanager)"
    ),
    "failure.driver-mismatch": (
        "the loaded module of the NVIDIA driver and its libraries have different versions. Fix: reboot "
        "the node"
    ),
    "failure.driver-old": (
        "the NVIDIA driver is too old for this software. Fix: install a newer driver, or choose another "
        "stack_name"
    ),
    "failure.gpu-lost": "a GPU no longer answers (Xid 79). Fix: reboot the node, and replace the GPU if it happens again",
    "failure.gpu-memory-error": (
        "the memory of a GPU has an error (ECC). Fix: run preflight.yml, reset the GPU, and replace it "
        "if it happens again"
    ),
    "failure.nvlink-error": (
        "an NVLink of a GPU has an error. Fix: run preflight.yml, reset the GPUs of the node, and "
        "replace the GPU if it happens again"
    ),
    "failure.no-kernel-image": "the software has no code for this GPU. Fix: choose a stack_name that has",
    "failure.no-gpu": (
        "the program sees no GPU, or fewer than the case has. Fix: compare nvidia-smi -L with slots of "
        "the inventory, and check the driver"
    ),
    "failure.gpu-busy": "another process has the GPU for itself. Fix: stop it, or set nvidia-smi -c DEFAULT",
    "failure.illegal-access": (
        "a kernel of the program failed on a GPU. Fix: run it again with CUDA_LAUNCH_BLOCKING=1, and "
        "check dmesg for Xid errors of that GPU"
    ),
    "failure.cudnn": (
        "cuDNN could not be initialised: its version does not fit, or the memory of the GPU is full. "
        "Fix: run provision.yml, and check that LD_LIBRARY_PATH names no other cuDNN"
    ),
    "failure.cublas": (
        "cuBLAS could not be initialised: mostly the memory of the GPU is full, or the driver does not "
        "fit. Fix: lower bsz, or check what else uses the GPU"
    ),
    "failure.interface": (
        "the network interface that the program is set to is not there, or has no address. Fix: check "
        "NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME, or set nccl_subnet and run provision.yml"
    ),
    "failure.address-in-use": (
        "another program listens on the port of the run (address in use). Fix: stop it (ss -ltnp), or "
        "choose other ports with campaign_port"
    ),
    "failure.duplicate-gpu": (
        "two ranks use the same GPU. Fix: give each host a name of its own, and check slots of the inventory"
    ),
    "failure.nccl-versions": "the nodes have different versions of NCCL. Fix: run provision.yml on all nodes",
    "failure.host-unknown": (
        "the name of a host is not known. Fix: check the name in the inventory and /etc/hosts of the nodes"
    ),
    "failure.host-key": (
        "the host key of a node is not known to another one, or has changed. Fix: run provision.yml, "
        "which writes the host keys of the nodes"
    ),
    "failure.login": (
        "a node refuses the login from another one. Fix: run provision.yml, which lets the nodes log in "
        "to each other by key"
    ),
    "failure.ssh": (
        "a node cannot connect to the ssh server of another one. Fix: check that sshd runs there, its "
        "port, routes and firewalls"
    ),
    "failure.unreachable": (
        "a network is unreachable: no route leads to another node from this interface. Fix: set "
        "nccl_subnet and openmpi_subnet to a network of all nodes, and check routes and firewalls"
    ),
    "failure.rendezvous": (
        "the processes did not find each other in time. Fix: check the address and port of the first "
        "node, and firewalls between the nodes"
    ),
    "failure.time-out": (
        "a collective operation timed out, as a rank did not take part: it failed, hangs, or cannot be "
        "reached. Fix: look at the logs of all nodes for the rank that stopped first"
    ),
    "failure.infiniband": (
        "a connection over InfiniBand or RoCE broke: its peer ended, or the fabric loses packets. Fix: "
        "check the ports with ibstat, the switches and NCCL_IB_GID_INDEX"
    ),
    "failure.lost-peer": (
        "another process ended or could not be reached. Fix: look at the logs of all nodes for the one "
        "that ended first"
    ),
    "failure.slots": (
        "there are not enough slots: mpirun may not start as many processes on these hosts as the run "
        "needs. Fix: within an allocation of a resource manager ask for as many tasks per node as the "
        "case has devices, or set slots in the inventory to what a node has"
    ),
    "failure.orted": (
        "the daemon of Open MPI (orted or prted) is not found on a node. Fix: run provision.yml, which "
        "installs Open MPI at the same path on all nodes"
    ),
    "failure.mpi-versions": (
        "the nodes have different versions of Open MPI or PMIx. Fix: run provision.yml on all nodes, and "
        "load no other Open MPI in shells or modules"
    ),
    "failure.mpi-root": (
        "mpirun refuses to run as root. Fix: set OMPI_ALLOW_RUN_AS_ROOT=1 and "
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, or log in as another user"
    ),
    "failure.mpi-network": (
        "Open MPI connects over a network that does not reach the other node. Fix: set openmpi_subnet to "
        "a network of all nodes, and open all TCP ports between them"
    ),
    "failure.mpi-program": (
        "mpirun finds the program that it is to start on no node, or not on all of them. Fix: run "
        "provision.yml on all nodes"
    ),
    "failure.mpi-daemons": (
        "mpirun could not start its daemon on a node. Fix: check the login from the first node to the "
        "others, and that all have the same Open MPI at the same path"
    ),
    "failure.mpi-init": (
        "Open MPI could not be initialised. Fix: check that all nodes have the same Open MPI at the same path"
    ),
    "failure.glibc": (
        "the system library of the node is older than the program needs. Fix: use a node with a newer "
        "system, or choose a stack_name for this one"
    ),
    "failure.processor": (
        "the program has instructions that this processor does not have. Fix: choose another stack_name, "
        "or build the program on this machine"
    ),
    "failure.library": "a library is missing or has another version. Fix: run provision.yml, and check LD_LIBRARY_PATH",
    "failure.module": "a Python package is missing or cannot be loaded. Fix: run provision.yml, and unset PYTHONPATH",
    "failure.name-resolution": (
        "the name of a host is not known. Fix: check the name in the inventory and /etc/hosts of the nodes"
    ),
    "failure.permission": "the user of the run may not use a file or a device. Fix: check its owner and mode",
    "failure.connection": (
        "another process ended or could not be reached. Fix: look at the logs of all nodes for the one "
        "that ended first"
    ),
    "failure.nccl": (
        "NCCL failed, and does not say why. Fix: run it again with NCCL_DEBUG=INFO, and look for the "
        "first line with WARN"
    ),
    "failure.killed": (
        "one of its processes was killed (SIGKILL), mostly by the kernel because memory was full. Fix: "
        "check dmesg on the node for oom-kill"
    ),
    "failure.bus-error": (
        "mostly the shared memory (/dev/shm) is full. Fix: make /dev/shm larger, in a container with "
        "--shm-size or --ipc=host"
    ),
    "run.odd-rate": "its throughput comes out as {rate}",
    "run.no-key": "a node has no {key}",
    "run.steps-back": "{node}: its steps do not increase",
    "run.other-last-step": "{node}: its last step is {step}, of the case it is {last}",
    "run.other-count": "{node}: it has {count} {key} of {steps} steps",
    "run.negative-rate": "{node}: one of its rates is below 0",
    "run.stamps-back": "{node}: the {key} of step {step} is before that of the step before",
    "program.ended": "it ended with status {rc}; its output is in {file}: {why}",
    "program.ended-late": "it ended with status {rc}, at its limit of {limit} s; its output is in {file}: {why}",
    "program.no-result": "it left no result",
    "program.compute": "compute: {why}",
    "program.collectives": "collectives: {why}",
    "run.telemetry": "telemetry of {node}: {why}",
    "run.no-readings": "the window of {seconds:.3f} s has fewer than two readings",
    "run.no-moment": "no log of its run tells when the window's steps were, as Unix time",
    "run.unread-readings": "{file} {why}",
    #
    # -- skipped: why cases were not run: plan/ ------------------------------------------------------
    "skipped.no-model": "{workload} has no model {model}: it has {models:comma}",
    "skipped.no-dtype": "{workload} has no {dtype}: it has {dtypes:comma}",
    "skipped.no-compiler": "{workload} has no compiler",
    "skipped.always-compiles": "{workload} always compiles",
    "skipped.no-accumulation": "{workload} has no gradient accumulation: leave out accumulation",
    "skipped.epoch": "the window of {workload} is an epoch, so {steps:and} cannot be set",
    "skipped.no-short-runs": "the window of {workload} is an epoch, so bsz=max has no short runs to search with",
    "skipped.part-of-an-epoch": "an epoch of {samples} samples is not a whole number of steps of {step}",
    "skipped.nodes": "needs {needed} nodes, the inventory has {count}",
    "skipped.devices": "needs {needed} devices per node, {node} has {count}",
    "skipped.gpus": "needs {needed} GPUs of one machine for {nodes} node, it has {count}",
    "skipped.gpus-of-a-machine": "needs {needed} GPUs of one machine for {nodes} nodes, it has {count}",
    "skipped.dtype": "{dtype} does not run on a {device}; try anyway with -e force=true",
    "skipped.no-largest": "bsz=max has no answer: {why}",
    "skipped.search": "search for the largest batch: {why}",
    "skipped.search-goes-on": "the search has not ended",
    "skipped.search-limit": "the limit of bsz_max_runs={limit} was reached before batch {batch}",
    "skipped.search-failed": "the search run with batch {batch} at {point} ended otherwise: {status}, {why}",
    "skipped.search-oom": "batch {batch} ran out of memory at {point}",
    #
    # -- preflight: findings of preflight ------------------------------------------------------------
    #
    # -- mfu: peaks and operations -------------------------------------------------------------------
    "mfu.dense": "{gpu}, dense {precision}",
    "mfu.reported": "{peak}, as its runs report",
    "mfu.no-gpus": "no record names the GPUs",
    "mfu.several-gpus": "the nodes have several kinds of GPU ({names:comma})",
    "mfu.cpu": "there is no peak of a CPU to compare with",
    "mfu.unknown-gpu": "data/gpus.csv has no {gpu}",
    "mfu.unknown-precision": "data/gpus.csv has no peak of {gpu} in {precision}",
    "mfu.unknown-model": "the workload declares no sizes of the model {model}",
    "mfu.no-value": "the case has no {name}",
    # -- compare: comparisons with earlier and published results -------------------------------------
    "compare.other-hardware": "{name} ran on {before:and}, this campaign on {now:and}",
    "compare.units": "counted in {now} now and in {before} before",
    "compare.printed": "the rates of one of the two are those that the trainer printed, of the other from time stamps",
    "compare.too-few": "{now} valid repeats now and {before} before, {needed} are needed",
    "compare.no-tables": "DLPerf's tables have nothing for {workload}",
    "compare.no-table": "DLPerf publishes no {precision} table for {framework} {models}",
    "compare.no-compiled-table": "DLPerf publishes no {precision} with {compiler} table for {framework} {models}",
    "compare.same": "same model, precision and batch; published on {hardware}",
    "compare.dlperf-hardware": "4 machines with 8 V100-SXM2-16GB each, 100 Gb/s InfiniBand, CUDA 10.2",
    "compare.dlperf-hardware-sequences": "4 machines with 8 V100-SXM2-16GB each, 100 Gb/s InfiniBand, CUDA 10.2, sequences of {length}",
    "compare.shape-only": "not comparable, only the shape of the curve is: {reasons:list}",
    "compare.batch": "batch {here} here, the nearest published is {nearest}",
    "compare.model": "model {model} is not one DLPerf measured",
    "compare.cpus": "measured on CPUs, published on GPUs",
    "compare.size": "samples of size {size} here, of {published} published",
    "compare.accumulation": "{steps} accumulation steps here",
    "compare.accumulation-there": "gradient accumulation there",
    "compare.no-all-reduce": "published with {variant}: on up to 8 GPUs its 120 steps hold no all-reduce, so these rows measure computing, not scaling",
    # -- report: headings and texts of reports -------------------------------------------------------
    #
    # -- index: the page over all campaigns ----------------------------------------------------------
    #
    # -- microbench: micro-benchmarks ----------------------------------------------------------------
    #
    # -- evaluation: the evaluation ------------------------------------------------------------------
    #
}
