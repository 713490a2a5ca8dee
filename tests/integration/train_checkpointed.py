# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a tiny model with and without gradient checkpointing; print the losses and how often a layer ran.

usage: train_checkpointed.py torch_bert|hf_mlm CODE

Prints JSON: two pairs of the losses of three steps and the number of forward passes of all layers. There is
dropout.
"""

import json
import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[2])

import torch  # noqa: E402

STEPS, BATCH, LENGTH, WORDS = 3, 4, 32, 1024


def torch_bert(checkpointing):
    """Return the model, its layers, and a function from a step's number to its loss."""
    import bert_attention
    import bert_sizes
    from bert_model import Bert, Layer

    size = bert_sizes.MODELS["tiny"]
    attend = bert_attention.choose("sdpa", "cpu", torch.float32, LENGTH, size["hidden"] // size["heads"])
    model = Bert(size, torch.float32, attend, 0.1, Layer, checkpointing)

    def loss(step):
        torch.manual_seed(step)
        batch = SimpleNamespace(
            words=torch.randint(WORDS, (BATCH, LENGTH)),
            segments=torch.zeros(BATCH, LENGTH, dtype=torch.long),
            lengths=None,
            positions=torch.randint(LENGTH, (BATCH, 5)),
            labels=torch.randint(WORDS, (BATCH, 5)),
            following=torch.randint(2, (BATCH,)),
        )
        return model(batch, torch.randint(-(2**31), 2**31 - 1, (model.sites, 2), dtype=torch.int32))

    return model, model.layers, loss


def hf_mlm(checkpointing):
    """Return the same of the Hugging Face model."""
    import models

    model = models.make("tiny", checkpointing=checkpointing).train()

    def loss(step):
        torch.manual_seed(step)
        words = torch.randint(WORDS, (BATCH, LENGTH))
        return model(input_ids=words, labels=words).loss

    # A layer as a whole is wrapped; a part of it runs each time that the layer is computed.
    return model, [layer.intermediate for layer in model.deberta.encoder.layer], loss


def train(kind, checkpointing):
    """Return the losses of all steps and the number of forward passes of layers."""
    torch.manual_seed(0)
    model, layers, loss_of = {"torch_bert": torch_bert, "hf_mlm": hf_mlm}[kind](checkpointing)
    passes, losses = [], []
    for layer in layers:
        layer.register_forward_pre_hook(lambda *_: passes.append(1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for step in range(STEPS):
        loss = loss_of(step)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, len(passes)


print(json.dumps([train(sys.argv[1], checkpointing) for checkpointing in (False, True)]))
