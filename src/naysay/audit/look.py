"""Audit the labels before any training: see `audit`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import labels, neighbors
from naysay.audit import nearby
from naysay.audit.advice import advise
from naysay.audit.annotators import annotators, shown
from naysay.audit.counts import Given, LabelCounts, coverage, label_counts, marginals
from naysay.audit.duplicates import duplicates
from naysay.audit.result import Audit
from naysay.audit.rows import Rows, class_names, read
from naysay.audit.shares import Counts
from naysay.datasets.dataset import unfinite_row
from naysay.errors import InputError

SAMPLE = 20_000  # rows: neighbours of so many are found in seconds, and a share is then known to 0.7 points at worst


def audit(
    comp: Any = None,
    *,
    features: Any = None,
    table: Mapping[str, Any] | Any = None,
    classes: Sequence[Any] | None = None,
    items: Sequence[Any] | None = None,
    graph: neighbors.Graph | None = None,
    metric: str = "euclidean",
    sample: int = SAMPLE,
    seed: int = 0,
    item: str = "item",
    label: str = "label",
    annotator: str = "annotator",
    options: str = "options",
) -> Audit:
    """What complementary labels are like, before any training and without any ordinary label.

    comp: the labels as they were given, (n, K), or None to build them from `table`. features (n, ...), or a `graph` of
    the n items, let neighbours speak: they bring the estimates of noise and bias. Features are compared as they are, by
    `metric`: standardise columns of different scale first. At most `sample` labelled items, drawn with `seed`, are
    asked.
    table: the long rows, with columns named by `item`, `label` and, where there are any, `annotator` and `options` (a
    list, or names joined by "|", in the order shown). Its items are matched to the rows of comp by `items`, or by first
    appearance.
    classes: the names of the K columns; without them, the table's as `labels.from_table` sorts them, or numbers.
    """
    _check_distinct(classes, "classes")
    _check_distinct(items, "items")
    features = features.detach().cpu().numpy() if isinstance(features, Tensor) else features
    rows = None
    if table is not None:
        items = labels.unique_items(labels.column(table, item)) if items is None else items
        classes = class_names(table, label, options) if classes is None else classes
        labels.check_n_classes(len(classes))
        rows = read(table, classes, items, item=item, label=label, annotator=annotator, options=options)
    given = _given(comp, rows, classes, items)
    _check(features, graph, len(given.counts), sample)
    near, likely, not_told = _ask_neighbours(given, features, graph, metric=metric, sample=sample, seed=seed)
    found = Audit(
        classes=given.classes,
        coverage=coverage(given),
        marginals=marginals(given),
        annotators=None if rows is None else annotators(rows, given.classes, likely),
        shown=None if rows is None else shown(rows, len(given.classes)),
        duplicates=duplicates(
            features, given, *((None, False) if rows is None else (rows.repeated, rows.annotators is not None))
        ),
        neighbourhood=near,
        not_told=not_told,
    )
    return replace(found, advice=advise(found))


def _given(comp: Any, rows: Rows | None, classes: Sequence[Any] | None, items: Sequence[Any] | None) -> Given:
    """The labels, checked, with what items and classes are called; counts are the table's where there is one, for comp
    may hide repeats.
    """
    if comp is not None:
        comp = labels.validate(comp, None if classes is None else len(classes)).detach().cpu()
        if items is not None and len(items) != len(comp):
            raise InputError(
                f"items must name the rows of comp, one each; got {len(items)} items for {len(comp)} rows."
            )
    if rows is not None and items is not None and classes is not None:
        counts = rows.counts(len(items), len(classes))
        if comp is not None:
            _check_same(counts, comp.numpy(), items)
        comp = torch.from_numpy(counts / np.maximum(counts.sum(1, keepdims=True), 1)).float()
    elif comp is not None:
        counts = label_counts(comp)
    else:
        raise InputError("there is nothing to audit: pass comp, an (n, K) matrix of labels, or a table of long rows.")
    if not counts.any():
        raise InputError(
            f"there must be at least one label to audit; got {len(counts)} items without any. Check that labels were "
            "read at all."
        )
    names = tuple(str(name) for name in (range(comp.shape[1]) if classes is None else classes))
    return Given(comp, counts, names, items)


def _check_distinct(names: Sequence[Any] | None, what: str) -> None:
    if names is not None and len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise InputError(f"{what} must be distinct; got {twice!r} more than once.")


def _check_same(counts: LabelCounts, comp: NDArray[Any], items: Sequence[Any]) -> None:
    """A row of comp names the classes that the table names, or none (contradictions may have been unlabelled)."""
    off = ((counts > 0) != (comp > 0)).any(1) & comp.any(1)
    if off.any():
        at = int(off.argmax())
        raise InputError(
            f"comp and table must say the same; row {at} of comp, item {items[at]!r}, names other classes than the "
            "table does. "
            "Pass `items` and `classes` in the order of comp's rows and columns, or the table alone."
        )


def _check(features: Any, graph: neighbors.Graph | None, n: int, sample: int) -> None:
    if sample < 1:
        raise InputError(f"sample must be at least 1 row; got {sample}.")
    if graph is not None and (graph.n != n or graph.columns is not None):
        raise InputError(f"graph must join the {n} rows of comp with each other; got {graph!r}.")
    if features is None:
        return
    if not isinstance(features, np.ndarray) or features.ndim < 2 or len(features) != n:
        got = getattr(features, "shape", type(features).__name__)
        raise InputError(f"features must be an array with one row per row of comp, ({n}, d); got {got}.")
    if features.dtype.kind not in "fiub":
        raise InputError(
            f"features must be numbers; got {features.dtype} values. Leave out columns of text, or turn them into "
            "numbers."
        )
    row = unfinite_row(features)
    if row is not None:
        raise InputError(f"features must be finite; got NaN or inf in row {row}. Mend or drop such rows.")


def _ask_neighbours(
    given: Given, features: Any, graph: neighbors.Graph | None, *, metric: str, sample: int, seed: int
) -> tuple[nearby.Neighbourhood | None, Counts | None, tuple[str, ...]]:
    """What neighbours say, each item's likely class (n,), and, where they cannot be asked, why."""
    if features is None and graph is None:
        return (
            None,
            None,
            (
                "Without features nothing can be said about wrong labels: pass features, or a graph, to have noise "
                "and bias estimated.",
            ),
        )
    labelled = np.flatnonzero(given.counts.any(1))
    rows = nearby.sample_rows(labelled, sample, seed)
    fewest = nearby.FEWEST_PER_CLASS * len(given.classes)
    if len(rows) < fewest:
        return (
            None,
            None,
            (
                f"{len(rows)} labelled items are too few to estimate noise and bias from neighbours: {fewest} are "
                "needed.",
            ),
        )
    if graph is not None:
        return (*nearby.neighbourhood(graph.to("cpu"), given, rows, len(labelled), seed), ())
    among = nearby.graph_of(features[rows], metric, len(given.classes))
    found, likely = nearby.neighbourhood(among, given.take(rows), np.arange(len(rows)), len(labelled), seed)
    everywhere = np.full(len(given.counts), -1)
    everywhere[rows] = likely
    return found, everywhere, ()
