"""Every loss on digits from one uniform label per instance, under the default settings: the table of docs/TRAINING.md.

    python benchmarks/losses_on_digits.py

Without sharing, and with the labels of the 8 nearest of the 1,442 digits shared (RMS, on pixels). Test accuracy of the
last epoch: first of seed 0, as the tests check it, then mean and standard deviation over five label draws.
"""

import statistics

import torch

from naysay import augment, datasets, labels, losses, metrics, transition
from naysay.learning import Config, train


def main() -> None:
    torch.set_num_threads(1)
    digits = datasets.load("digits")
    named = [transition.sample(digits.y_train, transition.uniform(10), seed=seed) for seed in range(5)]
    drawn = [labels.from_indices(classes, 10) for classes in named]
    pixels = digits.x_train.reshape(len(digits.x_train), -1).astype("float32") / 255
    shared = [torch.as_tensor(augment(pixels, comp, scheme="rms", n_neighbors=8)) for comp in drawn]
    print("| loss | one label | five draws | shared | five draws |\n| --- | --- | --- | --- | --- |")
    for name in losses.LOSSES:
        cells = []
        for rows in (drawn, shared):
            accuracy = []
            for seed, comp in enumerate(rows):
                trained = train(Config(loss=name, seed=seed), digits.x_train, comp)
                accuracy.append(100 * metrics.oracle_accuracy(trained.predictor.predict(digits.x_test), digits.y_test))
            cells += [f"{accuracy[0]:.1f} %", f"{statistics.mean(accuracy):.1f} ± {statistics.stdev(accuracy):.1f}"]
        print(f"| `{name}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
