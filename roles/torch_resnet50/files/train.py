# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train the ResNet-50 of Transformers and print the rate: one process per device, under torchrun.

The lines for the reader begin with TORCH_RESNET50. Rank 0 prints a `step=` line for each step, with the time
at which the device finished the step. The first process of every node prints what the reader compares with
the case: world size, backend, dtype.
"""

import argparse
import os
import sys
from typing import Any, Tuple

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch and transformers are imported, which takes seconds.
trainer_kit.die_with_parent()

import hf_models  # noqa: E402
import image_files  # noqa: E402
import image_folder  # noqa: E402
import image_loader  # noqa: E402
import images  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_gradients  # noqa: E402
import torch_run  # noqa: E402
import transformers  # noqa: E402
from transformers.models.resnet.modeling_resnet import ResNetBottleNeckLayer  # noqa: E402

say = trainer_kit.Say("TORCH_RESNET50")

MOMENTUM = 0.9
DECAY = 5e-5  # of weights, not of norms and biases (He et al. 2018, arXiv:1812.01187)
SMOOTHING = 0.1
RATE_BATCH = 256  # images that the learning rate is for (Goyal et al. 2017, arXiv:1706.02677)
MODELS = {"tiny": (16, [1, 1, 1, 1]), "resnet50": (64, [3, 4, 6, 3])}
"""Name: (channels of the first layer, bottleneck blocks of each stage)."""


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(MODELS, torch_run.DTYPES)
    boolean = trainer_kit.boolean
    parser.add_argument("--warmup", type=int, default=20, help="steps that the summary leaves out")
    parser.add_argument("--data", default="", help="directory of images, see image_files.py")
    parser.add_argument("--loader", choices=["none", *image_loader.MODULES], default="pillow")
    parser.add_argument("--workers", type=int, default=0, help="that prepare images; 0: the cores there are")
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--classes", type=int, default=1000)
    parser.add_argument("--compile", type=boolean, default=False)
    parser.add_argument("--compile-mode", default="default")
    parser.add_argument("--channels-last", type=boolean, default=True)
    parser.add_argument("--tf32", type=boolean, default=True, help="for fp32 on GPUs")
    parser.add_argument("--learning-rate", type=float, default=0.1, help="for %d images" % RATE_BATCH)
    parser.add_argument("--rate-warmup", type=int, default=100, help="steps until the full learning rate")
    parser.add_argument("--bucket-mb", type=int, default=25)
    parser.add_argument("--seed", type=int, default=2020)
    return parser.parse_args()


def batches(args: argparse.Namespace, device: torch.device, place: Tuple[int, int], **form: Any) -> Any:
    """Return the endless batches of a rank; `place` is (rank, number of ranks)."""
    rank, world = place
    if not args.data:
        return images.Synthetic(args.batch, args.image_size, args.classes, args.seed + rank, device, **form)
    if image_files.are_arrays(args.data):
        arrays = image_files.arrays(args.data, args.image_size, args.classes)
        return images.Arrays(arrays, args.batch, place, args.seed, device, **form)
    folder = image_folder.Folder(image_files.WORKLOAD, args.data, args.classes)
    folder.require(args.batch * args.accumulation * world)
    beside = int(os.environ["LOCAL_WORLD_SIZE"])
    workers = image_folder.processes(args.workers, beside)
    if os.environ["LOCAL_RANK"] == "0":
        say(
            images=len(folder),
            image_classes=len(folder.classes),
            loader_workers=workers * beside,
            loader_version=image_loader.version(args.loader),
        )
    turns = image_folder.Turns(len(folder), args.batch, place, args.seed)
    if args.loader == "dali":
        # Imported here: most environments do not have it.
        import dali_images

        return dali_images.Files(folder, turns, args.image_size, args.seed + rank, workers, device, **form)
    pictures = image_folder.Pictures(folder, args.image_size, args.seed)
    return images.Files(pictures, turns, workers, device, **form)


def make_model(name: str, classes: int) -> torch.nn.Module:
    """Return a new model: v1.5, with the stride of a block in its 3x3 convolution."""
    width, blocks = MODELS[name]
    config = transformers.ResNetConfig(
        embedding_size=width,
        hidden_sizes=[4 * width << stage for stage in range(len(blocks))],
        depths=blocks,
        num_labels=classes,
    )
    model = transformers.ResNetForImageClassification(config)
    for part in model.modules():
        if isinstance(part, ResNetBottleNeckLayer):
            # A block begins as its shortcut (Goyal et al. 2017, section 5.1).
            torch.nn.init.zeros_(part.layer[-1].normalization.weight)
    return model


class Trainer:
    """The model, its optimizer, its images and one step of training."""

    def __init__(self, args: argparse.Namespace, device: torch.device) -> None:
        self.args, self.device = args, device
        self.world, rank = dist.get_world_size(), dist.get_rank()
        self.dtype = torch_run.DTYPES[args.dtype]
        layout = torch.channels_last if args.channels_last else torch.contiguous_format
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(args.seed)  # the same weights everywhere
        self.model = make_model(args.model, args.classes).to(device, memory_format=layout)
        if args.compile:
            # As one graph, also with several devices: summing gradients after the backward pass costs less
            # than what is lost where the graph is split to sum some of them earlier.
            self.model.compile(mode=args.compile_mode, dynamic=False)
        wide = [p for p in self.model.parameters() if p.dim() > 1]
        flat = [p for p in self.model.parameters() if p.dim() <= 1]
        self.rate = args.learning_rate * args.batch * args.accumulation * self.world / RATE_BATCH
        self.optimizer = torch.optim.SGD(
            [{"params": wide, "weight_decay": DECAY}, {"params": flat, "weight_decay": 0.0}],
            self.rate,
            MOMENTUM,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(device.type, enabled=args.dtype == "fp16")
        self.runner, self.gradients = torch_gradients.data_parallel(
            self.model, args.compile, static_graph=args.accumulation == 1, bucket_cap_mb=args.bucket_mb
        )
        self.images = batches(args, device, (rank, self.world), dtype=self.dtype, memory_format=layout)

    def step(self, number: int) -> torch.Tensor:
        """Take one step of the optimizer; return the loss of its last micro-step, a tensor on the device."""
        args = self.args
        shares = args.accumulation * (self.world if self.gradients else 1)
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate * min(1.0, number / args.rate_warmup)
        for micro in range(args.accumulation):
            pictures, labels = next(self.images)
            if self.runner is not self.model:
                self.runner.require_backward_grad_sync = micro + 1 == args.accumulation
            with torch_run.precision(self.device, args.dtype):
                logits = self.runner(pictures).logits
            loss = torch.nn.functional.cross_entropy(logits.float(), labels, label_smoothing=SMOOTHING)
            self.scaler.scale(loss / shares).backward()
        if self.gradients:
            self.gradients.sum()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()


def print_setup(args: argparse.Namespace, device: torch.device, nodes: int, model: torch.nn.Module) -> None:
    """Print what takes part and what it does."""
    dtype = torch_run.product_dtype(device, torch_run.precision(device, args.dtype))
    data = {"data": "files", "loader": args.loader}
    if not args.data or image_files.are_arrays(args.data):
        data = {"data": "arrays" if args.data else "synthetic"}
    torch_run.announce(say, args, nodes, dtype, channels_last=str(args.channels_last).lower())
    say(
        model=args.model,
        parameters=hf_models.count(model),
        image_size=args.image_size,
        classes=args.classes,
        **data,
    )
    for line in torch_run.software(device):
        say(**line)


def main() -> None:
    """Form the process group, train, and print the results."""
    args = arguments()
    device = torch_run.join(args.device, args.tf32)
    first, nodes = os.environ["LOCAL_RANK"] == "0", torch_run.nodes()
    try:
        trainer = Trainer(args, device)
        if first:
            print_setup(args, device, nodes, trainer.model)
        stamps = torch_run.take_steps(say, args.steps, args.warmup, device, trainer.step)
    except image_folder.ImageError as error:
        sys.exit(str(error))
    same = torch_end.agree(trainer.model, device)
    torch_run.print_rate(say, "images", args.batch * args.accumulation, device, stamps, args.warmup)
    torch_end.finish(say, same, len(stamps))


if __name__ == "__main__":
    main()
