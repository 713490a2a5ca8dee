# Copyright: Contributors to the scalebook project
# SPDX-License-Identifier: Apache-2.0
"""Measure the speed of one device: matrix products, a vector times a number, layers of BERT, GPT-2 and T5.

    python3 microbench.py --out DIR          writes DIR/compute.json, prints a line per measurement

Requires only PyTorch. Shapes, numbers of operations and timer are those of mli/transformers-benchmarks
(micro_bench.ipynb at 3370b2b), so that the results can be compared with its table:

- matmul: a @ b of two n x n matrices, 2 n^3 operations; fp32 can use TF32, as in the containers of that table
- vector: a * 1.2 of n fp32 numbers, n operations and 8 n bytes
- for acceptance.yml, product: a @ b of shapes at which others measured the most, m x k and k x n, 2 m n k
  operations; fp8 (e4m3, one scale for a matrix) where the GPU has it, compute capability 8.9
- memory, for acceptance.yml: a copy of n fp32 numbers on the device, 8 n bytes read and written, a triad
  b = a + 3 c of 12 n bytes, and on a GPU a copy from and to pinned memory of the host, 4 n bytes
- launch, for acceptance.yml: an operation on one number, the time until the next can be launched
- layers: feed-forward 16 b s h^2, attention 4 b h s^2 + 8 b s h^2 (T5's decoder: twice); forward and backward
  together are three times the forward pass. Biases, softmax and norms are not counted.
- timer: the median of torch.utils.benchmark's blocked_autorange

A shape that does not fit in memory gets no result, only the reason.
"""

import argparse
import json
import os
import platform
import socket
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import torch
from torch.utils import benchmark

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from layers import BertLayer, Gpt2Layer, T5Layer  # noqa: E402

SCHEMA = 1
DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
TERA = 1e12

OUT_OF_MEMORY, LARGER, NO_FP8 = ("microbench.%s" % word for word in ("oom", "oom-larger", "no-fp8"))
"""Codes of why a size was not measured: the catalogues of scalebook/pages have the sentences."""
# (m, n, k) at which stas00/ml-engineering (compute/accelerator, as data/expected.yml) found the most.
PRODUCTS = [
    (8192, 8192, 8192),
    (2048, 2048, 13312),
    (1024, 10240, 5120),
    (2048, 5120, 6144),
    (1024, 15360, 4096),
    (1024, 9216, 14336),
    (1792, 16128, 3072),
    (1280, 4096, 12032),
    (15360, 4096, 3072),
]

# (name, variant, shape, operations, bytes, statement, variables of the statement); "" is not available.
Point = Tuple[str, str, Dict[str, int], int, Optional[int], str, Dict[str, Any]]

SIZES: Dict[str, Dict[str, Any]] = {
    "full": {
        "matmul": [128, 512, 2048, 8192],
        "vector": [1 << 16, 1 << 18, 1 << 20, 1 << 22],
        "hidden": 1024,
        "heads": 16,
        "bert": ([128, 512], [2, 4, 8, 16, 32, 64, 128]),
        "gpt2": ([512, 1024], [2, 4, 8, 16, 32, 64]),
        "t5": ([512], [2, 4, 8, 16, 32, 64, 128]),
        "parts": (64, 128),
    },
    # For CPUs, and to check that everything runs.
    "tiny": {
        "matmul": [64, 256],
        "vector": [1 << 12, 1 << 16],
        "hidden": 64,
        "heads": 2,
        "bert": ([32], [2, 4]),
        "gpt2": ([32], [2, 4]),
        "t5": ([32], [2, 4]),
        "parts": (4, 32),
    },
    # One large shape of each operation, for acceptance.yml.
    "large": {"matmul": [8192], "product": PRODUCTS, "memory": [1 << 28]},
    "moderate": {"matmul": [1024], "product": [(512, 1024, 512), (256, 256, 2048)], "memory": [1 << 24]},
}


