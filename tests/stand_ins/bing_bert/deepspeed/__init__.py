# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for DeepSpeed 0.3: what its trainer and this project's programs ask of it."""

from .runtime.engine import DeepSpeedEngine

__version__ = "0.3.0+stand-in"


def initialize(args, model, model_parameters):
    """As DeepSpeed's: (engine, optimizer, data, schedule)."""
    engine = DeepSpeedEngine(args, model, model_parameters)
    return engine, engine.optimizer, None, None
