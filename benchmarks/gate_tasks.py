"""The tasks of `make gates` on this tree's package. All its calls of naysay are here.

    python -m benchmarks.gate_tasks digits/uniform --seeds 0
    python -m benchmarks.gate_tasks prepare --work DIR
    python -m benchmarks.gate_tasks fit_1500 --work DIR

A task prints one line of JSON. It imports what it needs itself, so that nothing else is measured.
The command at 20,000 rows takes 260 CPU seconds, too long for five turns. BUDGET leaves out its
dearest candidates: it then takes about 34. At 1,500 rows nothing is left out.
"""

import argparse
import csv
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

TREE = Path(__file__).resolve().parents[1]
MNIST = TREE.parent / "shared" / "data" / "mnist.npz"
BUDGET = 30
N_RAW, N_RAW_TEST = 600, 2000
N_NODES, N_EDGES, N_CLASSES = 20_000, 64, 10


def table(name: str, kind: str, seed: int) -> float:
    """The accuracy of a run's default on a row of the benchmark `tables`."""
    from benchmarks.tables import draw, fit_default, split

    x, y, train, test = split(name, seed)
    fitted = fit_default(x[train], draw(y[train], kind, seed), seed)
    predictor = fitted.kept.predictor
    return accuracy(predictor.logits(x[test]).argmax(1), y[test])


def raw_columns(seed: int) -> tuple[dict[str, list[Any]], Any]:
    """Numbers, categories, dates, flags and sentences, with missing cells; and the 5 classes."""
    rng = np.random.default_rng([41, seed])
    n = N_RAW + N_RAW_TEST
    y = rng.integers(0, 5, n)
    centres = np.random.default_rng(41).normal(size=(5, 4))
    numbers = (centres[y] + rng.normal(size=(n, 4))) * [1, 30, 0.02, 1000]
    fabrics = np.array(["wool", "silk", "linen", "cotton", "felt"])
    regions = np.array(["north", "south", "east", "west"])
    words = np.array([first + last for first in "bdfgklmnprst" for last in "aeiou"])
    own = 2 * y[:, None] + rng.integers(0, 2, (n, 7))
    spoken = np.where(rng.random((n, 7)) < 0.12, own, rng.integers(10, len(words), (n, 7)))
    days = (40 * y + rng.integers(0, 365, n)).astype("timedelta64[D]")
    columns = {
        **{f"number_{at}": numbers[:, at].tolist() for at in range(4)},
        "fabric": fabrics[np.where(rng.random(n) < 0.5, y, rng.integers(0, 5, n))].tolist(),
        "region": regions[np.where(rng.random(n) < 0.4, y % 4, rng.integers(0, 4, n))].tolist(),
        "member": (rng.random(n) < np.where(y % 2, 0.75, 0.3)).tolist(),
        "bought": (np.datetime64("2021-01-01") + days).tolist(),
        "note": [" ".join(line) for line in words[spoken]],
    }
    for name in ("number_0", "number_3", "fabric", "bought"):
        for at in np.flatnonzero(rng.random(n) < 0.07):
            columns[name][at] = None
    return columns, y


def frame(seed: int) -> float:
    """The classifier's accuracy on a DataFrame."""
    import pandas
    from sklearn.pipeline import make_pipeline

    from naysay import ComplementaryClassifier, TableEncoder

    columns, y = raw_columns(seed)
    rows = pandas.DataFrame(columns)
    rows["region"] = rows["region"].astype("category")
    rows["bought"] = pandas.to_datetime(rows["bought"])
    labels = uniform(y[:N_RAW], seed).argmax(1).numpy()
    model = make_pipeline(TableEncoder(), ComplementaryClassifier(random_state=seed))
    model.fit(rows[:N_RAW], labels)
    return accuracy(model.predict(rows[N_RAW:]), y[N_RAW:])


