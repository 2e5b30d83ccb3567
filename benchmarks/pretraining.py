"""Self-supervised recipes at equal seconds on one GPU: CIFAR-10, ResNet-18, each with a cosine schedule that fits.

    python benchmarks/pretraining.py --data FOLDER [--only emp,fastsiam] [--seconds 35] [--out FILE]

Compiling, capturing and timing a step come before the seconds. kNN accuracy (needs the truth) is of the test images,
200 neighbours. One JSON line a run. The figures in benchmarks/results/pretraining.jsonl come from an earlier form of
this program, which compiled all candidates side by side and then trained them one after another.
"""

import argparse
import datetime
import json
from pathlib import Path

import torch

from naysay import datasets
from naysay.features import embed, oracle_knn_accuracy
from naysay.learning import Run, Task, configure, recipes

PATCHES = {"views": 20, "batch_size": 100, "view": {"size": 16, "scale": (0.25, 0.25), "ratio": (1.0, 1.0), "hue": 0.2}}
CANDIDATES = {
    "fastsiam": configure("fastsiam"),
    "fastsiam-32": configure("fastsiam", view={"size": 32}),
    "fastsiam-fast": configure("fastsiam", learning_rate=0.2),
    "fastsiam-neighbors": configure("fastsiam", neighbors=8),
    "emp-patches": configure("emp", learning_rate=0.06, **PATCHES),
    "emp-slow": configure("emp", learning_rate=0.06),
    "emp": configure("emp"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of cifar10.npz; else $NAYSAY_DATA or the cache folder")
    parser.add_argument("--only", default=",".join(CANDIDATES))
    parser.add_argument("--seconds", type=float, default=35)
    parser.add_argument("--images", type=int, default=50_000, help="fewer, for a look on a CPU")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True  # also for the steps that are timed and captured before the run
    data = datasets.load("cifar10", args.data)
    x, y, tested, truth = (
        torch.from_numpy(array[: args.images].copy()).to(device)
        for array in (data.x_train, data.y_train, data.x_test, data.y_test)
    )
    for name in args.only.split(","):
        learner = recipes.build(Task(CANDIDATES[name], x))
        run = Run(learner)
        each = run.steps.seconds_per_step()
        run.set_epochs(max(1, round(args.seconds / (each * run.steps.count))))
        run.go()
        encoder = learner.product()
        knn = oracle_knn_accuracy(embed(encoder, x), y, embed(encoder, tested), truth, k=min(200, len(x)))
        line = {"candidate": name, "knn": knn, "seconds": round(sum(f["seconds"] for f in run.history), 1)}
        line |= {"views_per_second": round(learner.config.options["views"] * run.steps.size / each)}
        line |= {"config": learner.config.as_dict(), "device": device, "torch": torch.__version__}
        line |= {"date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")}
        print(json.dumps(line), flush=True)
        if args.out is not None:
            with args.out.open("a") as file:
                file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
