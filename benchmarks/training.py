"""What the training loop costs: against the same arithmetic alone, and against a DataLoader with workers.

    python benchmarks/training.py                  # CPU: MLP 784-500-10 on 54,000 x 784, and digits
    python benchmarks/training.py --gpu            # ResNet-18, batch 512, bf16, on one GPU
    ... --json FILE                                # also as JSON lines

On the CPU three designs take the same steps (SCL-NL, fused AdamW, batch 256) in one process, in turn, and the best of
several epochs counts. `bare` has its batches ready and does forward, backward and step alone. `naysay` is the epoch of
`naysay.training`. `loader` is the design of the field's public toolkit (libcll): a dataset that makes one instance at a
time (PIL image, then a float tensor), four workers, a collating DataLoader. CPU time includes the workers'. The goal:
at most 1/5 of the loader's CPU time and 1.3 of bare. On the GPU the figure is images per second of whole epochs after
the first; the goal is 50,000 on an H200.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from measuring import take_turns
from torch import Tensor

from naysay import labels, losses, models, transition
from naysay.training.config import PAPER, Config
from naysay.training.data import TrainingData
from naysay.training.learner import Learner, suitable_threads
from naysay.training.loop import one_epoch
from naysay.training.optim import build_optimizer
from naysay.training.run import Run, one_device

WORKERS = 4


def problem(n: int, side: int) -> tuple[Tensor, Tensor]:
    """Random images (n, side, side) and one uniform label each: the cost does not depend on what they show."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (n, side, side), dtype=torch.uint8, generator=generator)
    named = transition.sample(torch.randint(0, 10, (n,), generator=generator), transition.uniform(10))
    return images, labels.from_indices(named, 10)


class OneAtATime(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """An instance is a PIL image that becomes a float tensor when it is asked for, as torchvision's ToTensor makes it,
    and its labels.
    """

    def __init__(self, images: Tensor, comp: Tensor) -> None:
        self.images, self.named = images, comp.argmax(1, keepdim=True)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, at: int) -> tuple[Tensor, Tensor]:
        import numpy as np
        from PIL import Image

        picture = Image.fromarray(self.images[at].numpy())
        pixels = torch.from_numpy(np.array(picture, np.uint8, copy=True)).view(picture.size[1], picture.size[0], 1)
        return pixels.permute(2, 0, 1).contiguous().to(torch.float32).div(255), self.named[at]


