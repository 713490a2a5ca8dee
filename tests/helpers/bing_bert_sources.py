# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The lines of DeepSpeed and bing_bert of 2020 that the patch changes, as the published files have them."""

from role_files import load

PATCH = load("deepspeed2020", "bing_bert_patch")
STORE = "https://s3.amazonaws.com/models.huggingface.co/bert"

# With the indentation and the line ends of the published files.
INSTALL = 'if [ "$pip_sudo" == "1" ]; then\n    PIP_SUDO="sudo -H"\nelse\n    PIP_SUDO=""\nfi\n'
REQUIREMENTS = "torch>=1.2\ntorchvision>=0.4.0\ntqdm\n"
TRAINER = (
    "            if model.network.is_gradient_accumulation_boundary():\r\n"
    "                if args.fp16:\r\n"
    "                    lr_this_step = 1\r\n"
    "            else:\r\n"
    "                # Call DeepSpeed engine step on micro steps\r\n"
    "                model.network.step()\r\n"
)
TOKENIZATION = "".join(f"    '{name}':\n    \"{STORE}/{name}-vocab.txt\",\n" for name in PATCH.VOCABULARIES)
# {path in DeepSpeed's repository: text}
SOURCES = {
    "install.sh": INSTALL,
    "requirements/requirements.txt": REQUIREMENTS,
    PATCH.TRAINER: TRAINER,
    PATCH.TOKENIZATION: TOKENIZATION,
}
