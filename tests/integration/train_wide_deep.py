# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train the model of torch_wide_deep as anyone would in one process, and print the loss of each step.

Its tables are torch's embeddings with an optimizer that knows nothing of rows: Adam of all of them, with the
means of rows that a step does not have put back.

train_wide_deep.py CODE BATCH STEPS
"""

import json
import os
import sys

code, batch, steps = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.path.insert(0, code)

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from model import WideDeep  # noqa: E402
from samples import Samples  # noqa: E402
from tables import BETAS, Table  # noqa: E402

size = json.loads(os.environ["MODEL_SIZE"])
rows, device = size["vocabulary"], torch.device("cpu")
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
torch.manual_seed(2020)
model = WideDeep(size, dropout=0)
vectors = [
    Table(rows, width, seed, device).vectors[:-1] for width, seed in ((size["vector"], 2020), (1, 2021))
]
tables = [torch.nn.Embedding.from_pretrained(each.clone(), freeze=False) for each in vectors]
optimizer = torch.optim.Adam([*model.parameters(), *(table.weight for table in tables)], 0.001, BETAS)
samples = Samples(batch, 0, rows, 2020, device)


def of_table(table):
    """Return the vectors of a table, and their means of Adam once there are some."""
    return [table.weight.data, *list(optimizer.state[table.weight].values())[1:]]


for _step in range(steps):
    numbers, deep, wide, labels = next(samples)
    found = [table(indices).view(batch, -1) for table, indices in zip(tables, (deep, wide), strict=True)]
    loss = model(numbers, *found, labels)
    print(f"{loss.item():.4f}")
    loss.backward()
    earlier = [[each.clone() for each in of_table(table)] for table in tables]
    optimizer.step()
    optimizer.zero_grad()
    for table, indices, old in zip(tables, (deep, wide), earlier, strict=True):
        others = torch.ones(rows, dtype=bool).index_fill_(0, indices.flatten(), False)
        for i, each in enumerate(of_table(table)):
            each[others] = old[i][others] if i < len(old) else 0
