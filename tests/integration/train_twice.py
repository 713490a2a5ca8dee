# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Under torchrun: train a small BERT five steps with DDP and five with fsdp; print how far apart they end.

torchrun --nproc_per_node 2 train_twice.py DIRECTORY-OF-THE-CODE DIRECTORY-OF-THE-DATA OPTIMIZER ACCUMULATION
"""

import argparse
import sys

CODE, DATA, OPTIMIZER, ACCUMULATION = sys.argv[1:]
sys.path.insert(0, CODE)

import bert_sizes  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import train  # noqa: E402
from bert_batches import Loader, shape  # noqa: E402

directory = f"{DATA}/{bert_sizes.MODELS['tiny']['vocabulary']}"
BATCH, SEED = 8, 1


def weights(parallel):
    """All weights after five steps without dropout, and what the trainer says of the ranks."""
    args = argparse.Namespace(
        parallel=parallel,
        optimizer=OPTIMIZER,
        accumulation=int(ACCUMULATION),
        device="cpu",
        model="tiny",
        dtype="fp32",
        data=DATA,
        batch=BATCH,
        checkpointing=False,
        compile=False,
        attention="auto",
        layer="auto",
        fused=True,
        learning_rate=1e-2,
        rate_warmup=2,
        decay=0.01,
        clip=0.5,
        dropout=0.0,
        bucket_mb=1,
        seed=SEED,
    )
    args.seq, args.predictions = shape(directory)
    device, rank, world = torch.device("cpu"), dist.get_rank(), dist.get_world_size()
    trainer = train.Trainer(args, device, world)
    loader = Loader(directory, BATCH, trainer.sites, rank, world, SEED, device)
    for number in range(1, 6):
        trainer.step(number, loader)
    assert trainer.agree(device), f"{parallel}: the ranks do not agree"
    return [(p.full_tensor() if trainer.sharded else p).detach() for p in trainer.model.parameters()]


dist.init_process_group("gloo")
pairs = zip(weights("ddp"), weights("fsdp"), strict=True)
distance = max((whole - split).abs().max().item() for whole, split in pairs)
if dist.get_rank() == 0:
    print(distance)
torch_end.leave()
