#!/usr/bin/env python3
# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print what the trainer has saved as its parameters, as one line for the reader of the log.

usage: show_params.py PARAMS.YAML

`classifier_trainer.serialize_config` of tf-models-official writes the file before the first step. The line
says of synthetic data what it is: `dataset_factory.load_synthetic` gives images and labels that are all 0.
Ends with status 1 where the parameters are not those of ResNet-50 on images of 224 x 224 x 3.
"""

import sys
from typing import Any, Dict, List

import trainer_kit
import yaml

DTYPES = {"float32": "fp32", "float16": "fp16"}
BUILDERS = {"synthetic": "synthetic-all-zero", "records": "records"}

say = trainer_kit.Say("TF2_RESNET50")


def values_of(params: Dict[str, Any]) -> Dict[str, Any]:
    """Return the line's values; a builder or dtype that this project does not use is a KeyError."""
    data, runtime = params["train_dataset"], params["runtime"]
    size = data["image_size"]
    return {
        "dtype": DTYPES[data["dtype"]],
        "xla": str(bool(runtime["enable_xla"])).lower(),
        "strategy": runtime["distribution_strategy"],
        "steps": params["train"]["steps"],
        "data": BUILDERS[data["builder"]],
        # `infer` would ask tensorflow-datasets, which goes to the internet.
        "image": "%sx%sx%s" % (size, size, data["num_channels"]),
        "batch": data["batch_size"],
    }


def main(argv: List[str]) -> int:
    """Print the line; return 1 for images of another shape."""
    with open(argv[1], encoding="utf-8") as file:
        values = values_of(yaml.safe_load(file))
    say(**values)
    return 0 if values["image"] == "224x224x3" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
