# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stands in for PaddleCV's train.py: a small model, trained by Paddle 1.8 on the images of its list."""

import argparse
import itertools
import logging
import time

import numpy as np
import paddle.fluid as fluid
import reader

logging.basicConfig(level=logging.INFO)


def best_strategy_compiled(args, program, loss, exe):
    """Return the program as it is."""
    return program


def print_info(kind, metrics, elapse, pass_id, batch_id, print_step):
    """Print a step."""
    logging.info(
        "[Pass %d, train batch %d] \tloss %.5f, elapse %.4f sec", pass_id, batch_id, metrics[0], elapse
    )


def main():
    """Train as many steps as are asked for."""
    parser = argparse.ArgumentParser()
    for name in ("batch_size", "max_iter", "class_dim"):
        parser.add_argument("--" + name, type=int)
    parser.add_argument("--use_gpu", type=lambda text: text == "True")
    parser.add_argument("--image_shape", nargs="+", type=int)
    parser.add_argument("--lr", type=float)
    parser.add_argument("--data_dir")
    args, _ = parser.parse_known_args()
    image = fluid.data("image", [None] + args.image_shape)
    label = fluid.data("label", [None, 1], "int64")
    scores = fluid.layers.fc(fluid.layers.pool2d(image, 8, pool_stride=8), args.class_dim, act="softmax")
    loss = fluid.layers.mean(fluid.layers.cross_entropy(scores, label))
    fluid.optimizer.SGD(fluid.layers.piecewise_decay([10**6], [args.lr, args.lr])).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    program = best_strategy_compiled(args, fluid.default_main_program(), loss, exe)
    samples = reader.samples(args)
    for batch in range(args.max_iter):
        began = time.time()
        pairs = list(itertools.islice(samples, args.batch_size))
        feed = {
            "image": np.stack([pair[0] for pair in pairs]),
            "label": np.array([[pair[1]] for pair in pairs]),
        }
        metrics = exe.run(program, feed, [loss])
        print_info("batch", np.mean(metrics, axis=1), time.time() - began, 0, batch, 1)
