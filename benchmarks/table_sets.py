"""Data sets of the benchmark `tables`: from scikit-learn, generators, and Debian's Fashion-MNIST where it is installed.

Each is (x, y) for a seed. Generated ones have TESTED rows beyond those to train on: the true accuracy, by which stated
intervals are judged, is then known to 0.8 points. Those of KEPT_OUT took no part while the portfolio and its intervals
were made, and were run once, at the end.
"""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows, Classes = NDArray[np.float32], NDArray[np.int64]
Set = tuple[Rows, Classes]
TESTED = 4000
FASHION = Path("/usr/share/datasets/fashion-mnist")  # of the package dataset-fashion-mnist


def clusters(seed: int) -> Set:
    """Five classes in 20 columns, of which 8 tell."""
    from sklearn.datasets import make_classification

    kind = {"n_informative": 8, "n_redundant": 4, "n_clusters_per_class": 1}
    return _plain(make_classification(1400 + TESTED, 20, n_classes=5, random_state=seed, **kind))


def crowded(seed: int) -> Set:
    """Eight classes of two clusters each."""
    from sklearn.datasets import make_classification

    kind = {"n_informative": 10, "n_redundant": 4, "n_clusters_per_class": 2, "class_sep": 1.5}
    return _plain(make_classification(1400 + TESTED, 30, n_classes=8, random_state=seed, **kind))


def mixed(seed: int) -> Set:
    """A table as people have it: columns of any scale, a skewed one, a category, a flag, and fourteen of noise."""
    rng, fixed = np.random.default_rng([1, seed]), np.random.default_rng(1)
    n = 1400 + TESTED
    y = rng.integers(0, 6, n)
    told = rng.normal(size=(n, 6)) + (1.3 * fixed.normal(size=(6, 6)))[y]
    category = np.eye(3)[np.where(rng.random(n) < 0.6, y % 3, rng.integers(0, 3, n))]
    flag = (rng.random(n) < np.where(y % 2, 0.75, 0.3))[:, None]
    x = np.concatenate([np.exp(told[:, :2]), told[:, 2:], rng.normal(size=(n, 14)), category, flag], 1)
    return (x * 10.0 ** fixed.uniform(-3, 4, x.shape[1])).astype(np.float32), y


def texts(seed: int) -> Set:
    """Texts of 12 subjects as TF-IDF, reduced to 100 components."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    rng, words = np.random.default_rng([2, seed]), 3000
    usual = rng.dirichlet(np.full(words, 0.1))
    subjects = rng.dirichlet(np.full(words, 0.02), 12)
    n = 2100 + TESTED
    y = rng.integers(0, 12, n)
    often = 0.65 * usual + 0.35 * (0.7 * subjects[y] + 0.3 * subjects[(y + 1) % 12])
    counts = np.stack([rng.multinomial(length, p) for length, p in zip(rng.poisson(40, n) + 5, often, strict=True)])
    x = TruncatedSVD(100, random_state=0).fit_transform(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    return x.astype(np.float32), y


def iris(seed: int) -> Set:
    """150 flowers."""
    from sklearn.datasets import load_iris

    return _plain(load_iris(return_X_y=True))


def wine(seed: int) -> Set:
    """178 wines."""
    from sklearn.datasets import load_wine

    return _plain(load_wine(return_X_y=True))


def digits(seed: int) -> Set:
    """1,797 digits of 8 x 8 pixels."""
    from sklearn.datasets import load_digits

    return _plain(load_digits(return_X_y=True))


def waves(seed: int) -> Set:
    """Breiman's waveforms, 40 columns of which 19 are noise; nobody is right about more than 86 %."""
    rng, at, n = np.random.default_rng([3, seed]), np.arange(1, 22), 700 + TESTED
    y, part = rng.integers(0, 3, n), rng.random((n, 1))
    peaks = np.stack([np.maximum(6 - abs(at - centre), 0) for centre in (7, 15, 11)])
    first, second = np.array([[0, 1], [0, 2], [1, 2]])[y].T
    x = peaks[first] * part + peaks[second] * (1 - part) + rng.normal(size=(n, 21))
    return np.concatenate([x, rng.normal(size=(n, 19))], 1).astype(np.float32), y


def display(seed: int) -> Set:
    """Breiman's seven-segment display, each segment wrong in 5 %, and ten columns of noise."""
    lit = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"]
    rng, segments = np.random.default_rng([4, seed]), np.array([[int(bit) for bit in row] for row in lit])
    n = 1400 + TESTED
    y = rng.integers(0, 10, n)
    x = segments[y] ^ (rng.random((n, 7)) < 0.05)
    return np.concatenate([x, rng.random((n, 10)) < 0.5], 1).astype(np.float32), y