def arguments(argv: List[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", required=True, help="directory for compute.json")
    parser.add_argument("--device", choices=["auto", "cpu", "gpu"], default="auto")
    parser.add_argument("--size", choices=["auto", *SIZES], default="auto", help="auto: full on a GPU")
    parser.add_argument(
        "--dtype", choices=["auto", *DTYPES], default="auto", help="dtype of the layers; auto: fp16 on a GPU"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="minimum time to measure a shape")
    parser.add_argument("--only", default="", help="names of benchmarks, separated by commas")
    args = parser.parse_args(argv)
    if args.device == "auto":
        args.device = "gpu" if torch.cuda.is_available() else "cpu"
    if args.size == "auto":
        args.size = "full" if args.device == "gpu" else "tiny"
    if args.dtype == "auto":
        args.dtype = "fp16" if args.device == "gpu" else "fp32"
    return args


def variants(device: torch.device, fp8: bool = False) -> List[str]:
    """Return the number formats of matrix products."""
    # fp16 on a CPU has no optimized kernel: one product takes minutes.
    names = ["fp32", "bf16"] if device.type == "cpu" else ["fp32", "fp16", "bf16"]
    return [*names, "fp8"] if fp8 else names


def product(name: str, variant: str, sizes: Tuple[int, int, int], device: torch.device) -> Point:
    """Return the point of a matrix product, of sizes m, n and k."""
    m, n, k = sizes
    shape = {"n": n} if m == n == k else {"m": m, "n": n, "k": k}
    if variant != "fp8":
        a = torch.randn(m, k, dtype=DTYPES[variant], device=device)
        b = torch.randn(k, n, dtype=DTYPES[variant], device=device)
        return name, variant, shape, 2 * m * n * k, None, "a @ b", {"a": a, "b": b}
    if device.type == "cpu" or torch.cuda.get_device_capability(device) < (8, 9):
        return name, variant, shape, 0, None, "", {}
    # The second matrix has to be column-major.
    names = {
        "a": torch.randn(m, k, device=device).to(torch.float8_e4m3fn),
        "b": torch.randn(n, k, device=device).to(torch.float8_e4m3fn).t(),
        "scale": torch.ones((), device=device),
    }
    call = (
        "torch._scaled_mm(a, b, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16, use_fast_accum=True)"
    )
    return name, variant, shape, 2 * m * n * k, None, call, names


def matmul(size: Dict[str, Any], device: torch.device, _: torch.dtype) -> Iterator[Point]:
    """Yield the points of the products of square matrices, in fp8 only where products of other shapes are."""
    for n in size["matmul"]:
        for variant in variants(device, "product" in size):
            yield product("matmul", variant, (n, n, n), device)


def products(size: Dict[str, Any], device: torch.device, _: torch.dtype) -> Iterator[Point]:
    """Yield the points of the products of matrices of all shapes."""
    for shape in size.get("product", ()):
        for variant in variants(device, fp8=True):
            yield product("product", variant, shape, device)


def vector(size: Dict[str, Any], device: torch.device, _: torch.dtype) -> Iterator[Point]:
    """Yield the points of the vectors."""
    for n in size["vector"]:
        a = torch.randn(n, device=device)
        yield "vector", "fp32", {"n": n}, n, 8 * n, "a * 1.2", {"a": a}


def memory(size: Dict[str, Any], device: torch.device, _: torch.dtype) -> Iterator[Point]:
    """Yield the points of the copies, of the sizes that have some."""
    for n in size.get("memory", ()):
        # Zeros that nobody wrote would all be one page of a processor's memory, and come from the cache.
        a = torch.ones(n, device=device)
        names = {"a": a, "b": torch.ones_like(a), "c": torch.ones_like(a)}
        yield "memory", "copy", {"n": n}, 0, 8 * n, "b.copy_(a)", names
        yield "memory", "triad", {"n": n}, 0, 12 * n, "torch.add(a, c, alpha=3.0, out=b)", names
        if device.type == "cuda":
            host = torch.zeros(n, pin_memory=True)
            names = {"a": a, "host": host}
            yield "memory", "to_device", {"n": n}, 0, 4 * n, "a.copy_(host, non_blocking=True)", names
            yield "memory", "from_device", {"n": n}, 0, 4 * n, "host.copy_(a, non_blocking=True)", names


def launch(size: Dict[str, Any], device: torch.device, _: torch.dtype) -> Iterator[Point]:
    """Yield the point of an operation that does next to nothing, of the sizes of acceptance.yml."""
    if "product" in size:
        yield "launch", "launch", {"n": 1}, 0, 0, "a.add_(1.0)", {"a": torch.zeros(1, device=device)}


def feed_forward(b: int, s: int, h: int) -> int:
    """Return the operations of the two dense layers, for b samples of s tokens with hidden size h."""
    return 16 * b * s * h * h


def attention(b: int, s: int, h: int) -> int:
    """Return the operations of an attention, with query, key, value and output."""
    return 4 * b * h * s * s + 8 * b * s * h * h


def sweep(
    name: str,
    layer: torch.nn.Module,
    hidden: int,
    shapes: Tuple[Sequence[int], Sequence[int]],
    device: torch.device,
    dtype: torch.dtype,
    cross: bool = False,
) -> Iterator[Point]:
    """Yield the points of a layer for all lengths and batches: forward alone, and forward and backward."""
    call = "layer(x, x)" if cross else "layer(x)"
    lengths, batches = shapes
    for s in lengths:
        for b in batches:
            forward = feed_forward(b, s, hidden) + (2 if cross else 1) * attention(b, s, hidden)
            shape = {"batch": b, "seq": s, "hidden": hidden}
            names = {"layer": layer, "x": torch.randn(b, s, hidden, dtype=dtype, device=device)}
            yield name, "forward", shape, forward, None, call, names
            yield name, "forward_backward", shape, 3 * forward, None, call + ".sum().backward()", names


def bert(size: Dict[str, Any], device: torch.device, dtype: torch.dtype) -> Iterator[Point]:
    """Yield the points of BERT's layer and, for one shape, of its parts."""
    hidden = size["hidden"]
    layer = BertLayer(hidden, size["heads"]).to(device, dtype)
    yield from sweep("bert", layer, hidden, size["bert"], device, dtype)
    b, s = size["parts"]
    names = {"layer": layer, "x": torch.randn(b, s, hidden, dtype=dtype, device=device)}
    shape = {"batch": b, "seq": s, "hidden": hidden}
    half, whole = feed_forward(b, s, hidden) // 2, feed_forward(b, s, hidden)
    yield "bert_part", "dense", shape, half, None, "layer.intermediate.dense(x)", names
    yield "bert_part", "dense_gelu", shape, half, None, "layer.intermediate(x)", names
    yield "bert_part", "feed_forward", shape, whole, None, "layer.output(layer.intermediate(x), x)", names
    yield "bert_part", "attention", shape, attention(b, s, hidden), None, "layer.attention(x)", names


def gpt2(size: Dict[str, Any], device: torch.device, dtype: torch.dtype) -> Iterator[Point]:
    """Return the points of GPT-2's layer."""
    layer = Gpt2Layer(size["hidden"], size["heads"]).to(device, dtype)
    return sweep("gpt2", layer, size["hidden"], size["gpt2"], device, dtype)


def t5_encoder(size: Dict[str, Any], device: torch.device, dtype: torch.dtype) -> Iterator[Point]:
    """Return the points of T5's encoder layer."""
    layer = T5Layer(size["hidden"], size["heads"]).to(device, dtype)
    return sweep("t5_encoder", layer, size["hidden"], size["t5"], device, dtype)


def t5_decoder(size: Dict[str, Any], device: torch.device, dtype: torch.dtype) -> Iterator[Point]:
    """Return the points of T5's decoder layer."""
    layer = T5Layer(size["hidden"], size["heads"], cross=True).to(device, dtype)
    return sweep("t5_decoder", layer, size["hidden"], size["t5"], device, dtype, cross=True)


BENCHMARKS: Dict[str, Callable[[Dict[str, Any], torch.device, torch.dtype], Iterator[Point]]] = {
    each.__name__: each
    for each in (matmul, products, vector, memory, launch, bert, gpt2, t5_encoder, t5_decoder)
}


def median(statement: str, names: Dict[str, Any], seconds: float) -> Optional[float]:
    """Return the median seconds of a statement, or None if it does not fit in memory."""
    timer = benchmark.Timer(statement, globals=names, num_threads=torch.get_num_threads())
    try:
        result: float = timer.blocked_autorange(min_run_time=seconds).median
        return result
    except torch.cuda.OutOfMemoryError:
        return None


def measure(args: argparse.Namespace, device: torch.device) -> Iterator[Dict[str, Any]]:
    """Yield every measurement as a dict, in the order of the names in --only or in BENCHMARKS."""
    chosen_names = args.only.split(",") if args.only else list(BENCHMARKS)
    unknown = [name for name in chosen_names if name not in BENCHMARKS]
    if unknown:
        raise SystemExit("--only %s: unknown; allowed are %s" % (",".join(unknown), ", ".join(BENCHMARKS)))
    for benchmark_name in chosen_names:
        points = BENCHMARKS[benchmark_name](SIZES[args.size], device, DTYPES[args.dtype])
        while True:
            try:
                point = next(points, None)
            except torch.cuda.OutOfMemoryError:
                # The input itself does not fit. The shapes that follow are larger.
                yield row(benchmark_name, "", {}, None, None, None, LARGER)
                break
            if point is None:
                break
            name, variant, shape, operations, moved, statement, names = point
            # All shapes of a format share the time of one.
            share = len(PRODUCTS) if name == "product" else 1
            seconds = median(statement, names, args.seconds / share) if statement else None
            if device.type == "cuda":
                torch.cuda.empty_cache()
            reason = OUT_OF_MEMORY if statement else NO_FP8
            yield row(name, variant, shape, seconds, operations, moved, None if seconds else reason)


def row(
    name: str,
    variant: str,
    shape: Dict[str, int],
    seconds: Optional[float],
    operations: Optional[int],
    moved: Optional[int],
    reason: Optional[str],
) -> Dict[str, Any]:
    """Return one measurement; without `seconds` it has a `reason` instead of rates."""
    return {
        "benchmark": name,
        "variant": variant,
        "shape": shape,
        "seconds": seconds,
        "tflops": operations / seconds / TERA if operations and seconds else None,
        "gbytes_per_second": moved / seconds / 1e9 if moved and seconds else None,
        "reason": {"code": reason, "values": {}} if reason else None,
    }


def line(each: Dict[str, Any]) -> str:
    """Return one measurement as text."""
    shape = ["%s=%s" % pair for pair in each["shape"].items()]
    figure = each["reason"]["code"] if each["reason"] else ""
    if each["seconds"]:
        figure = "%.3f us" % (each["seconds"] * 1e6)
        for rate, unit in ((each["tflops"], "TFLOP/s"), (each["gbytes_per_second"], "GB/s")):
            figure = "%.3f %s" % (rate, unit) if rate else figure
    words = ["MICROBENCH", each["benchmark"], each["variant"], *shape]
    return "%s: %s" % (" ".join(word for word in words if word), figure)


def about(args: argparse.Namespace, device: torch.device) -> Dict[str, Any]:
    """Return the device, software and settings of the measurement."""
    gpu = device.type == "cuda"
    return {
        "host": socket.gethostname(),
        "device": args.device,
        "name": torch.cuda.get_device_name(device) if gpu else processor(),
        "memory_mib": torch.cuda.get_device_properties(device).total_memory >> 20 if gpu else None,
        "torch": torch.__version__,
        "cuda": torch.version.cuda if gpu else None,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "size": args.size,
        "layer_dtype": args.dtype,
        "layer_attention": "eager",
        "tf32": gpu,
        "seconds": args.seconds,
    }


def processor() -> str:
    """Return the name of the CPU, or the type of the machine if the CPU has no name."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            names = [text.split(":", 1)[1].strip() for text in stream if text.startswith("model name")]
    except OSError:
        names = []
    return (names + [platform.machine()])[0]


def measured(args: argparse.Namespace) -> Dict[str, Any]:
    """Return the content of compute.json; print a line per measurement."""
    device = torch.device("cuda" if args.device == "gpu" else "cpu")
    torch.set_float32_matmul_precision("high")  # TF32, where the device has it
    torch.manual_seed(2020)
    result: Dict[str, Any] = dict(schema=SCHEMA, kind="compute", **about(args, device))
    print(
        "MICROBENCH device=%s name='%s' torch=%s" % (args.device, result["name"], result["torch"]), flush=True
    )
    result["measurements"] = []
    for each in measure(args, device):
        print(line(each), flush=True)
        result["measurements"].append(each)
    return result


def main(argv: List[str]) -> None:
    """Measure, then write compute.json in one piece."""
    args = arguments(argv)
    os.makedirs(args.out, exist_ok=True)
    result = measured(args)
    path = os.path.join(args.out, "compute.json")
    with open(path + ".new", "w", encoding="utf-8") as stream:
        json.dump(result, stream, indent=1)
    os.replace(path + ".new", path)
    print("MICROBENCH measurements=%d end=true" % len(result["measurements"]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
