"""How often `naysay fit` keeps the better scheme, on digits with one uniform label each: a line for each draw.

    python benchmarks/choosing.py --draws 8 --noise 0 0.5 0.6 --out benchmarks/results/choosing.jsonl

Neighbours are looked up among pixels with so much noise (in standard deviations of the pixels) that sharing helps less
and less, and in the end does harm. `kept` is what a run keeps now; `highest` is what the rule before would have kept,
the highest estimated accuracy on a single held-out tenth; `on_all` is the test accuracy of each scheme trained on all
labels, `judged` of its models that each saw 80 % of them, in the mean. About 15 trainings of 30 epochs for each draw.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from naysay import read, runs
from naysay.learning import Config


def draw(noise: float, seed: int, folder: Path) -> dict[str, Any]:
    """What is chosen from the labels that `seed` draws, and how right it was."""
    data = read("digits", transition="uniform", seed=seed)
    pixels = data.items.x.reshape(len(data.comp), -1).astype(np.float32)
    rng = np.random.default_rng([seed, 7])
    np.save(folder / "pixels.npy", pixels + noise * pixels.std() * rng.normal(size=pixels.shape).astype(np.float32))
    place = str(folder / "pixels.npy")

    def fit(**settings: Any) -> runs.Fitted:
        asked = runs.Settings(Config(seed=seed), encoder=place, **settings)
        return runs.fit(data, asked, oracle=data.oracle, progress=False, tell=lambda line: None)

    single, crossed = fit(folds=1, refit=False), fit(folds=5)
    kept = crossed.choice.kept
    (other,) = {*runs.AUTO} - {kept}
    right = {
        name: fitted.kept.history[-1]["test_accuracy"]
        for name, fitted in ((kept, crossed), (other, fit(schemes=(other,), folds=1)))
    }
    gains = crossed.choice.gains[other]
    return {
        "noise": noise,
        "seed": seed,
        "epochs": crossed.settings.config.epochs,
        "recommended": crossed.choice.recommended,
        "kept": kept,
        "loss_z": gains["scel"].z,
        "accuracy_z": gains["ure-accuracy"].z,
        "highest": max(single.attempts, key=lambda one: one.estimate.value).scheme,
        "on_all": right,
        "judged": {one.name: one.history[-1]["test_accuracy"] for one in crossed.attempts},
        "seconds": {"single": single.seconds, "crossed": crossed.seconds},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 0.5, 0.6])
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    for noise in asked.noise:
        lines = []
        for seed in range(asked.draws):
            with tempfile.TemporaryDirectory() as folder:
                lines.append(draw(noise, seed, Path(folder)))
            print(json.dumps(lines[-1]), flush=True)
            if asked.out:
                with asked.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
        for rule in ("highest", "kept"):
            better = sum(line["on_all"][line[rule]] >= max(line["on_all"].values()) for line in lines)
            mean = np.mean([100 * line["on_all"][line[rule]] for line in lines])
            print(f"noise {noise:g}, {rule}: the better of two in {better} of {len(lines)}, {mean:.1f} % in the mean")


if __name__ == "__main__":
    main()
