"""What the training loop costs: against the same arithmetic alone, and against a DataLoader with workers.

    python benchmarks/training.py                  # CPU: MLP 784-500-10 on 54,000 x 784, and digits
    python benchmarks/training.py --gpu            # ResNet-18, bf16, batches 512 and 256, and pretraining, on one GPU
    ... --json FILE                                # also as JSON lines

On the CPU three designs take the same steps (SCL-NL, fused AdamW, batch 256) in one process, in turn, and the best of
several epochs counts. `bare` has its batches ready and does forward, backward and step alone. `naysay` is the epoch of
`naysay.learning`. `loader` is the design of the field's public toolkit (libcll): a dataset that makes one instance at a
time (PIL image, then a float tensor), four workers, a collating DataLoader. CPU time includes the workers'. The goal:
at most 1/5 of the loader's CPU time and 1.3 of bare. On the GPU the figure is images (of pretraining: views) per second
of whole epochs after the first; seen on an H200: docs/PERFORMANCE.md.
"""

import argparse
import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from measuring import take_turns
from torch import Tensor

from naysay import labels, transition
from naysay.learning import PAPER, RECIPES, Config, Learner, Task, configure, recipes
from naysay.learning.rows import as_inputs
from naysay.learning.steps import Steps, build_optimizer, suited_to

WORKERS = 4


def problem(n: int, side: int) -> tuple[Tensor, Tensor]:
    """Random images (n, side, side) and one uniform label each: the cost does not depend on what they show."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (n, side, side), dtype=torch.uint8, generator=generator)
    named = transition.sample(torch.randint(0, 10, (n,), generator=generator), transition.uniform(10))
    return images, labels.from_indices(named, 10)


class OneAtATime(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
    """An instance is a PIL image, made a float tensor when asked for, as by torchvision's ToTensor, and its labels."""

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

    def learner() -> tuple[Learner, torch.optim.Optimizer]:
        made = recipes.build(Task(config, as_inputs(images), comp))
        return made, build_optimizer(made)

    def steps(batches: Iterator[tuple[Tensor, Tensor]] | Any, made: Any, optimizer: torch.optim.Optimizer) -> None:
        for x, z in batches:
            loss = made.loss.terms(made.model(x), z, made.prepared).sum(0) / len(x)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    bare, loaded, ours = learner(), learner(), Steps(learner()[0])
    ours.load(0)
    batches: Any = ours.order.split(config.batch_size)
    ready = [(ours.learner.inputs(rows, None), ours.learner.labels(rows, rows)) for rows in batches]
    dataset = OneAtATime(images, comp)

    def with_loop(epoch: int) -> None:
        with suited_to(ours.learner):
            ours.load(epoch)
            ours.run(epoch)
            ours.means()

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
    again = {design: partial(lambda run, epochs: run(next(epochs)), run, count()) for design, run in runs.items()}
    turns = take_turns(again, epochs)
    best = {design: {"cpu": turn.cpu, "wall": turn.wall} for design, turn in turns.items()}
    ratios = {
        "naysay/bare": best["naysay"]["cpu"] / best["bare"]["cpu"],
        "naysay/loader": best["naysay"]["cpu"] / best["loader"]["cpu"],
    }
    took = [f"{design} {least['cpu']:.3f} s CPU ({least['wall']:.3f} s wall)" for design, least in best.items()]
    print(f"{name}: {', '.join(took)}")
    to_bare, to_loader = ratios["naysay/bare"], ratios["naysay/loader"]
    print(f"{name}: naysay is {to_bare:.2f} of bare (goal 1.3) and {to_loader:.3f} of the loader (goal 0.2)")
    return {"what": name, **best, **ratios, "threads": torch.get_num_threads(), "torch": torch.__version__}


def measure_gpu(config: Config, epochs: int) -> dict[str, Any]:
    """Images (or views of them) per second on 50,000 x 32 x 32 x 3, after the first epoch; and where time goes."""
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (50_000, 32, 32, 3), dtype=torch.uint8, generator=generator).cuda()
    needs_labels = RECIPES[config.recipe].needs_labels
    comp = labels.from_indices(torch.randint(0, 10, (50_000,), generator=generator), 10) if needs_labels else None
    learner = recipes.build(Task(config, images, comp)).cuda()
    steps, seconds = Steps(learner), []
    with suited_to(learner):
        for epoch in range(epochs):
            torch.cuda.synchronize()
            started = time.perf_counter()
            steps.load(epoch)
            steps.run(epoch)
            steps.means()
            torch.cuda.synchronize()
            seconds.append(time.perf_counter() - started)
    seen = steps.used * config.options.get("views", {"simsiam": 2, "fastsiam": 4}.get(config.recipe, 1))
    speed = seen / min(seconds[1:])
    name = f"{config.recipe}, batch {config.batch_size}, compile={config.compile}"
    later = ", ".join(f"{s:.3f}" for s in seconds[1:])
    print(f"{name}: first epoch {seconds[0]:.1f} s, then {later} s: {speed:,.0f} a second", flush=True)
    return {
        "what": name,
        "per_second": round(speed),
        "epoch_seconds": [round(s, 4) for s in seconds],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
    }


def gpu_cases() -> list[Config]:
    """What is measured on a GPU: the paper's ResNet-18 at two batches, and pretraining by both recipes."""
    plain = [dataclasses.replace(PAPER, batch_size=batch) for batch in (512, 256)]
    return [*plain, configure("fastsiam"), configure("simsiam")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--compile", default="yes", choices=["yes", "no"])
    parser.add_argument("--only", default="", help="on the GPU: a recipe, or recipe/batch, such as plain/256")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, help="torch's threads on the CPU; all designs take the same number")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads or torch.get_num_threads())
    if given.gpu:
        cases = [dataclasses.replace(config, compile=given.compile) for config in gpu_cases()]
        wanted = [config for config in cases if f"{config.recipe}/{config.batch_size}".startswith(given.only)]
        for config in wanted:  # each is kept at once: a lent machine may go
            keep(given.json, [measure_gpu(config, given.epochs)])
    else:
        results = [
            measure_cpu("MLP 784-500-10, 54,000 rows", 54_000, 28, 500, given.epochs),
            measure_cpu("MLP 64-256-10, 1,400 rows", 1_400, 8, 256, 4 * given.epochs),
        ]
        keep(given.json, results)


def keep(path: Path | None, results: list[dict[str, Any]]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(result) + "\n" for result in results)


if __name__ == "__main__":
    main()
