# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""A claimed rate -> whether it is possible, by physics, published rates and our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.scalebook.files import read_table
from ansible.module_utils.scalebook.judge import claim, language_models, mfu
from ansible.module_utils.scalebook.judge.language_models import LanguageModelError, Rate
from ansible.module_utils.scalebook.judge.language_rates import rate_of
from ansible.module_utils.scalebook.pages.wording import Wording
from ansible.module_utils.scalebook.report import index
from ansible.module_utils.scalebook.workload import UNKNOWN, Workloads, workloads_of
from ansible.module_utils.scalebook.yaml_file import read_yaml


def check(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on a claim; module claim_check describes its options and result.

    Raises ValueError for a model, GPU or precision that is not known.
    """
    data = Path(params["data"])
    models = read_yaml(data / "models.yml")
    gpus = read_table(data / "gpus.csv", language_models.gpu_patterns)
    gpu = language_models.gpu_of(gpus, params["gpu"])
    if not gpu:
        raise LanguageModelError(f"gpu={params['gpu']}: allowed are {', '.join(gpus)}")
    peaks = read_table(data / "gpus.csv", mfu.read_peaks)[gpus[gpu]]
    published = read_table(data / "llm-published.csv", language_models.read)
    ours = list(_own_rates(Path(params["results"]), workloads_of(params["workloads"]), gpus))
    claimed = _claimed(params, claim.find_model(models, params["model"]), gpu)
    verdict = claim.check(claimed, models, peaks, published, ours)
    return {
        "changed": False,
        "level": verdict["level"],
        "verdict": verdict,
        "display": _display(claimed, verdict, Wording(params["report_language"])),
    }


def _claimed(params: Mapping[str, Any], place: tuple[str, str], gpu: str) -> Rate:
    values: dict[str, Any] = {
        **dict.fromkeys(("compiled", "power_w", "bsz", "tflops", "mfu")),
        **dict.fromkeys(("source", "date", "checkpointing", "parallel", "link"), ""),
        **{name: params[name] for name in ("seq", "gpus", "dtype")},
    }
    family, model = place
    return Rate(**values, family=family, model=model, gpu=gpu, tokens_per_s=params["tokens_per_second"])


def _own_rates(top: Path, workloads: Workloads, gpus: Mapping[str, str]) -> Iterator[Rate]:
    """Yield the rates of our own campaigns that have a report."""
    for report in index.read(top, workloads).known:
        for row in report.measured.rows:
            declared = workloads.get(row["workload"], UNKNOWN)
            rate = rate_of(row, report.measured.hardware, declared, gpus, report.entry["campaign"])
            if rate:
                yield rate._replace(date=report.entry["started"][:10])


def _display(claimed: Rate, verdict: claim.Verdict, wording: Wording) -> str:
    """Return what the terminal shows."""
    first, *others = (wording.tell(each) for each in claim.sentences(claimed, verdict))
    lines = [first, *(f"  {text}" for text in others)]
    for code, pairs in (("claim.published", verdict["published"]), ("claim.ours", verdict["ours"])):
        texts = [wording.tell(language_models.line(pair)) for pair in pairs] or [wording("claim.nothing")]
        lines += [wording(code), *(f"  {text}" for text in texts)]
    return "\n".join(lines)
