# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train face recognition for a number of steps and print the rate: one process per device, under torchrun.

The lines for the reader begin with TORCH_INSIGHTFACE. Rank 0 prints a `step=` line for each step, with the
loss of the batch of all devices, and the time at which the device finished the step. The first process of
every node prints what the reader compares with the case. The centres of the classes are split over all
devices (centres.py), the backbone is the same on each.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds.
trainer_kit.die_with_parent()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_gradients  # noqa: E402
import torch_run  # noqa: E402
from backbone import Backbone  # noqa: E402
from centres import MARGINS, MOMENTUM, Centres  # noqa: E402
from faces import Faces  # noqa: E402

say = trainer_kit.Say("TORCH_INSIGHTFACE")

# As base.py and train_v2.py of recognition/arcface_torch of deepinsight/insightface have them.
DECAY = 5e-4
LARGEST_NORM = 5.0  # of the gradient of the backbone

# Keeps the gradients of fp16 above its smallest numbers.
LOSS_SCALES = {"fp16": 128.0}


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser([], torch_run.DTYPES)
    boolean = trainer_kit.boolean
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--image-size", type=int, default=112, help="width and height of a picture")
    parser.add_argument("--classes", type=int, default=85742)
    parser.add_argument("--sample-rate", type=float, default=1.0, help="share of the centres in a step")
    parser.add_argument("--margin", choices=sorted(MARGINS), default="arcface")
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


class Trainer:
    """The backbone, the centres, their optimizers, the pictures and one step of training."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        size = trainer_kit.model_size()
        layout = torch.channels_last  # as the tensor cores take them
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(args.seed)  # the same weights everywhere
        self.model = Backbone(size, args.image_size).to(device, memory_format=layout)
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        if args.compile:
            # As one graph, also with several devices, see torch_gradients.py.
            self.model.compile(dynamic=False)
        self.runner, self.gradients = torch_gradients.data_parallel(
            self.model, args.compile, static_graph=True
        )
        # DistributedDataParallel divides by the number of devices.
        self.factor = 1 if self.runner is self.model else dist.get_world_size()
        self.optimizer = torch.optim.SGD(
            self.trained, args.learning_rate, MOMENTUM, weight_decay=DECAY, fused=True
        )
        self.scale = LOSS_SCALES.get(args.dtype, 1.0)
        self.centres = Centres(
            args.classes, size["embedding"], args.sample_rate, args.margin, args.batch, args.seed, device
        )
        form = {"device": device, "dtype": torch_run.DTYPES[args.dtype], "memory_format": layout}
        self.faces = Faces(args.batch, dist.get_rank(), args.classes, args.image_size, args.seed, **form)

    def step(self, number: int) -> torch.Tensor:
        """Take one step; return the loss of the batch of all devices, a tensor on the device."""
        args = self.args
        pictures, labels = next(self.faces)
        self.centres.choose(labels)
        with torch_run.precision(self.device, args.dtype):
            loss = self.centres.loss(self.runner(pictures), self.factor)
        (loss * self.scale).backward()
        if self.gradients:
            self.gradients.sum()
        if self.scale != 1:
            torch._foreach_div_([p.grad for p in self.trained], self.scale)
        torch.nn.utils.clip_grad_norm_(self.trained, LARGEST_NORM)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.centres.update(self.scale, args.learning_rate, DECAY)
        return loss.detach()


def print_setup(args: argparse.Namespace, device: torch.device, nodes: int) -> None:
    """Print what takes part and what it does."""
    dtype = torch_run.product_dtype(device, torch_run.precision(device, args.dtype))
    options = {"classes": args.classes, "sample_rate": args.sample_rate, "margin": args.margin}
    torch_run.announce(say, args, nodes, dtype, **options)
    for line in torch_run.software(device):
        say(**line)


def print_model(trainer: Trainer, first: bool) -> None:
    """Print the size of the model, and how many centres this device and all of them have and compare with."""
    centres = trainer.centres
    held = torch.tensor([centres.own, 1, centres.count], device=trainer.device)
    dist.all_reduce(held)
    classes, devices, compared = held.tolist()
    backbone = sum(p.numel() for p in trainer.model.parameters())
    if first:
        say(
            model=trainer.args.model,
            image_size=trainer.args.image_size,
            parameters=backbone + classes * centres.centres.shape[1],
            split_classes=classes,
            class_devices=devices,
            own_classes=centres.own,
            compared=compared,
            data="synthetic",
        )


def check_pictures(lost_pictures: torch.Tensor) -> None:
    """Exit where pictures were compared without their own class; `lost_pictures` are those of this device."""
    dist.all_reduce(lost_pictures)
    if lost_pictures:
        sys.exit(
            "%d pictures were not compared with their own classes: raise torch_insightface_sample_rate"
            % lost_pictures
        )


def main() -> None:
    """Form the process group, train, and print the results."""
    args = arguments()
    device = torch_run.join(args.device, args.tf32)
    first, nodes = os.environ["LOCAL_RANK"] == "0", torch_run.nodes()
    if first:
        print_setup(args, device, nodes)
    trainer = Trainer(args, device)
    print_model(trainer, first)
    stamps = torch_run.take_steps(say, args.steps, args.warmup, device, trainer.step)
    same = torch_end.agree(trainer.model, device)
    torch_run.print_rate(say, "images", args.batch, device, stamps, args.warmup)
    check_pictures(trainer.centres.lost)
    torch_end.print_sums(say, {"backbone": trainer.model}, {"centres": trainer.centres.sum()})
    torch_end.finish(say, same, len(stamps))


if __name__ == "__main__":
    main()
