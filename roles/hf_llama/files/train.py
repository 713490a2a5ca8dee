# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Train a causal language model with Hugging Face's Trainer, all of its weights or LoRA adapters.

One process per device. The lines for the reader begin with HF_LLAMA.
"""

import argparse
import os
import sys
from typing import Any, Dict, List

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import trainer_kit  # noqa: E402

# Before transformers is imported, which takes seconds.
trainer_kit.die_with_parent()

import hf_trainer  # noqa: E402
import models  # noqa: E402
import numpy as np  # noqa: E402
import own_text  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch_end  # noqa: E402
import torch_run  # noqa: E402
import transformers  # noqa: E402
from torch.distributed.fsdp import FSDPModule  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402
from word_samples import Samples, invented  # noqa: E402

POOL = 1024  # different sequences
WRAPPERS = {"fsdp": FSDPModule, "ddp": DistributedDataParallel}

say = trainer_kit.Say("HF_LLAMA")


def arguments() -> argparse.Namespace:
    """Return the command line, which has every value of a measurement."""
    parser = hf_trainer.parser(())
    parser.add_argument("--warmup", type=int, required=True, help="steps that the summary leaves out")
    parser.add_argument("--seq-length", type=int, required=True)
    parser.add_argument("--parallel", choices=sorted(WRAPPERS), required=True)
    parser.add_argument("--data", default="", help="directory of the user's own tokens; none: invented ones")
    parser.add_argument("--lora-rank", type=int, required=True, help="0: all weights are trained")
    return parser.parse_args()


class Repeated(Samples):
    """Samples that are repeated until there are `count`: Trainer sees one epoch, without a pause in it."""

    def __init__(self, words: Any, count: int) -> None:
        super().__init__(words)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self.words[index % len(self.words)]


def batch(rows: List[torch.Tensor]) -> Dict[str, torch.Tensor]:
    """Return a batch; the model itself shifts the labels by one."""
    words = torch.stack(rows)
    return {"input_ids": words, "labels": words}


def wrapped(model: torch.nn.Module) -> str:
    """Return how the replicas of a model are wrapped, by the types of its modules."""
    kinds = [
        name for name, kind in WRAPPERS.items() if any(isinstance(each, kind) for each in model.modules())
    ]
    return "+".join(kinds) or "none"


class Watch(hf_trainer.Watch):
    """Prints what is trained, when Trainer has wrapped the model."""

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__(say)
        self.args = args
        self.own: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Print the lines about the model. Refuse one that is not wrapped as was asked for."""
        model, own = self.trainer.model_wrapped, self.args
        how = wrapped(model)
        if dist.get_world_size() > 1 and how != own.parallel:
            trainer_kit.refuse("hf_llama_parallel=%s: Trainer made %s" % (own.parallel, how))
        dtype = hf_trainer.precision(self.trainer)
        hf_trainer.announce(say, own, dtype, model, parallel=how)
        if os.environ["LOCAL_RANK"] == "0":
            held = sum(getattr(each, "to_local", lambda e=each: e)().numel() for each in model.parameters())
            weights = sorted({str(each.dtype).split(".")[1] for each in model.parameters()})
            say(
                model=own.model,
                parameters=sum(each.numel() for each in model.parameters()),
                trained_parameters=models.trained(model),
                held_parameters=held,
                lora_rank=models.rank(model),
                seq_length=own.seq_length,
                weights="/".join(weights),
                **({"data": self.own.own} if self.own else {}),
            )


def trainer_of(args: argparse.Namespace, watch: Watch) -> hf_trainer.Trainer:
    """Return Trainer with its model and samples."""
    sharding: Dict[str, Any] = {}
    if args.parallel == "fsdp":
        layers = {"transformer_layer_cls_to_wrap": ["LlamaDecoderLayer"]}
        sharding = {"fsdp": True, "fsdp_config": {"version": 2, "reshard_after_forward": True, **layers}}
    settings = hf_trainer.settings(args, max_steps=args.steps, logging_strategy="no", **sharding)
    transformers.set_seed(args.seed)
    size = trainer_kit.model_size()
    model = models.make(args.model, size, checkpointing=args.checkpointing)
    if args.lora_rank:
        model = models.adapt(model, args.lora_rank, torch_run.DTYPES[args.dtype])
    count = args.steps * args.batch * args.accumulation * int(os.environ.get("WORLD_SIZE", "1"))
    if args.data:
        watch.own = own_text.Tokens("hf_llama", args.data, size["vocabulary"])
        words = watch.own.rows(
            np.random.RandomState(args.seed).random_sample(min(count, POOL)), args.seq_length
        )
    else:
        words = invented(min(count, POOL), args.seq_length, size["vocabulary"], args.seed)
    watch.trainer = hf_trainer.Trainer(
        model=model,
        args=settings,
        data_collator=batch,
        train_dataset=Repeated(words, count),
        callbacks=[watch],
    )
    trainer: hf_trainer.Trainer = watch.trainer
    return trainer


def main() -> None:
    """Train, and print the results."""
    args = arguments()
    watch = Watch(args)
    trainer = trainer_of(args, watch)
    hf_trainer.check_group()
    trainer.train()
    device, world = trainer.args.device, dist.get_world_size()
    if dist.get_rank() == 0:
        rate, times = torch_run.rate(watch.stamps, args.warmup)
        sequences = rate * args.batch * args.accumulation * world
        peak = torch.cuda.max_memory_reserved() >> 20 if device.type == "cuda" else 0
        say(
            sequences_per_second="%.4f" % sequences,
            tokens_per_second="%.1f" % (sequences * args.seq_length),
            peak_memory_mib=peak,
            **times,
        )
    hf_trainer.check_steps(args, trainer.state)
    torch_end.finish(say, same(trainer.model, device), trainer.state.global_step)


def same(model: torch.nn.Module, device: torch.device) -> bool:
    """Return whether all ranks hold the same weights or, of a split model, each weight once together."""
    if wrapped(model) != "fsdp":
        return torch_end.agree(model, device)
    parameters: List[Any] = list(model.parameters())
    held = torch.tensor([sum(each.to_local().numel() for each in parameters)], device=device)
    dist.all_reduce(held)
    return bool(held.item() == sum(each.numel() for each in parameters))


if __name__ == "__main__":
    main()
