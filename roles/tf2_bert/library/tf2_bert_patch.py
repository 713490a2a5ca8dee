#!/usr/bin/python
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
# Runs on the nodes, so on any Python from 3.6 on.

DOCUMENTATION = r"""
module: tf2_bert_patch
short_description: Patch run_pretraining.py of tf-models-official for several nodes and a shorter start
description:
  - The original script defines C(--worker_hosts), C(--task_index), C(--all_reduce_alg) and C(--enable_xla),
    and ignores some of them silently; a run on four nodes would be four runs on one node each. The patch
    makes the script use them.
  - In the original script the first step creates the variables of the optimizer, and TensorFlow traces a
    function that creates variables a second time. The patch creates them with the model. The training is the
    same to the bit.
  - In check mode a script that does not exist would be patched once it is installed.
  - The lines to change are found by their text, never by their numbers. A file in which neither the original
    nor the patched lines of a change occur exactly once is refused. It is replaced whole or not at all.
options:
  path:
    description: The script.
    type: path
    required: true
  state_path:
    description: File to write the sha256 of the script before and after the patch to, as JSON.
    type: path
    required: true
attributes:
  check_mode:
    support: full
    description: Says what would change, and changes nothing.
  diff_mode:
    support: full
    description: Shows the files before and after.
author: [Contributors to the scalebook project]
"""

EXAMPLES = r"""
- name: Patch the training script
  tf2_bert_patch:
    path: /opt/scalebook/tf2_bert/models/official/nlp/bert/run_pretraining.py
    state_path: /opt/scalebook/tf2_bert/patch.json
"""

RETURN = r"""
state:
  description: The record with C(file), C(variant), and the sha256 C(before) and C(after) the patch.
  returned: success, unless the script does not exist
  type: dict
"""

import hashlib
import json
import os
from typing import Any, Dict, List, Optional, Tuple

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.scalebook.files import write_whole
from ansible.module_utils.scalebook.patch_lines import positions, replaced

# The lines are compared without their indentation. The patched lines get that of the first original line;
# inner indentation is relative to it.
VARIANTS: List[Dict[str, Any]] = [
    {
        "name": "2.3.0",
        "original": [
            "strategy = distribution_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    num_gpus=FLAGS.num_gpus,",
            "    tpu_address=FLAGS.tpu)",
        ],
        "patched": [
            "from official.utils.misc import keras_utils",
            "keras_utils.set_session_config(enable_xla=FLAGS.enable_xla)",
            "distribution_utils.configure_cluster(",
            "    FLAGS.worker_hosts,",
            "    FLAGS.task_index)",
            "strategy = distribution_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    all_reduce_alg=FLAGS.all_reduce_alg,",
            "    num_gpus=FLAGS.num_gpus,",
            "    tpu_address=FLAGS.tpu)",
        ],
    },
    {
        # configure_cluster is called only when num_gpus > 0: nodes without GPUs would form no cluster.
        "name": "2.15",
        "original": [
            "if FLAGS.num_gpus > 0:",
            "  _ = distribute_utils.configure_cluster(FLAGS.worker_hosts, FLAGS.task_index)",
            "strategy = distribute_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    num_gpus=FLAGS.num_gpus,",
            "    all_reduce_alg=FLAGS.all_reduce_alg,",
            "    tpu_address=FLAGS.tpu)",
        ],
        "patched": [
            "from official.utils.misc import keras_utils",
            "keras_utils.set_session_config(enable_xla=FLAGS.enable_xla)",
            "_ = distribute_utils.configure_cluster(FLAGS.worker_hosts, FLAGS.task_index)",
            "strategy = distribute_utils.get_distribution_strategy(",
            "    distribution_strategy=FLAGS.distribution_strategy,",
            "    num_gpus=FLAGS.num_gpus,",
            "    all_reduce_alg=FLAGS.all_reduce_alg,",
            "    tpu_address=FLAGS.tpu)",
        ],
    },
]

# The same lines in all versions. A step that creates variables is traced twice, each time for one GPU after
# the other: most of the start on several GPUs.
WEIGHTS: Dict[str, List[str]] = {
    "original": ["return pretrain_model, core_model"],
    "patched": [
        "pretrain_model.optimizer._create_all_weights(pretrain_model.trainable_variables)",
        "return pretrain_model, core_model",
    ],
}

# Calls that the patched lines make. Elsewhere in the file they belong to another patch.
CALLS = (
    "set_session_config(",
    "configure_cluster(",
    "get_distribution_strategy(",
    "_create_all_weights(",
)


