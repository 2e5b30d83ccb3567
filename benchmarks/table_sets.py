"""Data sets of the benchmark `tables`: from scikit-learn, generators, and Debian's Fashion-MNIST where it is installed.

Each is (x, y) for a seed. Those of KEPT_OUT took no part while the portfolio was made, and were run once, at the end.
"""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows, Classes = NDArray[np.float32], NDArray[np.int64]
Set = tuple[Rows, Classes]
FASHION = Path("/usr/share/datasets/fashion-mnist")  # of the package dataset-fashion-mnist


def clusters(seed: int) -> Set:
    """Five classes in 20 columns, of which 8 tell."""
    from sklearn.datasets import make_classification

    kind = {"n_informative": 8, "n_redundant": 4, "n_clusters_per_class": 1}
    return _plain(make_classification(2000, 20, n_classes=5, random_state=seed, **kind))


def crowded(seed: int) -> Set:
    """Eight classes of two clusters each."""
    from sklearn.datasets import make_classification

    kind = {"n_informative": 10, "n_redundant": 4, "n_clusters_per_class": 2, "class_sep": 1.5}
    return _plain(make_classification(2000, 30, n_classes=8, random_state=seed, **kind))


def mixed(seed: int) -> Set:
    """A table as people have it: columns of any scale, a skewed one, a category, a flag, and fourteen of noise."""
    rng, fixed = np.random.default_rng([1, seed]), np.random.default_rng(1)
    y = rng.integers(0, 6, 2000)
    told = rng.normal(size=(2000, 6)) + (1.3 * fixed.normal(size=(6, 6)))[y]
    category = np.eye(3)[np.where(rng.random(2000) < 0.6, y % 3, rng.integers(0, 3, 2000))]
    flag = (rng.random(2000) < np.where(y % 2, 0.75, 0.3))[:, None]
    x = np.concatenate([np.exp(told[:, :2]), told[:, 2:], rng.normal(size=(2000, 14)), category, flag], 1)
    return (x * 10.0 ** fixed.uniform(-3, 4, x.shape[1])).astype(np.float32), y


def texts(seed: int) -> Set:
    """3,000 texts of 12 subjects as TF-IDF, reduced to 100 components."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    rng, words = np.random.default_rng([2, seed]), 3000
    usual = rng.dirichlet(np.full(words, 0.1))
    subjects = rng.dirichlet(np.full(words, 0.02), 12)
    y = rng.integers(0, 12, 3000)
    often = 0.65 * usual + 0.35 * (0.7 * subjects[y] + 0.3 * subjects[(y + 1) % 12])
    counts = np.stack([rng.multinomial(length, p) for length, p in zip(rng.poisson(40, 3000) + 5, often, strict=True)])
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
    rng, at = np.random.default_rng([3, seed]), np.arange(1, 22)
    y, part = rng.integers(0, 3, 1000), rng.random((1000, 1))
    peaks = np.stack([np.maximum(6 - abs(at - centre), 0) for centre in (7, 15, 11)])
    first, second = np.array([[0, 1], [0, 2], [1, 2]])[y].T
    x = peaks[first] * part + peaks[second] * (1 - part) + rng.normal(size=(1000, 21))
    return np.concatenate([x, rng.normal(size=(1000, 19))], 1).astype(np.float32), y


def display(seed: int) -> Set:
    """Breiman's seven-segment display, each segment wrong in 5 %, and ten columns of noise."""
    lit = ["1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"]
    rng, segments = np.random.default_rng([4, seed]), np.array([[int(bit) for bit in row] for row in lit])
    y = rng.integers(0, 10, 2000)
    x = segments[y] ^ (rng.random((2000, 7)) < 0.05)
    return np.concatenate([x, rng.random((2000, 10)) < 0.5], 1).astype(np.float32), y


def friedman(seed: int) -> Set:
    """Friedman's first function in five steps."""
    from sklearn.datasets import make_friedman1

    return _in_steps(*make_friedman1(2000, 12, noise=0.7, random_state=seed), 5)


def spirals(seed: int) -> Set:
    """Four arms in the plane."""
    rng = np.random.default_rng([5, seed])
    y, out = rng.integers(0, 4, 1500), 0.2 + 1.6 * rng.random(1500)
    turn = 3 * out + 2 * np.pi * y / 4
    x = np.stack([out * np.cos(turn), out * np.sin(turn)], 1) + 0.05 * rng.normal(size=(1500, 2))
    return x.astype(np.float32), y


