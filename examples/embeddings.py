"""Embeddings of your own and a few rejections: share the labels, see what that did, take the least rejected class."""

import numpy as np

from naysay import augmentation

rng = np.random.default_rng(0)
n, classes = 3_000, 6
centres = rng.normal(size=(classes, 32))
truth = rng.integers(classes, size=n)
embeddings = (centres[truth] + 1.5 * rng.normal(size=(n, 32))).astype(np.float32)

# only one item in five was ever rejected as something; -1: nobody said anything
rejected_as = (truth + rng.integers(1, classes, size=n)) % classes
rejected_as[rng.random(n) > 0.2] = -1

shared, report = augmentation.augment_report(
    embeddings, rejected_as, "dms", n_neighbors=32, gamma="auto", metric="cosine"
)
print(report)

guess = shared.argmin(1)
print(
    f"items with a rejection of their own: {(rejected_as >= 0).mean():.0%}; right guesses: "
    f"{(guess == truth).mean():.1%}"
)
