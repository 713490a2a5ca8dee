# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Why runs fail: the texts by which a log or mpirun tells a cause.

This table serves all workloads; a declaration adds only texts of its own trainer (`oom`, `failures`).
failure_search.py says how it is searched.  In a text `…` stands for anything within a line.  Where one line
has texts of several causes, the one that stands first in the table counts.  The wordings are those of the
programs' sources and of public bug reports.  What a cause is and what helps say the catalogues, at
`failure.<name>`.
"""

from __future__ import annotations

from typing import NamedTuple

from ansible.module_utils.scalebook.contracts import Message

MEMORY, DISK = "out-of-memory", "out-of-disk"
"""What a node ran out of: the words of `reason.*`."""

ROOT, EFFECT, VAGUE = "root", "effect", "vague"
"""A root cause; what a process says when another one failed; what is a cause only if nothing else is."""


class Cause(NamedTuple):
    """One cause: the texts that show it, and the status of its run.

    `ended` replaces its sentence where the cause says what became of the node: that it ran out of memory.
    `why` is its sentence where the catalogues have none at its name.  A cause that is `certain` counts even
    in a warning.
    """

    name: str
    texts: tuple[str, ...]
    status: str = "failed"
    ended: str = ""
    kind: str = ROOT
    certain: bool = False
    why: str | Message = ""


def _oom(name: str, *texts: str, kind: str = ROOT) -> Cause:
    return Cause(name, texts, status="oom", ended=MEMORY, kind=kind)


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
    ),
    Cause(
        "disk-full",
        ("No space left on device", "Disk quota exceeded", "disk quota exceeded"),
        ended=DISK,
    ),
    Cause(
        "file-system",
        ("Read-only file system", "Stale file handle", "Input/output error", "Remote I/O error"),
    ),
    Cause(
        "open-files",
        ("Too many open files", "received 0 items of ancdata"),
    ),
    Cause(
        "locked-memory",
        (
            "ibv_ … Cannot allocate memory",
            "ibv_ … errno 12",
            "allocate some locked memory",
        ),
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
        certain=True,
    ),
    Cause(
        "driver-mismatch",
        (
            "Driver/library version mismatch",
            "Error 803",
            "unsupported display driver / cuda driver combination",
        ),
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
    ),
    Cause(
        "gpu-memory-error",
        (
            "uncorrectable ECC error",
            "CUDA_ERROR_ECC_UNCORRECTABLE",
            "ECC error encountered",
            "NVRM: Xid … : 48,",
        ),
    ),
    Cause(
        "nvlink-error",
        (
            "uncorrectable NVLink error",
            "NVLink error was encountered",
            "NVLINK_UNCORRECTABLE",
            "NVRM: Xid … : 74,",
        ),
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
    ),
    Cause(
        "gpu-busy",
        ("CUDA-capable device(s) is/are busy or unavailable", "devices are busy or unavailable"),
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
    ),
    Cause(
        "duplicate-gpu",
        ("Duplicate GPU detected",),
    ),
    Cause(
        "nccl-versions",
        ("Mismatched NCCL version", "NCCL version mismatch", "isn't compatible with … NCCL"),
    ),
    Cause(
        "host-unknown",
        (
            "Could not resolve hostname",
            "could not be resolved",
        ),
    ),
    Cause(
        "host-key",
        ("Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"),
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
        kind=EFFECT,
    ),
    # How mpirun starts processes
    Cause("slurm-time", ("CANCELLED AT … DUE TO TIME LIMIT",)),
    Cause("slurm-preempted", ("CANCELLED AT … DUE TO PREEMPTION",)),
    Cause("slurm-requeued", ("CANCELLED AT … DUE TO JOB REQUEUE",)),
    Cause("slurm-silent", ("Unable to contact slurm",)),
    Cause(
        "slurm-ended", ("srun: error: Unable to confirm allocation", "srun: error: Slurm job … has expired")
    ),
    Cause("slurm-pmi", ("not built with SLURM's PMI support",)),
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
    ),
    Cause(
        "mpi-root",
        ("attempt to run as root",),
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
    ),
    Cause(
        "mpi-program",
        (
            "was unable to find the specified executable file",
            "could not access or execute an executable",
            "was unable to launch the specified application",
            "tried to fork a new process via the",
        ),
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
        kind=VAGUE,
    ),
    # Software
    Cause(
        "glibc",
        ("version `GLIBC", "version `CXXABI", "version 'GLIBC"),
    ),
    Cause(
        "processor",
        ("Illegal instruction", "library was compiled to use"),
    ),
    Cause(
        "library",
        ("cannot open shared object file", "undefined symbol:", "symbol lookup error"),
        kind=VAGUE,
    ),
    Cause(
        "module",
        ("ModuleNotFoundError: No module named", "ImportError: "),
        kind=VAGUE,
    ),
    Cause(
        "name-resolution",
        ("Name or service not known", "Temporary failure in name resolution"),
        kind=VAGUE,
    ),
    Cause(
        "permission",
        ("PermissionError: ", ": Permission denied", "Operation not permitted"),
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
        kind=VAGUE,
    ),
    Cause(
        "killed",
        ("Signal 9 (SIGKILL) received", "died with <Signals.SIGKILL", "exits with return code = -9"),
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

SIGNALS = {4: "processor", 7: "bus-error"}
"""The cause that a signal that ended a process mostly means."""
