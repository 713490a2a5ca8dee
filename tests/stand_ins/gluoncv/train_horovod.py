# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stands in for gluon-cv's train_horovod.py: a small model, trained by MXNet and Horovod on its files."""

import argparse
import logging

import horovod.mxnet as hvd
import mxnet as mx
from gluoncv.model_zoo import get_model

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int)
parser.add_argument("--input-size", type=int)
parser.add_argument("--lr", type=float)
parser.add_argument("--num-epochs", type=int)
parser.add_argument("--rec-train")
args, _ = parser.parse_known_args()

hvd.init()
logging.info("%s", args)
net = get_model("cifar_resnet20_v1", classes=1000)


def train_gluon():
    """Train, as long as it is let."""
    size = args.input_size
    images = mx.gluon.data.vision.ImageRecordDataset(args.rec_train).transform_first(
        mx.gluon.data.vision.transforms.Compose(
            [mx.gluon.data.vision.transforms.Resize(size), mx.gluon.data.vision.transforms.ToTensor()]
        )
    )
    share = len(images) // hvd.size()
    indices = range(share * hvd.rank(), share * (hvd.rank() + 1))
    batches = mx.gluon.data.DataLoader(images, args.batch_size, sampler=list(indices), last_batch="discard")
    net.initialize()
    parameters = net.collect_params()
    hvd.broadcast_parameters(parameters, root_rank=0)
    trainer = hvd.DistributedTrainer(
        parameters, mx.optimizer.create("sgd", learning_rate=args.lr * hvd.size())
    )
    loss_of = mx.gluon.loss.SoftmaxCrossEntropyLoss()
    for _ in range(args.num_epochs):
        for data, label in batches:
            with mx.autograd.record():
                loss = loss_of(net(data), label)
            loss.backward()
            trainer.step(args.batch_size)
            loss.wait_to_read()