def blobs(seed: int) -> Set:
    """Eight wide blobs in ten columns."""
    from sklearn.datasets import make_blobs

    return _plain(make_blobs(1500, 10, centers=8, cluster_std=5.0, random_state=seed))


def shells(seed: int) -> Set:
    """Four shells around one middle, in six columns."""
    from sklearn.datasets import make_gaussian_quantiles

    return _plain(make_gaussian_quantiles(n_samples=2000, n_features=6, n_classes=4, random_state=seed))


def fashion(seed: int) -> Set:
    """4,286 of Fashion-MNIST's clothes as a table of pixels."""
    with gzip.open(FASHION / "train-images-idx3-ubyte.gz") as images:
        x = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 784)
    with gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as classes:
        y = np.frombuffer(classes.read(), np.uint8, offset=8)
    some = np.random.default_rng([6, seed]).permutation(len(x))[:4286]
    return (x[some] / 255).astype(np.float32), y[some].astype(np.int64)


def chessboard(seed: int) -> Set:
    """Squares of a board in two of five columns, four classes by row and column."""
    rng = np.random.default_rng([7, seed])
    x = rng.uniform(0, 4, (2000, 5))
    square = x[:, :2].astype(int)
    return x.astype(np.float32), (square[:, 0] + 2 * square[:, 1]) % 4


def heavy_tails(seed: int) -> Set:
    """Six classes with outliers: Student's t of two degrees of freedom around six places."""
    rng = np.random.default_rng([8, seed])
    y = rng.integers(0, 6, 1800)
    return (3 * rng.normal(size=(6, 8))[y] + rng.standard_t(2, (1800, 8))).astype(np.float32), y


def rules(seed: int) -> Set:
    """Rules over categories: eight columns of four levels each, one-hot, and a tree of depth four for five classes."""
    rng = np.random.default_rng([9, seed])
    levels = rng.integers(0, 4, (2000, 8))
    score = sum((levels[:, at] == at % 4) * 2**at for at in range(5)) + (levels[:, 5] > 1) * (levels[:, 6] < 2)
    y = np.where(rng.random(2000) < 0.05, rng.integers(0, 5, 2000), score % 5)
    return np.concatenate([np.eye(4)[levels[:, at]] for at in range(8)], 1).astype(np.float32), y


def steps(seed: int) -> Set:
    """Friedman's third function, with noise columns, in four steps."""
    from sklearn.datasets import make_friedman3

    x, value = make_friedman3(1500, noise=0.1, random_state=seed)
    noise = np.random.default_rng([10, seed]).normal(size=(1500, 6))
    return _in_steps(np.concatenate([x, noise], 1), value, 4)


def short_texts(seed: int) -> Set:
    """2,000 short texts of seven subjects as counts of 300 words, most of them 0."""
    rng = np.random.default_rng([11, seed])
    subjects = rng.dirichlet(np.full(300, 0.05), 7)
    y = rng.integers(0, 7, 2000)
    often = 0.5 * rng.dirichlet(np.full(300, 0.3)) + 0.5 * subjects[y]
    counts = [rng.multinomial(length, p) for length, p in zip(rng.poisson(12, 2000) + 1, often, strict=True)]
    return np.stack(counts).astype(np.float32), y


def few_rows(seed: int) -> Set:
    """120 rows of four classes in 15 columns."""
    rng = np.random.default_rng([12, seed])
    y = rng.integers(0, 4, 120)
    return (rng.normal(size=(4, 15))[y] * 1.2 + rng.normal(size=(120, 15))).astype(np.float32), y


def _plain(found: tuple[Any, Any]) -> Set:
    x, y = found
    return np.asarray(x, np.float32), np.asarray(y, np.int64)


def _in_steps(x: Any, value: Any, n: int) -> Set:
    return x.astype(np.float32), np.digitize(value, np.quantile(value, np.linspace(0, 1, n + 1)[1:-1]))


SEEN = (clusters, crowded, mixed, texts, iris, wine, digits, waves, display, friedman, spirals, blobs, shells, fashion)
KEPT_OUT = (chessboard, heavy_tails, rules, steps, short_texts, few_rows)
SETS: dict[str, Callable[[int], Set]] = {make.__name__: make for make in (*SEEN, *KEPT_OUT)}