def friedman(seed: int) -> Set:
    """Friedman's first function in five steps."""
    from sklearn.datasets import make_friedman1

    return _in_steps(*make_friedman1(1400 + TESTED, 12, noise=0.7, random_state=seed), 5)


def spirals(seed: int) -> Set:
    """Four arms in the plane."""
    rng, n = np.random.default_rng([5, seed]), 1050 + TESTED
    y, out = rng.integers(0, 4, n), 0.2 + 1.6 * rng.random(n)
    turn = 3 * out + 2 * np.pi * y / 4
    x = np.stack([out * np.cos(turn), out * np.sin(turn)], 1) + 0.05 * rng.normal(size=(n, 2))
    return x.astype(np.float32), y


def blobs(seed: int) -> Set:
    """Eight wide blobs in ten columns."""
    from sklearn.datasets import make_blobs

    return _plain(make_blobs(1050 + TESTED, 10, centers=8, cluster_std=5.0, random_state=seed))


def shells(seed: int) -> Set:
    """Four shells around one middle, in six columns."""
    from sklearn.datasets import make_gaussian_quantiles

    return _plain(make_gaussian_quantiles(n_samples=1400 + TESTED, n_features=6, n_classes=4, random_state=seed))


def fashion(seed: int) -> Set:
    """Some of Fashion-MNIST's clothes as a table of pixels."""
    with gzip.open(FASHION / "train-images-idx3-ubyte.gz") as images:
        x = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as classes:
        y = np.frombuffer(classes.read(), np.uint8, offset=8)
    some = np.random.default_rng([6, seed]).permutation(len(x))[: 3000 + TESTED]
    return (x[some] / 255).astype(np.float32), y[some].astype(np.int64)


def chessboard(seed: int) -> Set:
    """Squares of a board in two of five columns, four classes by row and column."""
    rng = np.random.default_rng([7, seed])
    x = rng.uniform(0, 4, (1400 + TESTED, 5))
    square = x[:, :2].astype(int)
    return x.astype(np.float32), (square[:, 0] + 2 * square[:, 1]) % 4


def heavy_tails(seed: int) -> Set:
    """Six classes with outliers: Student's t of two degrees of freedom around six places."""
    rng, n = np.random.default_rng([8, seed]), 1260 + TESTED
    y = rng.integers(0, 6, n)
    return (3 * rng.normal(size=(6, 8))[y] + rng.standard_t(2, (n, 8))).astype(np.float32), y


def rules(seed: int) -> Set:
    """Rules over categories: eight columns of four levels each, one-hot, and a tree of depth four for five classes."""
    rng, n = np.random.default_rng([9, seed]), 1400 + TESTED
    levels = rng.integers(0, 4, (n, 8))
    score = sum((levels[:, at] == at % 4) * 2**at for at in range(5)) + (levels[:, 5] > 1) * (levels[:, 6] < 2)
    y = np.where(rng.random(n) < 0.05, rng.integers(0, 5, n), score % 5)
    return np.concatenate([np.eye(4)[levels[:, at]] for at in range(8)], 1).astype(np.float32), y


def steps(seed: int) -> Set:
    """Friedman's third function, with noise columns, in four steps."""
    from sklearn.datasets import make_friedman3

    x, value = make_friedman3(1050 + TESTED, noise=0.1, random_state=seed)
    noise = np.random.default_rng([10, seed]).normal(size=(len(x), 6))
    return _in_steps(np.concatenate([x, noise], 1), value, 4)


def short_texts(seed: int) -> Set:
    """Short texts of seven subjects as counts of 300 words, most of them 0."""
    rng, n = np.random.default_rng([11, seed]), 1400 + TESTED
    subjects = rng.dirichlet(np.full(300, 0.05), 7)
    y = rng.integers(0, 7, n)
    often = 0.5 * rng.dirichlet(np.full(300, 0.3)) + 0.5 * subjects[y]
    counts = [rng.multinomial(length, p) for length, p in zip(rng.poisson(12, n) + 1, often, strict=True)]
    return np.stack(counts).astype(np.float32), y


def few_rows(seed: int) -> Set:
    """84 rows of four classes in 15 columns."""
    rng, n = np.random.default_rng([12, seed]), 84 + TESTED
    y = rng.integers(0, 4, n)
    return (rng.normal(size=(4, 15))[y] * 1.2 + rng.normal(size=(n, 15))).astype(np.float32), y