def csv_file(seed: int) -> float:
    """The accuracy of `naysay fit` and `naysay predict` on CSV files."""
    columns, y = raw_columns(seed + 5)  # other rows than those of `frame`
    names = np.array(["apron", "beret", "cloak", "dress", "scarf"])
    labels = names[uniform(y[:N_RAW], seed).argmax(1).numpy()].tolist()
    columns = {"id": list(range(len(y))), **columns}
    train = {name: values[:N_RAW] for name, values in columns.items()}
    test = {name: values[N_RAW:] for name, values in columns.items()}
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        write_csv(work / "train.csv", {**train, "not_label": labels})
        write_csv(work / "test.csv", test)
        fit_command(work / "train.csv", work / "run", "--seed", str(seed))
        command("predict", work / "run", work / "test.csv", "--out", work / "out.csv")
        with open(work / "out.csv", newline="", encoding="utf-8") as file:
            predictions = {int(row["id"]): row["prediction"] for row in csv.DictReader(file)}
    return accuracy([predictions[row] for row in test["id"]], names[y[N_RAW:]])


def mnist_toy(seed: int, data: Path) -> float:
    """The paper's toy: a network by SCL-NL on labels shared by DMS, 2,000 images of MNIST."""
    import naysay

    x, y, x_test, y_test = mnist(data, 2000, 2000, seed)
    pixels = x.reshape(len(x), -1).astype(np.float32)
    pixels = pixels / np.linalg.norm(pixels, axis=1, keepdims=True)
    shared = naysay.augment(pixels, uniform(y, seed), "dms", 64, 0.1, 1.0)
    settings = {"model": "mlp", "loss": "scl-nl", "epochs": 10}
    return accuracy(network("plain", settings, x, shared, seed).predict(x_test), y_test)


def digits_paper(seed: int) -> float:
    """Digits by the paper's method: one network by SCL-NL on labels shared by DMS."""
    from naysay import ComplementaryClassifier

    x, y, x_test, y_test = digits(seed)
    model = ComplementaryClassifier("scl-nl", "dms", recipe="plain", random_state=seed)
    model.fit(x, uniform(y, seed).numpy())
    return accuracy(model.predict(x_test), y_test)


def consistent_tiny(seed: int, data: Path) -> float:
    """The recipe consistent on 800 images of MNIST, without an encoder."""
    x, y, x_test, y_test = mnist(data, 800, 1000, seed)
    settings = {"model": "lenet", "epochs": 16, "batch_size": 50, "learning_rate": 3e-3}
    settings |= {"crop": 2, "flip": False, "precision": "32-true", "class_shares": "even"}
    model = network("consistent", settings, x, uniform(y, seed), seed)
    return accuracy(model.predict(x_test), y_test)


def taught_tiny(seed: int) -> float:
    """The recipe taught on digits' rows."""
    x, y, x_test, y_test = digits(seed)
    settings = {"epochs": 20, "class_shares": "even"}
    model = network("taught", settings, x, uniform(y, seed), seed)
    return accuracy(model.predict(x_test), y_test)


def network(recipe: str, settings: dict[str, Any], x: Any, labels: Any, seed: int) -> Any:
    """A network trained by a recipe, which predicts."""
    from naysay.learning import configure, train

    config = configure(recipe, **settings, seed=seed)
    return train(config, x, labels, progress=False, device="cpu").predictor


def uniform(y: Any, seed: int) -> Any:
    """One label a row, any wrong class alike."""
    from benchmarks.tables import draw

    return draw(y, "uniform", seed)


def mnist(data: Path, n: int, n_test: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Some images and classes to train on and to test on."""
    rng = np.random.default_rng([42, seed])
    with np.load(data) as file:
        train = rng.permutation(len(file["y_train"]))[:n]
        test = rng.permutation(len(file["y_test"]))[:n_test]
        y, y_test = file["y_train"].astype(np.int64), file["y_test"].astype(np.int64)
        return file["x_train"][train], y[train], file["x_test"][test], y_test[test]


def digits(seed: int) -> tuple[Any, Any, Any, Any]:
    """The 8 x 8 digits, 30 % of them to test on."""
    from benchmarks.table_sets import SETS

    x, y = SETS["digits"](seed)
    test, train = np.split(np.random.default_rng([43, seed]).permutation(len(x)), [540])
    return x[train], y[train], x[test], y[test]


def accuracy(predictions: Any, y_true: Any) -> float:
    return float((np.asarray(predictions) == np.asarray(y_true)).mean())


def write_csv(path: Path, columns: dict[str, list[Any]]) -> None:
    """A file of these columns; None is an empty cell."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow("" if cell is None else cell for cell in row)


def command(*arguments: object) -> dict[str, float]:
    """Run `naysay` in a process of its own: its CPU seconds and its peak memory."""
    with tempfile.TemporaryFile() as output:
        words = [sys.executable, "-m", "naysay", *map(str, arguments)]
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            output.seek(0)
            sys.exit(f"{' '.join(words)}: {output.read().decode()[-2000:]}")
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024}