def collate(instances: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """A batch with each image repeated for each of its labels."""
    images = [image.unsqueeze(0).repeat(len(named), 1, 1, 1) for image, named in instances]
    return torch.cat(images), torch.stack([named for _, named in instances])


def designs(images: Tensor, comp: Tensor, config: Config) -> dict[str, Callable[[int], None]]:
    """Each design as a function that trains one epoch; all start from the same weights."""
    shape = (1, *images.shape[1:])

    def learner() -> tuple[Learner, torch.optim.Optimizer]:
        model = models.build(config.model, shape, 10, config.seed, **config.model_options)
        made = Learner(model, losses.get(config.loss), None, 10)
        return made, build_optimizer(config, made.parameters(), torch.device("cpu"))

    def steps(batches: Iterator[tuple[Tensor, Tensor]] | Any, made: Learner, optimizer: torch.optim.Optimizer) -> None:
        for x, z in batches:
            (made(x, z) / len(x)).backward()
            optimizer.step()
            optimizer.zero_grad()

    data = TrainingData.load(images, comp, config, torch.device("cpu"))
    ready = [(data.inputs(rows, None), data.labels(rows, rows)) for rows in data.batches(0)]
    bare, loaded, ours = learner(), learner(), learner()
    fabric = one_device(config)
    wrapped, optimizer = fabric.setup(*ours)
    dataset = OneAtATime(images, comp)

    def with_loop(epoch: int) -> None:
        with suitable_threads(ours[0], config.batch_size):
            one_epoch(fabric, wrapped, optimizer, data, epoch)

    def with_loader(epoch: int) -> None:
        loader = torch.utils.data.DataLoader(
            dataset, config.batch_size, shuffle=True, num_workers=WORKERS, collate_fn=collate
        )
        steps(((x, torch.nn.functional.one_hot(named[:, 0], 10).float()) for x, named in loader), *loaded)

    return {"bare": lambda epoch: steps(ready, *bare), "naysay": with_loop, "loader": with_loader}


def measure_cpu(name: str, n: int, side: int, hidden: int, epochs: int) -> dict[str, Any]:
    """CPU and wall seconds of an epoch of each design, the least of `epochs` interleaved ones."""
    config = Config(batch_size=256, epochs=10**6, schedule="constant", model_options={"hidden": hidden})
    runs = designs(*problem(n, side), config)
    turns = take_turns(
        {design: partial(lambda run, epochs: run(next(epochs)), run, count()) for design, run in runs.items()}, epochs
    )
    best = {design: {"cpu": turn.cpu, "wall": turn.wall} for design, turn in turns.items()}
    ratios = {
        "naysay/bare": best["naysay"]["cpu"] / best["bare"]["cpu"],
        "naysay/loader": best["naysay"]["cpu"] / best["loader"]["cpu"],
    }
    print(
        f"{name}: "
        + ", ".join(f"{design} {took['cpu']:.3f} s CPU ({took['wall']:.3f} s wall)" for design, took in best.items())
    )
    print(
        f"{name}: naysay is {ratios['naysay/bare']:.2f} of bare (goal 1.3) and {ratios['naysay/loader']:.3f} of the "
        "loader (goal 0.2)"
    )
    return {"what": name, **best, **ratios, "threads": torch.get_num_threads(), "torch": torch.__version__}


def measure_gpu(epochs: int, compile_: str) -> dict[str, Any]:
    """Images per second of ResNet-18 on 50,000 x 32 x 32 x 3, crops and flips included, after the first epoch; and
    where time goes.
    """
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (50_000, 32, 32, 3), dtype=torch.uint8, generator=generator)
    comp = labels.from_indices(torch.randint(0, 10, (50_000,), generator=generator), 10)
    config = dataclasses.replace(PAPER, compile=compile_)
    run = Run.set_up(
        config, images, comp, T=None, held_out=None, folder=None, resume=False, every=1, model=None, fabric=None
    )
    seconds = []
    for epoch in range(epochs):
        torch.cuda.synchronize()
        started = time.perf_counter()
        one_epoch(run.fabric, run.learner, run.optimizer, run.data, epoch, whole=run.compiled)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    used = sum(len(rows) for rows in run.data.batches(0, whole=run.compiled))
    feeding = time_feeding(run.data)
    speed = used / min(seconds[1:])
    later = ", ".join(f"{s:.3f}" for s in seconds[1:])
    print(f"compile={compile_}: first epoch {seconds[0]:.1f} s, then {later} s: {speed:,.0f} images/s (goal 50,000)")
    print(f"taking, cropping, flipping and normalising all batches alone: {feeding:.3f} s an epoch")
    return {
        "what": "resnet18-512-bf16",
        "compile": compile_,
        "images_per_second": speed,
        "epoch_seconds": seconds,
        "feeding_seconds": feeding,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }


def time_feeding(data: TrainingData) -> float:
    """Seconds that an epoch's batches take without any training."""
    views = data.views(0)
    for attempt in range(2):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for rows in data.batches(attempt):
            data.inputs(rows, views)
        torch.cuda.synchronize()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--compile", default="yes", choices=["yes", "no"])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, help="torch's threads on the CPU; all designs take the same number")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads or torch.get_num_threads())
    if given.gpu:
        results = [measure_gpu(given.epochs, given.compile)]
    else:
        results = [
            measure_cpu("MLP 784-500-10, 54,000 rows", 54_000, 28, 500, given.epochs),
            measure_cpu("MLP 64-256-10, 1,400 rows", 1_400, 8, 256, 4 * given.epochs),
        ]
    if given.json:
        with given.json.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)


if __name__ == "__main__":
    main()
