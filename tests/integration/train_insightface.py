# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train the model of torch_insightface as anyone would in one process, and print the loss of each step.

The classes are one table, the loss is torch's cross entropy of all logits, the margin an angle. Of the
trainer are the backbone, the pictures, and the first centres. A case is `PARTS:RATE:MARGIN`: the norms of the
backbone take the pictures of each of PARTS devices together, and each device chooses centres of its own. The
last line of a case has the sums of the weights of backbone and table.

train_insightface.py CODE BATCH STEPS CLASSES LEARNING_RATE CASE…
"""

import json
import os
import sys

code, batch, steps, classes, learning_rate = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
sys.path.insert(0, code)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from backbone import Backbone  # noqa: E402
from centres import Centres  # noqa: E402
from faces import Faces  # noqa: E402
from torch.nn import functional  # noqa: E402

SEED, PIXELS, SCALE = 2020, 32, 64
MARGINS = {"arcface": (0.5, 0), "cosface": (0, 0.4)}
size, device = json.loads(os.environ["MODEL_SIZE"]), torch.device("cpu")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


def left_out(labels, rate, ranges, draws):
    """Return which classes no device takes in this step."""
    others = torch.zeros(classes, dtype=bool)
    if rate < 1:
        for own, source in zip(ranges, draws, strict=True):
            scores = torch.rand(len(own) + 1, generator=source)[:-1]
            scores[torch.isin(own, labels)] = 2
            others[own] = True
            others[own[scores.topk(int(rate * len(own))).indices]] = False
    return others


def train(parts, rate, margin):
    torch.manual_seed(SEED)
    model = Backbone(size, PIXELS)
    first = Centres(classes, size["embedding"], 1, margin, batch, SEED, device).centres
    table = torch.nn.Embedding.from_pretrained(first, freeze=False)
    options = {"lr": learning_rate, "momentum": 0.9, "weight_decay": 5e-4}
    optimizers = [torch.optim.SGD(each.parameters(), **options) for each in (model, table)]
    faces = Faces(batch, 0, classes, PIXELS, SEED, device=device)
    ranges = torch.arange(classes).tensor_split(parts)
    draws = [torch.Generator().manual_seed(SEED + part) for part in range(parts)]
    turn, less = MARGINS[margin]
    for _ in range(steps):
        pictures, labels = next(faces)
        others = left_out(labels, rate, ranges, draws)
        embeddings = torch.cat([model(each) for each in pictures.chunk(parts)])
        cosines = functional.normalize(embeddings) @ functional.normalize(table.weight).T
        one = functional.one_hot(labels, classes).bool()
        logits = SCALE * torch.where(one, torch.cos(torch.acos(cosines) + turn) - less, cosines)
        loss = functional.cross_entropy(logits.masked_fill(others, -torch.inf), labels)
        print(f"{loss.item():.4f}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5)
        state = optimizers[1].state[table.weight]
        # A centre and its momentum are as they were where its class took no part.
        centres, momenta = (
            table.weight.data[others],
            state.get("momentum_buffer", torch.zeros(classes, 1))[others],
        )
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        table.weight.data[others], state["momentum_buffer"][others] = centres, momenta
    backbone = sum(p.double().sum().item() for p in model.parameters())
    print(backbone, table.weight.double().sum().item())


for case in sys.argv[6:]:
    parts, rate, margin = case.split(":")
    train(int(parts), float(rate), margin)
