# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Sizes of the models, and what follows from them: parameters, arithmetic, peaks. Needs no torch.

Runs on the nodes, Python 3.6 or newer, standard library only.
"""

VOCABULARY = 30522  # BERT's uncased vocabulary
PADDED_TO = 64  # rows of the embedding table, so that the projection's matrices are aligned for tensor cores

MODELS = {
    "tiny": {"hidden": 64, "layers": 2, "heads": 2, "intermediate": 256, "vocabulary": 1024},
    "base": {"hidden": 768, "layers": 12, "heads": 12, "intermediate": 3072, "vocabulary": VOCABULARY},
    "large": {"hidden": 1024, "layers": 24, "heads": 16, "intermediate": 4096, "vocabulary": VOCABULARY},
}
POSITIONS = 512
SEGMENTS = 2

# Dense peaks in TFLOP/s from the vendor's data sheets: H100 (SXM and PCIe), H200, A100, V100, L4, L40S, A10.
# The first entry whose key is part of the device's name counts. fp32 is without tensor cores, tf32 with them.
PEAKS = (
    ("H100 PCIe", {"bf16": 756.5, "fp16": 756.5, "tf32": 378.3, "fp32": 51.2}),
    ("H100 NVL", {"bf16": 835.5, "fp16": 835.5, "tf32": 417.7, "fp32": 60.0}),
    ("H100", {"bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 66.9}),
    ("H200", {"bf16": 989.4, "fp16": 989.4, "tf32": 494.7, "fp32": 66.9}),
    ("A100", {"bf16": 312.0, "fp16": 312.0, "tf32": 156.0, "fp32": 19.5}),
    ("V100", {"fp16": 125.0, "fp32": 15.7}),
    ("L40S", {"bf16": 362.1, "fp16": 362.1, "tf32": 183.2, "fp32": 91.6}),
    ("L4", {"bf16": 121.0, "fp16": 121.0, "tf32": 60.0, "fp32": 30.3}),
    ("A10", {"bf16": 125.0, "fp16": 125.0, "tf32": 62.5, "fp32": 31.2}),
)


def padded(vocabulary):
    """Rows of the embedding table: the vocabulary rounded up to PADDED_TO."""
    return -(-vocabulary // PADDED_TO) * PADDED_TO


def parameters(model):
    """Parameters of a model with both heads, the decoder tied to the embedding, without padding rows.

    110,106,428 for base, as transformers' BertForPreTraining counts them.
    """
    h, i, v = model["hidden"], model["intermediate"], model["vocabulary"]
    norm = 2 * h
    embedding = (v + POSITIONS + SEGMENTS) * h + norm
    layer = 4 * (h * h + h) + (h * i + i) + (i * h + h) + 2 * norm
    mlm = h * h + h + norm + v  # transform, its norm, the decoder's bias
    nsp = h * h + h + 2 * h + 2  # pooler and classifier
    return embedding + model["layers"] * layer + mlm + nsp


def flops_per_sample(model, seq, predictions):
    """Floating point operations of one sample, forward and backward: 3 x the forward matrix products.

    A product of [m, k] and [k, n] counts 2mkn. Per layer and token 8h^2 (query, key, value, output) and 4hi
    (the two of the feed-forward); attention 4 s^2 h; per prediction 2h^2 (transform) and 2hv (vocabulary);
    2h^2 for the pooler. Norms, biases, softmax, dropout and the optimizer count nothing.
    69.93e9 for base at 128 tokens with 20 predictions.
    """
    h, i, v = model["hidden"], model["intermediate"], model["vocabulary"]
    layer = seq * (8 * h * h + 4 * h * i) + 4 * seq * seq * h
    heads = predictions * (2 * h * h + 2 * h * v) + 2 * h * h + 4 * h
    return 3 * (model["layers"] * layer + heads)


def peak(device, dtype):
    """Dense peak of a device in TFLOP/s by its name, or None where the table does not know it."""
    for key, peaks in PEAKS:
        if key in device:
            return peaks.get(dtype)
    return None
