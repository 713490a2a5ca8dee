# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Why runs fail: the texts by which a log or mpirun tells a cause, what it is, and what helps.

This table serves all workloads; a declaration adds only texts of its own trainer (`oom`, `failures`).
failure_search.py says how it is searched.  In a text `…` stands for anything within a line.  Where one line
has texts of several causes, the one that stands first in the table counts.  The wordings are those of the
programs' sources and of public bug reports.
"""

from __future__ import annotations

from typing import NamedTuple

MEMORY, DISK = "ran out of memory", "ran out of disk"

ROOT, EFFECT, VAGUE = "root", "effect", "vague"
"""A root cause; what a process says when another one failed; what is a cause only if nothing else is."""


class Cause(NamedTuple):
    """One cause: the status of its run, the texts that show it, a sentence and a fix.

    `verb` replaces the sentence where the cause says what became of the node: `ran out of memory`.  A cause
    that is `certain` counts even in a warning.
    """

    name: str
    texts: tuple[str, ...]
    why: str = ""
    fix: str = ""
    status: str = "failed"
    verb: str = ""
    kind: str = ROOT
    certain: bool = False


def _oom(name: str, *texts: str, kind: str = ROOT) -> Cause:
    return Cause(name, texts, status="oom", verb=MEMORY, kind=kind)


CAUSES = (
    # Resources that are not memory, though their messages may speak of memory or exhaustion
    Cause(
        "shared-memory",
        (
            "posix_fallocate failed … No space left on device",
            "shared memory … No space left on device",
            "/dev/shm … No space left on device",  # noqa: S108 - a text
            "Error while creating shared memory segment",
            "unable to allocate shared memory",
            "unable to open shared memory object",
            "unable to write to file </torch_",
            "insufficient shared memory",
            "No space left on device … /dev/shm",  # noqa: S108 - a text
            "killed by signal: Bus error",
            "out of shared memory",
            "Bus error",
        ),
        "the shared memory (/dev/shm) is full or too small",
        "make /dev/shm larger, in a container with --shm-size or --ipc=host",
    ),
    Cause(
        "disk-full",
        ("No space left on device", "Disk quota exceeded", "disk quota exceeded"),
        verb=DISK,
    ),
    Cause(
        "file-system",
        ("Read-only file system", "Stale file handle", "Input/output error", "Remote I/O error"),
        "a file system cannot be used",
        "check dmesg, the mounts and the server of the files",
    ),
    Cause(
        "open-files",
        ("Too many open files", "received 0 items of ancdata"),
        "the limit of open files is too low",
        "raise it (ulimit -n, LimitNOFILE) or use fewer workers of data loaders",
    ),
    Cause(
        "locked-memory",
        (
            "ibv_ … Cannot allocate memory",
            "ibv_ … errno 12",
            "allocate some locked memory",
        ),
        "InfiniBand may not lock enough memory",
        "set ulimit -l unlimited for logins, as provision.yml does, and log in again",
    ),
    Cause(
        "processes",
        (
            "fork … Resource temporarily unavailable",
            "can't start new thread",
            "pthread_create failed",
            "pthread_create … Resource temporarily unavailable",
            "[Errno 11] Resource temporarily unavailable",
            "Thread creation failed",
        ),
        "the limit of processes or threads is too low",
        "raise it (ulimit -u, pids limit of the container)",
    ),
    # Memory
    # TensorFlow reserves memory and tries again with less: of these lines alone no program ends.
    _oom(
        "gpu-memory-pool",
        "failed to allocate … from device",
        "Failed to allocate … from device",
        "ran out of memory trying to allocate",
        "Ran out of memory trying to allocate",
        "failed to alloc … bytes on host",
        "ould not allocate pinned host memory",
        kind=VAGUE,
    ),
    _oom(
        "gpu-memory",
        "CUDA out of memory",
        "HIP out of memory",
        "CUDA error: out of memory",
        "CUDA error(2)",
        "Cuda error(2)",
        "failure … 'out of memory'",
        "hipErrorOutOfMemory",
        "cudaErrorMemoryAllocation",
        "out of memory. Tried to allocate",
        "OutOfMemoryError",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "_STATUS_ALLOC_FAILED",
        "CUFFT_ALLOC_FAILED",
        "CURAND_STATUS_ALLOCATION_FAILED",
        "OOM when allocating",
        "Dst tensor is not initialized",
        "unable to allocate output tensor",
        "failed to allocate memory",
        "memory while trying to allocate",
        "RESOURCE_EXHAUSTED: Out of memory",
        "Resource exhausted: Out of memory",
        "RESOURCE_EXHAUSTED: Failed to allocate",
        "Resource exhausted: Failed to allocate",
        "RESOURCE_EXHAUSTED: Failed to load in-memory CUBIN",
        "ailed to allocate … RESOURCE_EXHAUSTED",
        "Out of memory error on GPU",
        "allocation failed out of memory",
        "Failed to find any … convolution algorithm",
        "Cannot malloc … GPU memory",
        "Failed to allocate … bytes",
        "Attempting to reserve … at the bottom of memory",
        "Failed to CUDA calloc",
        "Failed to CUDA malloc",
        "cublas runtime error : resource allocation failed",
        "out_of_memory_error",
        ": out of memory",
    ),
    _oom("gpu-memory-status", "CUDA_ERROR_OUT_OF_MEMORY", "ResourceExhaustedError", kind=VAGUE),
    _oom(
        "host-memory",
        "std::bad_alloc",
        "can't allocate memory",
        "cannot allocate memory",
        "Cannot allocate memory",
        "not enough memory: you tried to allocate",
        "MemoryError",
        "DataLoader worker … killed by signal: Killed",
        "DataLoader worker … killed by signal: 9",
        "DataLoader worker … exited with signal: Killed",
        "Out of memory: Kill",
        "Memory cgroup out of memory",
        "oom-kill event",
        "oom_kill event",
        "exceeded memory limit",
        "Exceeded job memory limit",
    ),
    # The GPU and its driver
    Cause(
        "fabric-manager",
        ("Error 802", "system not yet initialized", "CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady"),
        "the NVLink fabric of the GPUs is not ready (Error 802): the fabric manager does not run, or its "
        "version is not that of the driver",
        "install nvidia-fabricmanager in the version of the driver and start it (systemctl status "
        "nvidia-fabricmanager)",
        certain=True,
    ),
    Cause(
        "driver-mismatch",
        (
            "Driver/library version mismatch",
            "Error 803",
            "unsupported display driver / cuda driver combination",
        ),
        "the loaded module of the NVIDIA driver and its libraries have different versions",
        "reboot the node",
        certain=True,
    ),
    Cause(
        "driver-old",
        (
            "CUDA driver version is insufficient",
            "NVIDIA driver on your system is too old",
            "forward compatibility was attempted on non supported HW",
            "Error 804",
            "cudaErrorInsufficientDriver",
            "the provided PTX was compiled with an unsupported toolchain",
        ),
        "the NVIDIA driver is too old for this software",
        "install a newer driver, or choose another stack_name",
    ),
    Cause(
        "gpu-lost",
        (
            "fallen off the bus",
            "GPU is lost",
            "Unable to determine the device handle",
            "NVRM: Xid … : 79,",
            "unknown device error",
        ),
        "a GPU no longer answers (Xid 79)",
        "reboot the node, and replace the GPU if it happens again",
    ),
    Cause(
        "gpu-memory-error",
        (
            "uncorrectable ECC error",
            "CUDA_ERROR_ECC_UNCORRECTABLE",
            "ECC error encountered",
            "NVRM: Xid … : 48,",
        ),
        "the memory of a GPU has an error (ECC)",
        "run preflight.yml, reset the GPU, and replace it if it happens again",
    ),
    Cause(
        "nvlink-error",
        (
            "uncorrectable NVLink error",
            "NVLink error was encountered",
            "NVLINK_UNCORRECTABLE",
            "NVRM: Xid … : 74,",
        ),
        "an NVLink of a GPU has an error",
        "run preflight.yml, reset the GPUs of the node, and replace the GPU if it happens again",
    ),
    Cause(
        "no-kernel-image",
        (
            "no kernel image is available for execution on the device",
            "CUDA_ERROR_NO_BINARY_FOR_GPU",
            "device kernel image is invalid",
            "is not compatible with the current PyTorch installation",
            "no device code for",
        ),
        "the software has no code for this GPU",
        "choose a stack_name that has",
    ),
    Cause(
        "no-gpu",
        (
            "no CUDA-capable device is detected",
            "No CUDA GPUs are available",
            "Found no NVIDIA driver on your system",
            "CUDA_ERROR_NO_DEVICE",
            "invalid device ordinal",
            "Torch not compiled with CUDA enabled",
            "CUDA unknown error",
        ),
        "the program sees no GPU, or fewer than the case has",
        "compare nvidia-smi -L with slots of the inventory, and check the driver",
    ),
    Cause(
        "gpu-busy",
        ("CUDA-capable device(s) is/are busy or unavailable", "devices are busy or unavailable"),
        "another process has the GPU for itself",
        "stop it, or set nvidia-smi -c DEFAULT",
    ),
    Cause(
        "illegal-access",
        (
            "illegal memory access",
            "CUDA_ERROR_ILLEGAL_ADDRESS",
            "misaligned address",
            "device-side assert triggered",
            "unspecified launch failure",
            "CUDA_ERROR_LAUNCH_FAILED",
            "illegal instruction was encountered",
        ),
        "a kernel of the program failed on a GPU",
        "run it again with CUDA_LAUNCH_BLOCKING=1, and check dmesg for Xid errors of that GPU",
    ),
    Cause(
        "cudnn",
        (
            "cuDNN version incompatibility",
            "cuDNN version mismatch",
            "Loaded runtime CuDNN library",
            "cuDNN failed to initialize",
            "could not create cudnn handle",
            "Could not create cudnn handle",
            "CUDNN_STATUS_NOT_INITIALIZED",
            "CUDNN_STATUS_INTERNAL_ERROR",
            "CUDNN_STATUS_EXECUTION_FAILED",
            "CUDNN_STATUS_MAPPING_ERROR",
            "Could not load library libcudnn",
            "CUDNN_STATUS_VERSION_MISMATCH",
            "CUDNN_STATUS_SUBLIBRARY",
            "CUDNN_STATUS_ARCH_MISMATCH",
            "DNN library is not found",
            "DNN library initialization failed",
            "Unable to load any of {libcudnn",
            "Unable to find a valid cuDNN algorithm",
            "unable to find an engine to execute this computation",
        ),
        "cuDNN could not be initialised: its version does not fit, or the memory of the GPU is full",
        "run provision.yml, and check that LD_LIBRARY_PATH names no other cuDNN",
    ),
    Cause(
        "cublas",
        (
            "CUBLAS_STATUS_NOT_INITIALIZED",
            "failed to create cublas handle",
            "Failed to create cublas handle",
            "Blas GEMM launch failed",
            "Attempting to perform BLAS operation using StreamExecutor without BLAS support",
        ),
        "cuBLAS could not be initialised: mostly the memory of the GPU is full, or the driver does not fit",
        "lower bsz, or check what else uses the GPU",
        kind=VAGUE,
    ),
    # NCCL, Gloo and the network
    Cause(
        "interface",
        (
            "no socket interface found",
            "NET/Socket : no interface found",
            "No socket interface found",
            "no NCCL_SOCKET_IFNAME interface found",
            "connecting to address … is neither AF_INET",
            "Unable to find address for",
            "Unable to find interface for",
            "ifa != nullptr",
            "common task-to-task communication interfaces",
            "None of the TCP networks specified to be included",
        ),
        "the network interface that the program is set to is not there, or has no address",
        "check NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME, or set nccl_subnet and run provision.yml",
    ),
    Cause(
        "address-in-use",
        (
            "EADDRINUSE",
            "Address already in use",
            "address already in use",
            "failed to listen on any local network address",
            "Could not start gRPC server",
        ),
        "another program listens on the port of the run (address in use)",
        "stop it (ss -ltnp), or choose other ports with campaign_port",
    ),
    Cause(
        "duplicate-gpu",
        ("Duplicate GPU detected",),
        "two ranks use the same GPU",
        "give each host a name of its own, and check slots of the inventory",
    ),
    Cause(
        "nccl-versions",
        ("Mismatched NCCL version", "NCCL version mismatch", "isn't compatible with … NCCL"),
        "the nodes have different versions of NCCL",
        "run provision.yml on all nodes",
    ),
    Cause(
        "host-unknown",
        (
            "Could not resolve hostname",
            "could not be resolved",
        ),
        "the name of a host is not known",
        "check the name in the inventory and /etc/hosts of the nodes",
    ),
    Cause(
        "host-key",
        ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"),
        "the host key of a node is not known to another one, or has changed",
        "run provision.yml, which writes the host keys of the nodes",
    ),
    Cause(
        "login",
        (
            "Permission denied (",
            "Permission denied, please try again",
            "Too many authentication failures",
            "UNPROTECTED PRIVATE KEY FILE",
            "Permissions … are too open",
            "Bad owner or permissions on",
            "This account is currently not available",
        ),
        "a node refuses the login from another one",
        "run provision.yml, which lets the nodes log in to each other by key",
    ),
    Cause(
        "ssh",
        (
            "ssh: connect to host … Connection refused",
            "ssh: connect to host … timed out",
            "ssh: connect to host … No route to host",
            "ssh: connect to host … unreachable",
            "ssh: connect to host",
            "kex_exchange_identification",
            "ssh_exchange_identification",
        ),
        "a node cannot connect to the ssh server of another one",
        "check that sshd runs there, its port, routes and firewalls",
    ),
    Cause(
        "unreachable",
        (
            "Network is unreachable",
            "No route to host",
            "Host is unreachable",
            "ENETUNREACH",
            "EHOSTUNREACH",
            "onnect to … failed : Connection timed out",
            "to connect failed : Connection timed out",
            "onnect to … failed : Software caused connection abort",
        ),
        "a network is unreachable: no route leads to another node from this interface",
        "set nccl_subnet and openmpi_subnet to a network of all nodes, and check routes and firewalls",
    ),
    Cause(
        "rendezvous",
        (
            "client socket has failed to connect to any network address",
            "client socket has timed out",
            "while trying to connect to",
            "clients joined",
            "RendezvousTimeoutError",
            "RendezvousConnectionError",
            "Timed out initializing process group in store based barrier",
        ),
        "the processes did not find each other in time",
        "check the address and port of the first node, and firewalls between the nodes",
        kind=EFFECT,
    ),
    Cause(
        "time-out",
        (
            "collective operation timeout",
            "Watchdog caught collective",
            "NCCL operations have failed or timed out",
            "Timed out waiting … for recv operation",
            "Timed out waiting … for send operation",
            "watchdog thread terminated with exception",
            "Socket Timeout",
            "ran for … before timing out",
            "wait timeout after",
            "heartbeat timeout",
            "heartbeat monitor",
            "DeadlineExceededError",
        ),
        "a collective operation timed out, as a rank did not take part: it failed, hangs, or cannot be "
        "reached",
        "look at the logs of all nodes for the rank that stopped first",
        kind=EFFECT,
    ),
    Cause(
        "infiniband",
        (
            "Got completion from peer",
            "Got completion with error",
            "transport retry counter exceeded",
            "IBV_WC_RETRY_EXC_ERR",
        ),
        "a connection over InfiniBand or RoCE broke: its peer ended, or the fabric loses packets",
        "check the ports with ibstat, the switches and NCCL_IB_GID_INDEX",
        kind=EFFECT,
    ),
    Cause(
        "lost-peer",
        (
            "Connection closed by remote peer",
            "connection closed by remote peer",
            "Connection closed by peer",
            "ncclRemoteError",
            "remote process exited or there was a network error",
            "NCCL … Connection reset by peer",
            "gloo … Connection reset by peer",
            "Read error … Connection reset by peer",
            "RuntimeError: Connection reset by peer",
            "ConnectionResetError",
            "RuntimeError: Broken pipe",
            "onnect to … failed : Connection refused",
            "NCCL communicator was aborted",
            "UNAVAILABLE: Socket closed",
            "Unavailable: Socket closed",
            "UNAVAILABLE: Connection reset by peer",
            "UnavailableError",
            "failed to connect to all addresses",
            "Horovod has been shut down",
            "MPI_ABORT was invoked on rank",
            "Collective ops is aborted by",
            "was preempted or restarted",
        ),
        "another process ended or could not be reached",
        "look at the logs of all nodes for the one that ended first",
        kind=EFFECT,
    ),
    # How mpirun starts processes
    Cause(
        "slots",
        (
            "not enough slots available",
            "more processes than the ppr",
            "nodes which are allocated for this job are already filled",
            "There are no allocated resources",
            "More processors requested than permitted",
            "binding more processes than cpus",
        ),
        "there are not enough slots: mpirun may not start as many processes on these hosts as the run needs",
        "within an allocation of a resource manager ask for as many tasks per node as the case has devices, "
        "or set slots in the inventory to what a node has",
    ),
    Cause(
        "orted",
        (
            "orted: command not found",
            "command not found: orted",
            "command not found: prted",
            "orted: not found",
            "orted: No such file or directory",
            "prted: command not found",
            "prted: not found",
            "prted: No such file or directory",
            "orted: error while loading shared libraries",
            "prted: error while loading shared libraries",
            "orted: Permission denied",
        ),
        "the daemon of Open MPI (orted or prted) is not found on a node",
        "run provision.yml, which installs Open MPI at the same path on all nodes",
    ),
    Cause(
        "mpi-versions",
        (
            "PMIX ERROR",
            "PMIx ERROR",
            "UNPACK-PAST-END",
            "Data unpack",
            "UNPACK-INADEQUATE-SPACE",
            "OPAL ERROR: Error in file pmix",
            "incompatible version of Open MPI",
            "OMPI was not built with SLURM's PMI support",
        ),
        "the nodes have different versions of Open MPI or PMIx",
        "run provision.yml on all nodes, and load no other Open MPI in shells or modules",
    ),
    Cause(
        "mpi-root",
        ("attempt to run as root",),
        "mpirun refuses to run as root",
        "set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1, or log in as another user",
    ),
    Cause(
        "mpi-network",
        (
            "unable to complete a TCP connection",
            "mca_btl_tcp_endpoint",
            "failed to TCP connect to a peer",
            "connect() to … failed",
            "Open MPI accepted a TCP connection",
            "detected an inbound MPI TCP connection",
            "pair of MPI processes are unable to reach",
            "Unable to find reachable pairing",
            "unable to find reachable pairing",
            "received unexpected process identifier",
        ),
        "Open MPI connects over a network that does not reach the other node",
        "set openmpi_subnet to a network of all nodes, and open all TCP ports between them",
    ),
    Cause(
        "mpi-program",
        (
            "was unable to find the specified executable file",
            "could not access or execute an executable",
            "was unable to launch the specified application",
            "tried to fork a new process via the",
        ),
        "mpirun finds the program that it is to start on no node, or not on all of them",
        "run provision.yml on all nodes",
    ),
    Cause(
        "mpi-daemons",
        (
            "unable to reliably start one or more daemons",
            "daemon has unexpectedly failed after launch",
            "unable to start a daemon on",
            "daemon … on the local node failed to start",
            "A daemon (pid",
        ),
        "mpirun could not start its daemon on a node",
        "check the login from the first node to the others, and that all have the same Open MPI at the same "
        "path",
        kind=VAGUE,
    ),
    Cause(
        "mpi-init",
        (
            "_init failed for some reason",
            "orte_ess_init failed",
            "MPI_INIT: failed",
            "No components were able to be opened in",
        ),
        "Open MPI could not be initialised",
        "check that all nodes have the same Open MPI at the same path",
        kind=VAGUE,
    ),
    # Software
    Cause(
        "glibc",
        ("version `GLIBC", "version `CXXABI", "version 'GLIBC"),
        "the system library of the node is older than the program needs",
        "use a node with a newer system, or choose a stack_name for this one",
    ),
    Cause(
        "processor",
        ("Illegal instruction", "library was compiled to use"),
        "the program has instructions that this processor does not have",
        "choose another stack_name, or build the program on this machine",
    ),
    Cause(
        "library",
        ("cannot open shared object file", "undefined symbol:", "symbol lookup error"),
        "a library is missing or has another version",
        "run provision.yml, and check LD_LIBRARY_PATH",
        kind=VAGUE,
    ),
    Cause(
        "module",
        ("ModuleNotFoundError: No module named", "ImportError: "),
        "a Python package is missing or cannot be loaded",
        "run provision.yml, and unset PYTHONPATH",
        kind=VAGUE,
    ),
    Cause(
        "name-resolution",
        ("Name or service not known", "Temporary failure in name resolution"),
        "the name of a host is not known",
        "check the name in the inventory and /etc/hosts of the nodes",
        kind=VAGUE,
    ),
    Cause(
        "permission",
        ("PermissionError: ", ": Permission denied", "Operation not permitted"),
        "the user of the run may not use a file or a device",
        "check its owner and mode",
        kind=VAGUE,
    ),
    Cause(
        "connection",
        (
            "Broken pipe",
            "Connection reset by peer",
            "Signal 15 (SIGTERM) received",
            "Received Signals.SIGTERM",
            "died with <Signals.SIGTERM",
        ),
        "another process ended or could not be reached",
        "look at the logs of all nodes for the one that ended first",
        kind=VAGUE,
    ),
    Cause(
        "nccl",
        (
            "ncclUnhandledCudaError",
            "unhandled cuda error",
            "unhandled system error",
            "ncclSystemError",
            "ncclInternalError",
            "ncclInvalidUsage",
            "NCCL error",
            "HorovodInternalError",
        ),
        "NCCL failed, and does not say why",
        "run it again with NCCL_DEBUG=INFO, and look for the first line with WARN",
        kind=VAGUE,
    ),
    Cause(
        "killed",
        ("Signal 9 (SIGKILL) received", "died with <Signals.SIGKILL", "exits with return code = -9"),
        "one of its processes was killed (SIGKILL), mostly by the kernel because memory was full",
        "check dmesg on the node for oom-kill",
        kind=VAGUE,
    ),
)

UNKNOWN = Cause("exception", (), kind=VAGUE)
"""An exception that no text of the table tells: its own words must do."""

HARMLESS = (
    "this is not a failure",
    "(ignored)",
    "Could not load dynamic library",
    "failed call to cuInit",
    "Failed to get cuda runtime version",
    "UserWarning:",
    "FutureWarning:",
    "DeprecationWarning:",
    "RuntimeWarning:",
    "[W … socket.cpp",
    "Retrying",
    "retrying",
    "will retry",
    "Will retry",
    "trying again",
    "Trying again",
    "larger than max",
)
"""Texts of lines that tell of something from which a program went on."""

SIGNALS = {
    4: "the program has instructions that this processor does not have. Fix: choose another stack_name, or "
    "build the program on this machine",
    7: "mostly the shared memory (/dev/shm) is full. Fix: make /dev/shm larger, in a container with "
    "--shm-size or --ipc=host",
}
"""What a signal that ended a process mostly means."""
