# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Images that outlive the checkout where SCALEBOOK_TEST_CACHE names a directory: a new clone loads them."""

from pathlib import Path

from .base import CACHE, say
from .engine import Engine


def archive(name: str, recipe: str) -> Path | None:
    """Return where the image of this recipe is kept, None if images are not kept."""
    return Path(CACHE, "images", name.rpartition("/")[2], f"{recipe}.tar") if CACHE else None


def load(engine: Engine, name: str, recipe: str) -> bool:
    """Load the image if it was kept; return whether."""
    path = archive(name, recipe)
    if engine.name != "podman" or path is None or not path.exists():
        return False
    say(f"loading the image {name}")
    # One that a killed process left incomplete, say, is made again.
    return engine("load", "--input", str(path), check=False, timeout=300).returncode == 0


def save(engine: Engine, name: str, recipe: str) -> None:
    """Keep the image, and those of other recipes no longer. Podman alone keeps the image's id."""
    path = archive(name, recipe)
    if engine.name != "podman" or path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    engine("save", "--format", "oci-archive", "--output", str(new), f"{name}:latest", timeout=300)
    for other in path.parent.glob("*.tar"):
        other.unlink()
    new.replace(path)
