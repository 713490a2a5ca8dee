# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stand-in for the trainer: what of its command line and of its engine the tests look at."""

import argparse
import json
import time
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser(allow_abbrev=False)
parser.add_argument("--cf", required=True)
parser.add_argument("--deepspeed_config", required=True)
parser.add_argument("--local_rank", type=int, required=True)
parser.add_argument("--max_steps_per_epoch", type=int, required=True)
args, _ = parser.parse_known_args()
batch = json.loads(Path(args.deepspeed_config).read_text())["train_micro_batch_size_per_gpu"]
torch.manual_seed(0)
model = torch.nn.Linear(4, 4)
engine, *_ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
torch.manual_seed(dist.get_rank())
for _ in range(args.max_steps_per_epoch):
    loss = engine(torch.rand(batch, 4))
    engine.backward(loss)
    engine.step()
    time.sleep(0.01)
