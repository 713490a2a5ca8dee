# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The published JSON schemas.  Write them again with: python tests/helpers/schemas.py"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference"


def schemas():
    """Return file name -> text of every published schema."""
    from ansible.module_utils.scalebook.contracts import Microbench, Plan, Record, Results, json_schema

    published = {"plan": Plan, "result": Record, "results": Results, "microbench": Microbench}
    return {
        f"{name}.schema.json": json.dumps(json_schema(contract, f"{name}.json"), indent=1) + "\n"
        for name, contract in published.items()
    }


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    import conftest  # noqa: F401 - makes ansible.module_utils.scalebook importable

    FOLDER.mkdir(exist_ok=True)
    for file, text in schemas().items():
        (FOLDER / file).write_text(text)
