"""How many views a second the pretraining step takes, as plain code, compiled, and captured as a CUDA graph.

    python benchmarks/pretraining.py                                 on a GPU: 2 x 512 and 4 x 128 views, three ways
    python benchmarks/pretraining.py --device cpu --cases 2x4 --steps 2 --ways plain

The images are random, which costs the same as real ones. One line of JSON a measurement: views a second, the time of a
step, the time to build it (compiling, capturing), the arithmetic rate, and the losses of the first steps, which must
agree between the ways to rounding. ResNet-18 takes 1.11 GFLOP a view forward at 32 x 32, and three times that with
backward.
"""

import argparse
import dataclasses
import json
import time

import torch

from naysay.features.pretrain import _build, _fast_convolutions
from naysay.features.recipes import METHODS, Config
from naysay.features.step import Step

GFLOP = 3 * 1.11  # of a view at 32 x 32, forward and backward


def measure(config: Config, images: torch.Tensor, way: str, steps: int) -> dict[str, object]:
    """One row: the speed of the step under `config`, built the given way."""
    on_gpu, begun = images.is_cuda, time.monotonic()
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    with _fast_convolutions(on_gpu):
        model = _build(config, None, 512, 3).to(images.device).to(memory_format=torch.channels_last).train()
        step = Step(images, model, config, compiled=way != "plain")
        step.load(0)
        if way == "captured":
            step.capture()
        losses, total = [], 0.0
        for _ in range(3):
            step()
            losses.append(step.totals[0].item() - total)
            total += losses[-1]
        built = time.monotonic() - begun
        step.load(0)
        wait()
        begun = time.monotonic()
        for _ in range(steps):
            step()
        wait()
    each = (time.monotonic() - begun) / steps
    rate = config.views * config.batch / each
    return {
        "views": config.views,
        "batch": config.batch,
        "target_momentum": config.target_momentum,
        "way": way,
        "views_per_second": round(rate),
        "step_ms": round(1e3 * each, 3),
        "built_s": round(built, 1),
        "tflops": round(rate * GFLOP / 1e3, 2),
        "losses": [round(loss, 5) for loss in losses],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cases", default="2x512,4x128", help="views x batch, comma separated")
    parser.add_argument("--ways", default="plain,compiled,captured")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--target-momentum", type=float, default=0.0)
    args = parser.parse_args()
    for case in args.cases.split(","):
        views, batch = map(int, case.split("x"))
        config = dataclasses.replace(
            METHODS["fastsiam"], views=views, batch=batch, target_momentum=args.target_momentum
        )
        images = torch.randint(0, 256, (max(args.steps, 3) * batch, 32, 32, 3), dtype=torch.uint8).to(args.device)
        for way in args.ways.split(","):
            print(json.dumps(measure(config, images, way, args.steps)), flush=True)
            torch.compiler.reset()


if __name__ == "__main__":
    main()
