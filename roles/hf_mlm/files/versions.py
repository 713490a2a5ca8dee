# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Print versions and GPUs as one JSON object, after a check of the number of parameters of each model."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import accelerate  # noqa: E402
import models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402


def main() -> None:
    """Make the models without their weights, and print what is installed."""
    parameters = {name: models.count(models.make(name, "meta")) for name in models.MODELS}
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "cuda": torch.version.cuda or "",
                "transformers": transformers.__version__,
                "accelerate": accelerate.__version__,
                "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
                "parameters": parameters,
            }
        )
    )


if __name__ == "__main__":
    main()
