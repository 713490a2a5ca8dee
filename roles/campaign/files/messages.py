#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""What the programs on a node have to say, as data: the catalogues of scalebook/pages have the sentences.

Runs on the nodes' own Python, 3.6 or later, standard library only.
"""

TYPE_CHECKING = False  # module typing takes 2 MB
if TYPE_CHECKING:
    from typing import Any, Dict

    Message = Dict[str, Any]


def message(code: str, **values: "Any") -> "Message":
    """Return a message."""
    return {"code": code, "values": values}


IN_ENGLISH = {
    "text": "%(text)s",
    "reason.silent": "no output for %(seconds)g s",
    "reason.silent-after": 'no output for %(seconds)g s after "%(after)s"',
    "reason.late": "no step within %(seconds)g s",
    "reason.late-unsaid": "no step within %(seconds)g s, and nothing was said",
    "end.by-the-job": "ended by the job (signal %(number)d)",
    "end.without-the-job": "ended by the job, or the process that started it died",
    "end.large-log": "the log is larger than %(megabytes)g MB (campaign_log_limit)",
    "refused.no-job": "mpirun rank %(rank)d has no job: there are %(nodes)d nodes",
    "refused.other-node": "Slurm started rank %(rank)d on %(here)s, and its job is that of %(node)s",
    "refused.job-elsewhere": (
        "mpirun made host %(host)s rank %(rank)d, which is %(node)s, but its job is not here (%(why)s); "
        "here is the job of %(there)s"
    ),
    "refused.no-job-here": (
        "mpirun made host %(host)s rank %(rank)d, which is %(node)s, but its job is not here (%(why)s); "
        "here is the job of no node"
    ),
    "refused.other-job": (
        "mpirun rank %(rank)d is %(node)s, but its job says task_index %(index)s of %(other)s"
    ),
    "refused.few-gpus": (
        "Slurm gave %(node)s %(count)d of the %(needed)d GPUs that the run uses: make the allocation with "
        "--gpus-per-node=%(needed)d"
    ),
    "refused.port": (
        "port %(port)d on %(host)s is in use (%(why)s): end what holds it or choose others with campaign_port"
    ),
}
"""The sentences of run_node in its standard error, which programs and people read without a catalogue."""


def in_english(what: "Message") -> str:
    """Return the sentence of one of these messages."""
    return str(IN_ENGLISH[what["code"]] % what["values"])


class MessageError(Exception):
    """An error with a message."""

    def __init__(self, code: str, **values: "Any") -> None:
        super().__init__(code, values)
        self.message = message(code, **values)


def why(error: Exception) -> "Message":
    """Return what an error says: its message, or its text."""
    return error.message if isinstance(error, MessageError) else message("text", text=str(error))
