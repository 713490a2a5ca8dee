# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Under torchrun: train torch_gpt2 in one mode after the other, on the same sequences, and print the losses.

torchrun --nproc_per_node N train_in_parallel.py CODE DEVICE BATCH "OPTIONS-OF-TRAIN" …

BATCH is the number of sequences in a step, of all devices together. Rank 0 prints a JSON object a mode: the
mean loss of all devices in each step, the sums of the weights, and whether the devices hold the same ones.
"""

import json
import sys

sys.path.insert(0, sys.argv.pop(1))

import gpt2_sizes  # noqa: E402
import layout  # noqa: E402
import numpy as np  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_run  # noqa: E402
import train  # noqa: E402

STEPS, SEQ, GIVEN = 6, 32, "--steps 6 --rate-warmup 1 --learning-rate 0.003 --seq-length 32 --tf32 false"
gpt2_sizes.MODELS["four"] = {"hidden": 32, "layers": 4, "heads": 4, "vocabulary": 300}


class Shared:
    """The micro-batches of this device: its part of sequences that are the same in every mode."""

    def __init__(self, trainer, whole):
        micro_steps = trainer.args.accumulation
        replicas = len(whole) // (trainer.sequences.batch * micro_steps)
        own = np.split(whole, replicas)[trainer.layout.replica]
        self.parts, self.turn = np.split(own, micro_steps), 0
        self.device = trainer.device

    def __next__(self):
        rows = train.torch.from_numpy(self.parts[self.turn % len(self.parts)]).to(self.device)
        self.turn += 1
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def trained(options, batch, device):
    """Return what becomes of training with these options."""
    sys.argv[1:] = [*GIVEN.split(), *options.split(), "--device", "gpu" if device.type == "cuda" else "cpu"]
    args = train.arguments()
    train.check(args)
    trainer = train.Trainer(args, device)
    vocabulary = gpt2_sizes.MODELS[args.model]["vocabulary"]
    whole = np.random.RandomState(7).randint(0, vocabulary, (batch, SEQ + 1))
    trainer.sequences = Shared(trainer, whole)
    losses = []
    for number in range(1, STEPS + 1):
        loss = trainer.step(number)
        dist.all_reduce(loss)
        losses.append(loss.item() / dist.get_world_size())
    sums = layout.sums(trainer.model, trainer.layout, device)
    return {"losses": losses, "sums": sums, "agree": layout.agree(trainer.model, trainer.layout, device)}


def main():
    device, batch, modes = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    device = torch_run.join(device, False)
    for options in modes:
        found = trained(options, batch, device)
        if dist.get_rank() == 0:
            print(json.dumps({"options": options, **found}), flush=True)
    train.torch_end.leave()


main()
