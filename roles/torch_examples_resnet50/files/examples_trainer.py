# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Run main.py of pytorch/examples for a number of steps, and print what it does not.

One process per device, under torch's launcher: each does what main.py's own processes do. The lines for the
reader begin with TORCH_EXAMPLES_RESNET50. The file of main.py stays as it is; on CPUs its text gets one more
line (examples_flags.py). Python 3.7 or newer, torch 1.6 or newer.
"""

import argparse
import contextlib
import importlib.abc
import importlib.util
import os
import platform
import sys
import time
from typing import Any, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before torch is imported, which takes seconds. Also the processes that read images.
trainer_kit.die_with_parent()
os.register_at_fork(after_in_child=trainer_kit.die_with_parent)

import examples_flags  # noqa: E402
import image_folder  # noqa: E402
import probe  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402

say = trainer_kit.Say("TORCH_EXAMPLES_RESNET50")


class LastStep(BaseException):
    """The run has all its steps. main.py itself ends after the last image of the last epoch only."""


def arguments() -> argparse.Namespace:
    """Return the command line; every value that decides a measurement is named here."""
    parser = trainer_kit.parser(["resnet50"], ["fp32"])
    parser.add_argument("--warmup", type=int, required=True, help="steps that the summary leaves out")
    parser.add_argument("--source", required=True, help="directory of main.py")
    parser.add_argument("--data", required=True, help="directory of images, or nothing for main.py's own")
    parser.add_argument("--workers", type=int, required=True, help="that read images; 0: the cores there are")
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.set_defaults(compile=False, tf32=getattr(torch.backends.cudnn, "allow_tf32", False))
    return parser.parse_args()


class Run:
    """Takes the place of functions of main.py: prints what takes part and each step, ends with the last."""

    def __init__(self, trainer: Any, args: argparse.Namespace, workers: int) -> None:
        self.args, self.workers = args, workers
        self.first = os.environ["LOCAL_RANK"] == "0"
        self.model: Any = None
        self.stamps: List[float] = []
        self.original_train, self.original_display = trainer.train, trainer.ProgressMeter.display
        self.folder = trainer.datasets.ImageFolder
        trainer.train = self.train
        trainer.ProgressMeter.display = lambda meter, batch: self.end_step(meter, batch)
        trainer.datasets.ImageFolder = self.images
        # What main.py does after each epoch.
        trainer.validate = lambda *_: 0.0
        trainer.save_checkpoint = lambda *_: None

    def images(self, path: str, transform: Any) -> Any:
        """Return the images of a folder; none of `val`, which is not read and need not be there."""
        return self.folder(path, transform) if os.path.basename(path) == "train" else []

    def train(self, loader: Any, model: Any, *others: Any) -> None:
        """Train for an epoch."""
        if self.model is None:
            self.model = model
            self.begin(loader)
        self.original_train(loader, model, *others)

    def begin(self, loader: Any) -> None:
        """Print what takes part, as the group and the loader have it."""
        args, world = self.args, dist.get_world_size()
        try:
            examples_flags.check(args, len(loader.dataset), world)
        except examples_flags.FlagsError as error:
            sys.exit(str(error))
        weights = list(self.model.parameters())
        mine = torch.tensor([int(os.environ["TASK_INDEX"])], device=weights[0].device)
        tasks = [torch.zeros_like(mine) for _ in range(world)]
        dist.all_gather(tasks, mine)
        if not self.first:
            return
        args.batch = loader.batch_size
        dtype = {each: name for name, each in torch_run.DTYPES.items()}[weights[0].dtype]
        torch_run.announce(say, args, len({int(task) for task in tasks}), dtype)
        parameters = sum(each.numel() for each in weights)
        data = "files" if args.data else "dummy"
        say(model=args.model, parameters=parameters, data=data)
        say(images=len(loader.dataset), loader_workers=self.workers * int(os.environ["LOCAL_WORLD_SIZE"]))
        versions = {"torch": torch.__version__, "torchvision": probe.torchvision().__version__}
        say(**versions, python=platform.python_version(), threads=torch.get_num_threads())

    def end_step(self, meter: Any, batch: int) -> None:
        """Print the lines of a step; main.py has waited for its loss."""
        self.stamps.append(time.time())
        if self.first:
            self.original_display(meter, batch)
        loss = {each.name: each.val for each in meter.meters}["Loss"]
        number, rank = len(self.stamps), dist.get_rank()
        if rank == 0:
            say(
                step="%d/%d" % (number, self.args.steps),
                loss="%.4f" % loss,
                time="%.6f" % self.stamps[-1],
            )
        if not trainer_kit.is_number(loss):
            sys.exit("the loss of step %d on rank %d is %s" % (number, rank, loss))
        if number == self.args.steps:
            raise LastStep


class MainPy(importlib.abc.InspectLoader):
    """Imports main.py with its text for CPUs; nothing of it is kept for a run on GPUs."""

    def __init__(self, path: str) -> None:
        self.path = path

    def get_source(self, fullname: str) -> str:
        """Return the text."""
        with open(self.path, encoding="utf-8") as file:
            return examples_flags.for_cpus(file.read(), self.path)


def main_py(source: str, device: str) -> Any:
    """Return main.py as a module."""
    sys.path.insert(0, source)
    if device != "cpu":
        return importlib.import_module("main")
    spec: Any = importlib.util.spec_from_loader("main", MainPy(os.path.join(source, "main.py")))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Train, compare the weights of all ranks and print the results."""
    args = arguments()
    # As today's launcher sets them; that of torch 1.6 does not.
    os.environ.update(GROUP_RANK=os.environ["TASK_INDEX"], LOCAL_WORLD_SIZE=os.environ["GPUS_PER_NODE"])
    probe.torchvision()
    try:
        trainer = main_py(args.source, args.device)
    except examples_flags.FlagsError as error:
        sys.exit(str(error))
    workers = image_folder.processes(args.workers, int(os.environ["LOCAL_WORLD_SIZE"]))
    run = Run(trainer, args, workers)
    words = examples_flags.flags(args, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), workers)
    parsed = trainer.parser.parse_args(words)
    # As with --multiprocessing-distributed. Otherwise one process would train on all GPUs of its node.
    parsed.distributed = True
    gpu = int(os.environ["LOCAL_RANK"]) if args.device == "gpu" else None
    with contextlib.suppress(LastStep):
        # For one GPU, so that it does not divide the batch and the workers.
        trainer.main_worker(gpu, 1, parsed)
    device = next(run.model.parameters()).device
    same = torch_end.agree(run.model, device)
    torch_run.print_rate(say, "images", args.batch, device, run.stamps, args.warmup)
    torch_end.finish(say, same, len(run.stamps))


if __name__ == "__main__":
    main()
