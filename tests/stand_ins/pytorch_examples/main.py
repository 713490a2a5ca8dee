# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Stands in for main.py of pytorch/examples: a small model, trained on images that torchvision reads."""

import argparse

import torch
import torch.distributed as dist
import torchvision.datasets as datasets
import torchvision.transforms as transforms

parser = argparse.ArgumentParser()
parser.add_argument("data")
for word in ("--arch", "--dist-backend", "--dist-url"):
    parser.add_argument(word)
for word in ("--batch-size", "--epochs", "--print-freq", "--rank", "--workers", "--world-size"):
    parser.add_argument(word, type=int)
parser.add_argument("--lr", type=float)


class Meter:
    """A value of a step."""

    def __init__(self, name):
        self.name, self.val = name, 0.0


class ProgressMeter:
    """Prints the line of a step."""

    def __init__(self, meters):
        self.meters = meters

    def display(self, batch):
        print(f"Epoch: [0][{batch}]", *(f"{meter.name} {meter.val:.4e}" for meter in self.meters), sep="\t")


def train(train_loader, model, optimizer, args):
    loss_of = Meter("Loss")
    progress = ProgressMeter([loss_of])
    for batch, (images, labels) in enumerate(train_loader):
        loss = torch.nn.functional.cross_entropy(model(images), labels)
        loss_of.val = loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if batch % args.print_freq == 0:
            progress.display(batch)


def validate(val_loader, model, args):
    raise SystemExit("there are no images to evaluate")


def save_checkpoint(state, is_best):
    raise SystemExit("a run keeps no model")


def main_worker(gpu, ngpus_per_node, args):
    if args.distributed:
        dist.init_process_group(args.dist_backend, args.dist_url, world_size=args.world_size, rank=args.rank)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 4),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 1000),
    )
    # fmt: off
    if not torch.cuda.is_available():
        print('using CPU, this will be slow')
    elif args.distributed:
        raise SystemExit("the stand-in is for CPUs")
    # fmt: on
    optimizer = torch.optim.SGD(model.parameters(), args.lr)
    form = transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()])
    images = datasets.ImageFolder(f"{args.data}/train", form)
    val_images = datasets.ImageFolder(f"{args.data}/val", form)
    sampler = torch.utils.data.distributed.DistributedSampler(images)
    loader = torch.utils.data.DataLoader(images, args.batch_size, sampler=sampler, num_workers=args.workers)
    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        train(loader, model, optimizer, args)
        accuracy = validate(val_images, model, args)
        save_checkpoint(model.state_dict(), accuracy > 0)