class UnknownFileError(ValueError):
    """The file is neither the original nor the patched one."""


def argument_spec() -> Dict[str, Any]:
    return {"path": {"type": "path", "required": True}, "state_path": {"type": "path", "required": True}}


def counts(lines: List[str]) -> List[int]:
    """Return how often each of CALLS occurs in the lines."""
    return [sum(line.count(call) for line in lines) for call in CALLS]


def changed_lines(text: str, change: Dict[str, Any]) -> Optional[str]:
    """Return the text with a change, None where it has neither the original lines nor the patched ones."""
    lines = text.splitlines(True)
    for kind in ("patched", "original"):
        block = change[kind]
        starts = positions(lines, block)
        if len(starts) > 1:
            raise UnknownFileError("the lines that begin with `%s` occur %d times" % (block[0], len(starts)))
        if starts:
            if kind == "patched":
                return text
            return replaced(lines, starts[0], len(block), change["patched"])
    return None


def expected(change: Dict[str, Any]) -> str:
    """Return the original lines of a change in one line."""
    return " / ".join(line.strip() for line in change["original"])


def patch(text: str) -> Tuple[str, str]:
    """Return (patched text, name of the variant); a patched text is returned unchanged.

    Raises UnknownFileError with the lines that were expected.
    """
    for variant in VARIANTS:
        clustered = changed_lines(text, variant)
        if clustered is None:
            continue
        new = changed_lines(clustered, WEIGHTS)
        if new is None:
            raise UnknownFileError(
                "it does not contain the line to replace. Expected is the line %s" % expected(WEIGHTS)
            )
        if counts(new.splitlines()) != counts(variant["patched"] + WEIGHTS["patched"]):
            raise UnknownFileError(
                "it calls one of %s outside the expected lines: another patch was applied to it"
                % ", ".join(call + ")" for call in CALLS)
            )
        return new, variant["name"]
    raise UnknownFileError(
        "it does not contain the lines to replace. Expected are the lines %s"
        % "; or ".join("of tf-models-official %s: %s" % (v["name"], expected(v)) for v in VARIANTS)
    )


def sha256(data: bytes) -> str:
    """Return the sha256 of bytes in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def read_state(path: str) -> Dict[str, Any]:
    """Return the recorded state, an empty dict where it cannot be read: it is written again then."""
    try:
        with open(path, encoding="utf-8") as stream:
            state = json.load(stream)
    except (OSError, ValueError):
        return {}
    return state if isinstance(state, dict) else {}


def apply(path: str, state_path: str, write: bool = True) -> Tuple[Dict[str, Any], str, str, bool]:
    """Patch the file at `path` and record the state; return (state, text before, text after, changed).

    The state is written first: a state without its file is recognised by `after`, whereas a patched file
    without the checksum of the original would be lost. Nothing is written when not `write`.
    Raises UnknownFileError (the message names the file) and OSError.
    """
    with open(path, "rb") as stream:
        data = stream.read()
    try:
        text = data.decode("utf-8")
        new_text, variant = patch(text)
    except (UnknownFileError, UnicodeDecodeError) as error:
        raise UnknownFileError(
            "%s is not a known version of run_pretraining.py: %s" % (path, error)
        ) from error
    new = new_text.encode("utf-8")
    old = read_state(state_path)
    before = None if new == data else sha256(data)
    # The file is not the original where this module, also an earlier version of it, patched it.
    if old.get("after") in (sha256(data), sha256(new)):
        before = old.get("before")
    state = {"schema": 1, "file": path, "variant": variant, "before": before, "after": sha256(new)}
    changed = new != data or state != old
    if changed and write:
        content = (json.dumps(state, indent=2, sort_keys=True) + "\n").encode("utf-8")
        write_whole(state_path, content, sync=True)
        write_whole(path, new, sync=True, mode=None)
    return state, text, new_text, changed


def main() -> None:
    module = AnsibleModule(argument_spec=argument_spec(), supports_check_mode=True)
    path = module.params["path"]
    if module.check_mode and not os.path.lexists(path):
        module.exit_json(changed=True)
    try:
        state, before, after, changed = apply(path, module.params["state_path"], write=not module.check_mode)
    except UnknownFileError as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="cannot patch %s: %s" % (path, error))
    result = {"changed": changed, "state": state}
    if module._diff:  # the attribute that Ansible's own modules use
        result["diff"] = {"before_header": path, "after_header": path, "before": before, "after": after}
    module.exit_json(**result)


if __name__ == "__main__":
    main()
