"""Self-supervised candidates at equal arithmetic, small enough for a CPU: CIFAR-10 at 16 x 16 and a narrow ResNet.

    python benchmarks/candidates.py --data FOLDER [--only fastsiam,eight-views] [--seeds 0,1] [--minutes 25]

Every candidate gets the same number of views of 16 x 16 (of smaller ones more, by their area), the same network,
images, kind of schedule and seeds; batches are a quarter of those on the full set, since there are a tenth of its
images. kNN accuracy (needs the truth) is of 2,000 test images among the 5,000 trained on, 50 neighbours. One JSON line
a run as it comes, added to benchmarks/results/candidates.jsonl; runs that are there already are skipped, and none is
begun once `minutes` of CPU time are over. `pixels` and `untrained` say what no training gives. 120,000 views take a
core 130 s.
"""

import argparse
import datetime
import json
import os
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from naysay import datasets
from naysay.features import embed, oracle_knn_accuracy, pretrain
from naysay.learning import Config, configure
from naysay.models.resnet import Block
from naysay.seeds import lent

RESULTS = Path(__file__).parent / "results" / "candidates.jsonl"
SIZE, IMAGES, TESTED, NEIGHBOURS = 16, 5000, 2000, 50
WIDTH = 96


def candidate(
    recipe: str = "fastsiam", batch: int = 32, rate: float = 0.06, size: int = SIZE, **options: Any
) -> Config:
    """A small form of a recipe; four views unless said otherwise."""
    heads = {"projection": 256, "bottleneck": 64, "width": WIDTH, "view": {"size": size}}
    return configure(recipe, batch_size=batch, learning_rate=rate, **{"views": 4, **heads, **options})


def coded(views: int, batch: int, size: int, **view: Any) -> Config:
    """A small form of emp."""
    heads = {"hidden": 512, "projection": 128, "width": WIDTH, "view": {"size": size, "hue": 0.2, **view}}
    return configure("emp", batch_size=batch, learning_rate=0.06, views=views, **heads)


PATCH = {"scale": (0.25, 0.25), "ratio": (1.0, 1.0)}  # as published

CANDIDATES = {
    "simsiam": candidate("simsiam", 128, views=2),  # as published: 2 x 512 / 4
    "fastsiam": candidate(),  # as published: 4 x 128 / 4
    "average": candidate(target_momentum=0.99),  # targets from a moving average, as in BYOL
    "eight-views": candidate(views=8, batch=16),
    "small-views": candidate(size=12),
    "two-views": candidate(views=2, batch=64),  # fastsiam's rows a step, from twice the images
    "large-batch": candidate(batch=64),
    "twice-the-rate": candidate(rate=0.12),
    "emp": coded(8, 32, 12),
    "emp-whole-size": coded(4, 32, 16),
    "emp-patches": coded(20, 25, 8, **PATCH),
    "emp-patches-enlarged": coded(20, 25, 16, **PATCH),
}


def encoder(seed: int) -> nn.Module:
    """(n, 3, H, W) -> (n, WIDTH): ResNet-18 with one block in place of two, three stages, 24 channels at first."""
    with lent(seed, "candidates/encoder"):
        stem = [nn.Conv2d(3, 24, 3, 1, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU()]
        blocks = [Block(24, 24, 1), Block(24, 48, 2), Block(48, WIDTH, 2)]
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def halved(images: torch.Tensor) -> torch.Tensor:
    """uint8 images (n, 32, 32, 3) at half their size, by averages of 2 x 2 pixels."""
    return F.avg_pool2d(images.permute(0, 3, 1, 2).float(), 2).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def epochs_for(config: Config, views: int) -> int:
    """Epochs that come to `views` of SIZE x SIZE, or to the same number of pixels."""
    size, seen = config.options["view"]["size"], config.options["views"]
    return max(1, round(views * (SIZE / size) ** 2 / (seen * IMAGES)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of cifar10.npz; else $NAYSAY_DATA or the cache folder")
    parser.add_argument("--only", default=",".join(["pixels", "untrained", *CANDIDATES]))
    parser.add_argument("--seeds", default="0,1")
    parser.add_argument("--views", type=int, default=120_000, help="of 16 x 16, for each run")
    parser.add_argument("--minutes", type=float, default=25, help="of CPU time; no run is begun after them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    data = datasets.load("cifar10", args.data)
    images, tested = (halved(torch.from_numpy(x.copy())) for x in (data.x_train[:IMAGES], data.x_test[:TESTED]))
    truth = torch.from_numpy(data.y_train[:IMAGES].copy()), torch.from_numpy(data.y_test[:TESTED].copy())

    def knn(module: nn.Module) -> float:
        return oracle_knn_accuracy(embed(module, images), truth[0], embed(module, tested), truth[1], k=NEIGHBOURS)

    done = {_key(line) for line in map(json.loads, args.out.read_text().splitlines())} if args.out.exists() else set()
    for seed in map(int, args.seeds.split(",")):
        for name in args.only.split(","):
            if time.process_time() > 60 * args.minutes or (name == "pixels" and seed):
                continue
            views = args.views if name in CANDIDATES else 0
            line: dict[str, object] = {"candidate": name, "seed": seed, "views": views}
            if _key(line) in done:
                continue
            start = time.process_time()
            if name in CANDIDATES:
                config = replace(CANDIDATES[name], seed=seed, epochs=epochs_for(CANDIDATES[name], args.views))
                run = pretrain(images, config, encoder=encoder(seed))
                used = time.process_time() - start
                figures = {k: run.curve[-1][k] for k in ("loss", "spread")}
                line |= {"knn": knn(run.network), **figures, "config": config.as_dict()}
            else:
                line["knn"] = knn(nn.Flatten() if name == "pixels" else encoder(seed).eval())
                used = time.process_time() - start
            line |= {"cpu_seconds": round(used, 1), "load": round(os.getloadavg()[0], 1), "threads": args.threads}
            line |= {"hardware": f"{os.cpu_count()} cores, {platform.machine()}", "torch": torch.__version__}
            now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
            line |= {"date": now, "data_hash": data.fingerprint}
            args.out.parent.mkdir(parents=True, exist_ok=True)
            with args.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps({k: line[k] for k in ("candidate", "seed", "views", "knn", "cpu_seconds")}), flush=True)


def _key(line: dict[str, object]) -> tuple[object, ...]:
    return line["candidate"], line["seed"], line["views"]


if __name__ == "__main__":
    main()