def fit_command(data: Path, out: Path, *options: str) -> dict[str, float]:
    words = ("--id", "id", "--label", "not_label", "--out", out, "--force", "--quiet")
    return command("fit", data, *words, *options)


def votes(path: Path, n: int) -> None:
    """A CSV file of 20 columns, with one label a row of what its class, one of 5, is not."""
    from sklearn.datasets import make_classification

    x, y = make_classification(n, 20, n_informative=8, n_classes=5, random_state=0)
    labels = (y + np.random.default_rng(44).integers(1, 5, n)) % 5
    columns = {f"x{at}": x[:, at].round(5).tolist() for at in range(20)}
    names = [f"class {k}" for k in labels]
    write_csv(path, {"id": list(range(n)), **columns, "not_label": names})


def prepare(work: Path) -> dict[str, float]:
    """The files of the other tasks, and a first use of what is compiled then."""
    for n in (100, 300, 1500, 20_000):
        votes(work / f"{n}.csv", n)
    fit_command(work / "300.csv", work / "small", "--budget", "2")
    fit_command(work / "1500.csv", work / "run", "--budget", "2")
    start_predict(work)
    rounds(work)
    return graph(work, n=1000)


def fit(n: int, options: tuple[str, ...], work: Path) -> dict[str, float]:
    return fit_command(work / f"{n}.csv", work / f"run_{n}", *options)


def start_command(work: Path) -> dict[str, float]:
    return {"cpu_s": min(command("--help")["cpu_s"] for _ in range(5))}


def start_predict(work: Path) -> dict[str, float]:
    words = ("predict", work / "small", work / "100.csv", "--force", "--out", work / "out.csv")
    return {"cpu_s": min(command(*words)["cpu_s"] for _ in range(2))}


def best_of(repeats: int, call: Callable[[], Any]) -> float:
    """The least CPU seconds of a call."""
    seconds = []
    for _ in range(repeats):
        started = time.process_time()
        call()
        seconds.append(time.process_time() - started)
    return min(seconds)


def graph_rows(n: int) -> Any:
    return np.random.default_rng(45).standard_normal((n, 256), dtype=np.float32)


def graph(work: Path, n: int = 15_000) -> dict[str, float]:
    """The exact graph of 64 neighbours."""
    from naysay import neighbors

    rows = graph_rows(n)
    neighbors.build(rows[:300], 64, method="exact")
    return {"cpu_s": best_of(2, lambda: neighbors.build(rows, 64, method="exact"))}


def edges() -> tuple[Any, Any, Any]:
    """Indices and weights (n, k) of a graph of rows that lie near, and labels (n, K)."""
    rng = np.random.default_rng(46)
    steps = rng.integers(1, 2000, (N_NODES, N_EDGES))
    indices = ((np.arange(N_NODES)[:, None] + steps) % N_NODES).astype(np.int32)
    weights = rng.random((N_NODES, N_EDGES), dtype=np.float32)
    labels = np.eye(N_CLASSES, dtype=np.float32)[rng.integers(0, N_CLASSES, N_NODES)]
    return indices, weights / weights.sum(1, keepdims=True), labels


def rounds(work: Path) -> dict[str, float]:
    """100 rounds of propagation; the first of six calls compiles."""
    import torch

    from naysay.augmentation import propagate

    arrays = [torch.from_numpy(array) for array in edges()]
    return {"cpu_s": best_of(6, lambda: propagate(*arrays, alpha=0.1, rounds=100))}


