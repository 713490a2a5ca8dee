# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/workload.md: the keys of a workload's declaration, from module_utils/scalebook/workload.py.

The keys of their parts are described here.
"""

from __future__ import annotations

from ansible.module_utils.scalebook.kit_log import FORM, SANITY, TENSORFLOW
from ansible.module_utils.scalebook.workload import OPTIONAL, REQUIRED

from generated.text import table

PARTS = {
    "log": {
        "kit": "The prefix of the lines of a trainer that prints with the kit (`trainer_kit.Say`), such as "
        "`TORCH_BERT`. Its steps are read, and its log is checked, as [log.kit](#logkit) says.",
        "witnesses": "`first` where only rank 0 prints the lines that [log.kit](#logkit) compares, else "
        "`all`, the default: the first process of each node does. With `kit` only.",
        "without": "The list of the rules of [log.kit](#logkit) that the trainer prints no line for. With "
        "`kit` only.",
        "tensorflow": "`true` where `tensorflow_run.py` starts the trainer: its log is checked as "
        "[log.tensorflow](#logtensorflow) says too.",
        "literal": "A text that every line of a step has. Required without `kit`; with it, where the steps "
        "have another form than the kit's.",
        "step": "Given with `literal`: the pattern of such a line, a regular expression with the group "
        "`step`, the number of the step. These groups are read too, where the pattern has them: `time`, "
        "`last` (the number of the last step), `loss`, `rate` (samples per second), `latency` "
        "(milliseconds of a step), `mean` (the mean rate so far) and `micro` (micro-steps so far). With a "
        "pattern that has `micro`, the numbers of lines without it are those of micro-steps "
        "(`roles/deepspeed_bert`).",
        "time": "The format of the group `time`, required with it: `absl` (`MMDD HH:MM:SS.f`), `datetime` "
        "(`YYYY-MM-DD HH:MM:SS.f`), `clock` (`HH:MM:SS.f`) or `unix` (seconds). Without that group, the time "
        "of a step is when the node script printed the line.",
        "rate": "The rates that the trainer prints: see [log.rate](#lograte). Not needed where the group "
        "`rate` is the rate of all devices.",
        "mean_after": "The step after which the group `mean` begins to count, required with it.",
        "nodes": "`first` where only the first node prints steps, the default with `kit`, else `all`.",
        "falling_loss": "By how many per cent the loss must fall, where the workload learns from the data "
        "that it makes: the mean of the last quarter of the steps lies at least so far below that of the "
        "first, or the run does not count (`roles/torchtitan_llama`). What the noise between neighbouring "
        "steps explains, three standard errors, counts as fallen, and fewer than 20 losses are not judged. "
        "The steps are those up to the end of the window, the warm-up included; they need the group `loss`.",
        "forms": "The list of other forms of the lines, of other versions of the program, each with "
        "`literal`, `step`, `time`, `rate` and `mean_after` of its own. They are tried in turn on a log "
        "without lines of the first.",
        "own": "The rates of the program that only the steps are compared with: see [log.own](#logown).",
        "unread": "The list of other lines of steps that the same program prints: see "
        "[log.unread](#logunread).",
    },
    "log.rate": {
        "literal": "A text of the lines with rates, where those are not the lines of steps.",
        "pattern": "The pattern of such a line, with the group `rate`. With a group `step` it is the rate of "
        "that step, else of the last step before.",
        "scope": "`global`, the default, for the rate of all devices together, `rank` for that of one.",
    },
    "log.own": {
        "literal": "A text of the lines with rates.",
        "pattern": "The pattern of such a line, with the group `rate`, the mean rate of the steps since the "
        "line before. With a group `step` that is the last of these steps, else it is the last step before "
        "the line. A difference of more than 10 % is noted, or the run is refused.",
        "scope": "`global`, the default, for the rate of all devices together, `rank` for that of one.",
    },
    "log.unread": {
        "literal": "A text of a line of a step that cannot be read.",
        "pattern": "The pattern of such a line. The reason of a log without other steps names it.",
        "program": "Which program prints it.",
        "why": "Why they cannot be read from its own log, after its name: `without time stamps`.",
        "parameters": "With which parameters the workload runs this program, and so reads its steps: "
        "`{workload: torch_examples_resnet50}`.",
    },
    "limits": {
        "range": "`32 to 512`, `0 to below 1`, `1 and more`, `numbers above 0`, or one of these with a "
        "reason after a comma. A bound may be a formula of other variables without the role's prefix, as in "
        "`1 to seq_length - 3`. A limit with this key alone can be written as its text.",
        "pattern": "In place of `range`, a regular expression that the whole value must match.",
        "allowed": "What a refusal says is allowed, required with `pattern`.",
        "when": "A formula, as in [refuses](#refuses): the limit counts where it is not zero. "
        "`accumulation` is the parameter.",
    },
    "self_reported": {
        "literal": "A text of the line. The last line with it has `name=value` words.",
        "rate": "The name of the rate of all devices over the window. A report notes where it is not that of "
        "the steps.",
    },
    "install": {
        "framework": "The role of the framework, whose variable `<role>_environment` says what is in the "
        "environment (`roles/oneflow`). Left out where the workload's own role has this variable.",
        "separate": "`true` where the environment is the workload's own: `venv` in its directory.",
        "locks": "Locks in the role's `files` of what its own tasks install into the environment besides; "
        "`{version}` is that of the workload, `{build}` the device, `cpu` or `gpu`.",
        "versions": "The versions that `<workload>_version` may name, the oldest first, where `auto` is one "
        "of its values: `tasks/version.yml` of the framework's role chooses the one for a node "
        "(`roles/tensorflow`).",
        "packages": "The packages that name the framework and its version, where they are not those of the "
        "framework's role.",
        "launcher": "The role of a launcher that starts the processes, with the tasks `main`, `check` and "
        "`mirror` (`roles/deepspeed`).",
        "checkout": "Where the trainer comes from: `<workload>_repo` at `<workload>_commit` is checked out "
        "`into` this directory, and `trainer` is the directory in it where that is a part of it. "
        "`submodules` are those that are needed, `{NAME: DIRECTORY}`, each `<workload>_NAME_repo` at "
        "`<workload>_NAME_commit`. `package` is one in it that the trainer imports from there: `pythonpath` "
        "of the record has the programs and the checkout (`roles/bing_bert`).",
        "kit": "The programs of `roles/workload/files/kit` that the trainer imports, besides `run_head.sh` "
        "and `trainer_kit.py`.",
        "probe": "The arguments of the framework's `probe.py` (`roles/tensorflow`).",
        "horovod": "Horovod is built for this `framework` (`pytorch`, `tensorflow` or `mxnet`), in this "
        "`version` or, without one, the stack's. The trainer runs with its interpreter, which has both.",
        "dataset": "`make` and `check` are a program and the variables that are its arguments, after the "
        "directory; the first one has the number of samples that are made, 0 for none. `variable` names "
        "the user's own directory (default `data`), `into` that of what is made (default `images`), and "
        "`files` is the pattern of the files whose checksum the records have; `.idx` is the one beside a "
        "data set of one file. What `check` prints is the note `note` of the records; without this name it "
        "is `data`, and takes the place of the checksum.",
        "data": "What the data are where there are none of the user's own, for the records.",
        "tasks": "The files of tasks of the workload's own that role `workload` includes: `install`, "
        "`prepare` and `mirror`.",
    },
    "sanity": {
        "name": "The name of the check in messages; no two checks have the same.",
        "literal": "A text of the line that is looked for.",
        "pattern": "The pattern of that line. What its group `value` reads is compared with `expect`.",
        "expect": "What the value must be: a field of the case (`devices`, `dtype` …), `task_index`, `steps` "
        "(the last step of the window), `settings.NAME` for a setting, or `other_nodes`, the value in the "
        "logs of the other nodes, such as the loss that they summed (`roles/tf2_resnet50`). Without it the "
        "line only has to be there.",
        "equals": "In place of `expect`: a formula as in [refuses](#refuses) whose value is the number that "
        "the log must show (`roles/torchtitan_llama`). A log of a case that lacks one of its names, as an "
        "import may, is not checked.",
        "means": "Words of the log in terms of the case, `{float32: fp32}` (`roles/mxnet_resnet50`).",
        "where": "`end` where the line must be in the last 64 KiB of the log, else `any`, the default.",
        "nodes": "`first` where only the first node prints the line, `all` where each does. Default is that "
        "of `log`.",
        "device": "`cpu` or `gpu`: only cases on this device are checked.",
        "min_nodes": "Only cases with this many nodes or more are checked.",
        "min_devices": "Only cases with this many devices or more are checked.",
        "if": "A text that the node script prints before the trainer starts. A log without it is of an "
        "earlier version, and need not have the line (`roles/tf2_bert`).",
        "unless": "A text. A log that has it need not have the line.",
        "program": "`true` where no other program prints the line. An imported log must have it too; of the "
        "other checks it need only not contradict its case.",
    },
    "failures": {
        "literal": "The text in the log.",
        "why": "What it means and what to do, for the reason of the run.",
        "silence": "Seconds. A run counts as hung, and is ended, where a node prints nothing for longer "
        "after this text and before its first step (`roles/tf2_bert`). Without it, the text explains a run "
        "that failed.",
    },
    "refuses": {
        "when": "A formula as in [flops](#flops): a case for which it is not zero is refused. Its names are "
        "settings, the sizes of the model in `flops`, and `model`, `nodes`, `gpus`, `accumulation`, "
        "`device`, `dtype`, `warmup`, `window`, `xla` and `simulated` (0 or 1: nodes of the case share a "
        "machine).",
        "why": "The reason. The same names in braces become their values (`roles/torch_gpt2`).",
    },
    "flops": {
        "model": "A model of `data/models.yml`, which has its formula, source and sizes for all workloads "
        "that train it. Without it, `sample`, `source` and `models` are required.",
        "with": "Settings or numbers in place of names of that formula, where a workload has another name "
        "for them or no such setting: `{seq_length: length, predictions: 0}` (`roles/horovod_bert`).",
        "sample": "The formula of the floating point operations of a sample, forward and backward: numbers, "
        "names, `+ - * / // % **`, parentheses, and `(name == 'text')`, which is 1 or 0. Its names are "
        "settings and the sizes of the model.",
        "source": "Where the formula is from.",
        "models": "The sizes of each model, `{resnet50: {blocks: 4087136256}}`; with `model`, only those "
        "that differ (`roles/tf2_bert`).",
        "tf32": "Whether products of fp32 may use the tensor cores of a GPU: `true`, `false`, or the name of "
        "a setting.",
    },
    "containers": {
        "image": "Its name, with a tag or a digest. The provenance of runs has the digest.",
        "python": "The interpreter of the image that starts the trainer, in place of the installation's.",
        "source": "Who trains this workload in it, and where that is written.",
    },
    "dlperf": {
        "frameworks": "The published frameworks that are counterparts of this workload.",
        "models": "The name that each of our models has there, `{base: bert-base}`.",
        "others": "More published models of the family, which reports show without comparing.",
        "differs": "Why no published figure compares with one of this workload, where that is so.",
        "variants": "The settings that published tables were measured with, by their `variant`. A case "
        "stands beside those of its settings; other tables are shown without comparing.",
    },
}
"""The keys of parts of a declaration, by the part."""

NEEDED = {
    "log.unread": ("literal", "pattern", "program", "why"),
    "self_reported": ("literal",),
    "sanity": ("name", "literal", "pattern"),
    "failures": ("literal", "why"),
    "refuses": ("when", "why"),
    "flops": ("tf32",),
    "containers": ("image", "python", "source"),
    "dlperf": ("frameworks", "models"),
}
"""The keys that a part must have."""


def files() -> dict[str, str]:
    """Return the page."""
    parts = [
        "# Keys of a workload\n",
        "Made by `scripts/pages` from `module_utils/scalebook/workload.py`.\n",
        "A role that has the file `meta/workload.yml` is a workload, and the file is its declaration: static "
        "data. [Add a workload](../how-to/add-a-workload.md) says how to begin.\n",
    ]
    for name, keys in {"Required": REQUIRED, "Optional": OPTIONAL}.items():
        parts += [
            f"## {name}\n",
            table(("key", "meaning"), [(f"`{key}`", text) for key, text in keys.items()]),
        ]
    for name, keys in PARTS.items():
        needed = NEEDED.get(name, ())
        rows = [(f"`{key}`", "yes" if key in needed else "no", text) for key, text in keys.items()]
        parts += [f"## {name}\n", table(("key", "required", "meaning"), rows)]
        parts += _kit() if name == "log" else []
    return {"docs/reference/workload.md": "\n".join(parts)}


def _kit() -> list[str]:
    """Return the sections about what all trainers of the kit print, and `tensorflow_run.py`."""
    kit, tensorflow = (
        table(
            ("name", "pattern", "expect"),
            [(f"`{rule['name']}`", f"`{rule['pattern']}`", rule.get("expect", "")) for rule in rules],
        )
        for rules in (SANITY, TENSORFLOW)
    )
    return [
        "## log.kit\n",
        f"The line of a step is `{FORM['step']}`, with the time in seconds since the epoch, and these are "
        "rules of `sanity`. A rule of the declaration counts in place of one of the same name. "
        "`accumulation` is left out where the declaration has no such key, and `weights` must be at the end "
        "of the log.\n",
        kit,
        "## log.tensorflow\n",
        "`tensorflow_run.py` prints these for a trainer of somebody else. The node script prints "
        f"`{TENSORFLOW[0]['if']}…` before it: a log without that is of an earlier version.\n",
        tensorflow,
    ]
