# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""The operations of models, counted by their sizes: what the formulas of declarations must agree with."""

from role_files import load

GPT2 = load("workload", "gpt2_sizes")
# Name: (channels of the first layer, bottleneck blocks of each stage).
RESNETS = {"tiny": (16, [1, 1, 1, 1]), "resnet50": (64, [3, 4, 6, 3])}


def flops_of_gpt2(name, seq):
    """Return the operations of a sequence, forward and backward: per token 6N + 12 * layers * hidden * seq.

    PaLM (Chowdhery et al. 2022, arXiv:2204.02311), appendix B. N are the weights of matrix products: 12h^2 a
    layer and the projection to the vocabulary. The causal mask halves nothing.
    """
    model = GPT2.MODELS[name]
    h, layers = model["hidden"], model["layers"]
    weights = 12 * layers * h * h + model["vocabulary"] * h
    return seq * (6 * weights + 12 * layers * h * seq)


def multiply_adds_of_resnet(name, image, classes):
    """Return the multiply-adds of the convolutions and the last layer for an image, forward.

    4,089,184,256 for resnet50 at 224 x 224 with 1000 classes: the 4.09 G that torchvision publishes.
    `image` is a multiple of 32.
    """
    convolutions = convolutions_of_resnet(name)
    body = sum(given * out * kernel**2 * (image // by) ** 2 for given, out, kernel, by in convolutions)
    return body + features_of_resnet(name) * classes


def parameters_of_resnet(name, classes):
    """Return the number of parameters: 25,557,032 for resnet50 with 1000 classes, as torchvision's."""
    convolutions = convolutions_of_resnet(name)
    body = sum(given * out * kernel**2 + 2 * out for given, out, kernel, _ in convolutions)
    return body + features_of_resnet(name) * classes + classes


def convolutions_of_resnet(name):
    """Yield (channels in, channels out, width of the kernel, what the image's width is divided by) of each.

    v1.5: the 3x3 convolution of a block has its stride, not the first 1x1 as in He et al. 2015.
    """
    width, blocks = RESNETS[name]
    yield 3, width, 7, 2
    channels, shrunk = width, 4
    for stage, count in enumerate(blocks):
        inner = width << stage
        for block in range(count):
            before = shrunk
            shrunk *= 2 if stage and not block else 1
            yield channels, inner, 1, before
            yield inner, inner, 3, shrunk
            yield inner, inner * 4, 1, shrunk
            if not block:
                yield channels, inner * 4, 1, shrunk
            channels = inner * 4


def features_of_resnet(name):
    """Return the inputs of the last layer."""
    width, blocks = RESNETS[name]
    return (width << (len(blocks) - 1)) * 4


def flops_of_bert(model, seq, predictions):
    """Return the operations of a sample of BERT, forward and backward: 3 x the forward products.

    A product of [m, k] and [k, n] counts 2mkn. Per layer and token 8h^2 (query, key, value, output) and 4hi
    (the two of the feed-forward); attention 4 s^2 h; per prediction 2h^2 (transform) and 2hv (vocabulary);
    2h^2 for the pooler. Norms, biases, softmax, dropout and the optimizer are not counted.
    69.93e9 for base at 128 tokens with 20 predictions.
    """
    h, i, v = model["hidden"], model["intermediate"], model["vocabulary"]
    layer = seq * (8 * h * h + 4 * h * i) + 4 * seq * seq * h
    heads = predictions * (2 * h * h + 2 * h * v) + 2 * h * h + 4 * h
    return 3 * (model["layers"] * layer + heads)