def peers(work: Path) -> dict[str, float]:
    """Our CPU seconds as parts of those of faiss and of scipy, for the same answer."""
    import faiss
    import scipy.sparse

    rows = graph_rows(15_000)
    index = faiss.IndexFlatL2(rows.shape[1])
    index.add(rows)
    indices, weights, labels = edges()
    starts = np.arange(0, N_NODES * N_EDGES + 1, N_EDGES)
    matrix = scipy.sparse.csr_matrix((weights.reshape(-1), indices.reshape(-1), starts))

    def share() -> Any:
        shared = labels
        for _ in range(100):
            shared = np.float32(0.1) * labels + np.float32(0.9) * (matrix @ shared)
        return shared

    faiss_seconds = best_of(2, lambda: index.search(rows, 65))
    scipy_seconds = best_of(2, share)
    return {
        "graph / faiss IndexFlatL2": round(graph(work)["cpu_s"] / faiss_seconds, 3),
        "rounds / scipy CSR": round(rounds(work)["cpu_s"] / scipy_seconds, 3),
    }


def modules_of_augment() -> None:
    import naysay

    naysay.augment(*small_rows())


def modules_of_classifier() -> None:
    from naysay import ComplementaryClassifier

    ComplementaryClassifier().fit(*small_rows())


def modules_of_command() -> None:
    """The command `naysay fit` inside this process."""
    from naysay.cli import main

    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "votes.csv", Path(folder) / "run"
        votes(data, 90)
        words = ["fit", str(data), "--id", "id", "--label", "not_label", "--out", str(out)]
        sys.argv = ["naysay", *words, "--quiet"]
        try:
            main()
        except SystemExit as end:
            if end.code:
                raise


def small_rows() -> tuple[Any, Any]:
    rows = np.random.default_rng(47).normal(size=(90, 4)).astype(np.float32)
    return rows, np.arange(90) % 3


TABLES = {
    f"{name}/{kind}": partial(table, name, kind)
    for name, kind in (
        ("wine", "popular"),
        ("few_rows", "uniform"),
        ("spirals", "noisy"),
        ("waves", "strongly biased"),
        ("display", "three"),
        ("digits", "uniform"),
    )
}
ACCURACY: dict[str, Callable[[int], float]] = {
    **TABLES,
    "frame": frame,
    "csv": csv_file,
    "digits_paper": digits_paper,
    "taught_tiny": taught_tiny,
}
IMAGES: dict[str, Callable[[int, Path], float]] = {
    "mnist_toy": mnist_toy,
    "consistent_tiny": consistent_tiny,
}
SPEED: dict[str, Callable[[Path], dict[str, float]]] = {
    "prepare": prepare,
    "peers": peers,
    "graph": graph,
    "rounds": rounds,
    "fit_1500": partial(fit, 1500, ()),
    "fit_20000": partial(fit, 20_000, ("--budget", str(BUDGET))),
    "start_command": start_command,
    "start_predict": start_predict,
}
MODULES: dict[str, Callable[[], None]] = {
    "modules of augment": modules_of_augment,
    "modules of classifier": modules_of_classifier,
    "modules of command": modules_of_command,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=[*ACCURACY, *IMAGES, *SPEED, *MODULES])
    parser.add_argument("--seeds", type=int, nargs="*", default=range(5))
    parser.add_argument("--data", type=Path, default=MNIST, help="MNIST's file")
    parser.add_argument("--work", type=Path, default=Path("."), help="the folder of prepare")
    parser.add_argument("--core", type=int)
    options = parser.parse_args()
    package = importlib.util.find_spec("naysay")
    if package is None or TREE not in Path(str(package.origin)).resolve().parents:
        sys.exit(f"naysay must be that of {TREE}: set PYTHONPATH={TREE / 'src'}")
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    figures: dict[str, float] = {}
    if options.task in SPEED:
        figures = SPEED[options.task](options.work)
    elif options.task in MODULES:
        MODULES[options.task]()
        figures["modules"] = sum(name.split(".")[0] == "naysay" for name in sys.modules)
    else:
        import torch

        torch.set_num_threads(1)
        for seed in options.seeds:
            with_data = {name: partial(task, data=options.data) for name, task in IMAGES.items()}
            figures[str(seed)] = {**ACCURACY, **with_data}[options.task](seed)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