def sensors(seed: int) -> Set:
    """Waves of five frequencies with random phase and noise, read at 40 times."""
    rng, n = np.random.default_rng([13, seed]), 1400 + TESTED
    y, times = rng.integers(0, 5, n), np.linspace(0, 1, 40)
    phase, size = rng.uniform(0, 2 * np.pi, (n, 1)), rng.uniform(0.7, 1.5, (n, 1))
    x = size * np.sin(2 * np.pi * (2 + y[:, None]) * times + phase) + 0.5 * rng.normal(size=(n, 40))
    return x.astype(np.float32), y


def survey(seed: int) -> Set:
    """Fourteen answers of 1 to 5 by people of six kinds, one answer in ten missing (0)."""
    rng, n = np.random.default_rng([14, seed]), 1400 + TESTED
    y, likes = rng.integers(0, 6, n), rng.normal(size=(6, 14))
    x = np.clip(np.rint(3 + 1.2 * likes[y] + rng.normal(size=(n, 14))), 1, 5) * (rng.random((n, 14)) < 0.9)
    return x.astype(np.float32), y


def scales(seed: int) -> Set:
    """Four classes that differ in how far their columns spread, not in where they lie."""
    rng, n = np.random.default_rng([15, seed]), 1400 + TESTED
    y, spread = rng.integers(0, 4, n), np.exp(rng.normal(size=(4, 10)))
    return (spread[y] * rng.normal(size=(n, 10))).astype(np.float32), y


def uneven_classes(seed: int) -> Set:
    """Five classes of which one has half of the rows and one a twentieth."""
    rng, n = np.random.default_rng([16, seed]), 1400 + TESTED
    y = rng.choice(5, n, p=[0.5, 0.23, 0.13, 0.09, 0.05])
    return (1.4 * rng.normal(size=(5, 8))[y] + rng.normal(size=(n, 8))).astype(np.float32), y


def embeddings(seed: int) -> Set:
    """Fifteen classes of three directions each, in 128 columns of one length."""
    rng, n = np.random.default_rng([17, seed]), 2100 + TESTED
    y = rng.integers(0, 15, n)
    x = rng.normal(size=(15, 3, 128))[y, rng.integers(0, 3, n)] + 1.8 * rng.normal(size=(n, 128))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32), y


def _plain(found: tuple[Any, Any]) -> Set:
    x, y = found
    return np.asarray(x, np.float32), np.asarray(y, np.int64)


def _in_steps(x: Any, value: Any, n: int) -> Set:
    return x.astype(np.float32), np.digitize(value, np.quantile(value, np.linspace(0, 1, n + 1)[1:-1]))


REAL = (iris, wine, digits)
SEEN = (*REAL, clusters, crowded, mixed, texts, waves, display, friedman, spirals, blobs, shells, fashion)
SEEN_ONCE = (chessboard, heavy_tails, rules, steps, short_texts, few_rows)  # kept out until the intervals were mended
KEPT_OUT = (sensors, survey, scales, uneven_classes, embeddings)
# the rows of the benchmark: which labels each set gets
ROWS: dict[str, tuple[str, ...]] = {
    "clusters": ("uniform", "biased", "popular"),
    "crowded": ("uniform",),
    "mixed": ("uniform", "biased", "popular"),
    "texts": ("uniform", "three"),
    "iris": ("uniform", "noisy"),
    "wine": ("noisy", "popular"),
    "digits": ("uniform", "strongly biased"),
    "waves": ("uniform", "strongly biased"),
    "display": ("popular", "three"),
    "friedman": ("uniform",),
    "spirals": ("uniform", "noisy"),
    "blobs": ("biased",),
    "shells": ("noisy",),
    "fashion": ("uniform", "biased"),
    "chessboard": ("uniform",),
    "heavy_tails": ("uniform", "popular"),
    "rules": ("uniform", "noisy"),
    "steps": ("biased",),
    "short_texts": ("uniform", "three"),
    "few_rows": ("uniform",),
    "sensors": ("uniform", "biased"),
    "survey": ("noisy", "popular"),
    "scales": ("uniform",),
    "uneven_classes": ("uniform", "biased"),
    "embeddings": ("three", "biased"),
}
SETS: dict[str, Callable[[int], Set]] = {make.__name__: make for make in (*SEEN, *SEEN_ONCE, *KEPT_OUT)}
