"""The audit: what the labels are like before any training, as a tree of frozen records with three forms."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from naysay import estimation, labels, neighbors, shares
from naysay.audit.advice import advise
from naysay.audit.annotators import Annotators, Rows, Shown, annotators, class_names, read, shown
from naysay.audit.content import content
from naysay.audit.counts import Coverage, Duplicates, Given, Marginals, coverage, duplicates, marginals
from naysay.errors import InputError
from naysay.estimation import SAMPLE, Estimate
from naysay.report.content import Advice, as_html, as_text
from naysay.seeds import stream
from naysay.statistics import Counts, LabelCounts

SAYS = "says"  # the column of what a row's statement was, where not all were "not"
SUSPECTS = 20  # items listed to be looked at
WITHOUT_FEATURES = (
    "Without features nothing can be said about wrong labels: pass features, or a graph, to have noise and bias "
    "estimated."
)


@dataclass(frozen=True)
class Suspect:
    """An item whose label names its likely class, although its neighbours are clear."""

    item: str
    named: str


@dataclass(frozen=True)
class Neighborhood(Estimate):
    """What neighbours say, and items to look at."""

    suspects: tuple[Suspect, ...] = ()


@dataclass(frozen=True)
class Audit:
    """What the labels are like. A part that nothing was given for is None; `not_told` says what and why.

    `together`: labels that came several at a time, from a statement such as "is k".
    """

    classes: tuple[str, ...]
    coverage: Coverage
    marginals: Marginals
    annotators: Annotators | None
    shown: Shown | None
    duplicates: Duplicates
    neighborhood: Neighborhood | None
    not_told: tuple[str, ...]
    advice: tuple[Advice, ...] = ()
    together: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The audit as dicts, lists, strings, numbers, booleans and None; `from_dict` reads it back."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # tuples become lists, as a file would have them
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The audit that `as_dict` wrote, checked."""
        from pydantic import TypeAdapter, ValidationError

        try:
            audit: Self = TypeAdapter(cls).validate_python(_in_one_spelling(plain))
        except ValidationError as error:
            first = error.errors()[0]
            what = f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}"
            raise InputError(f"this is not an audit: {what}. Run the audit again.") from None
        return audit

    def said(self, words: Callable[[str], str]) -> Self:
        """The audit with its advice in other words: those of the command instead of Python's."""
        advice = tuple(replace(one, text=words(one.text)) for one in self.advice)
        return replace(self, advice=advice, not_told=tuple(map(words, self.not_told)))

    def as_text(self) -> str:
        """The audit as plain text of at most 100 columns."""
        return as_text(content(self))

    def as_html(self) -> str:
        """The audit as one self-contained <section>, to be put into a page."""
        return as_html(content(self))


def audit_page(audit: Audit) -> str:
    """The audit as a complete HTML page, which asks the network for nothing and has no script."""
    return as_html(content(audit), whole=True)


def _in_one_spelling(plain: Any) -> Any:
    """What an earlier version wrote, with its keys spelled as now."""
    if isinstance(plain, dict):
        return {name.replace("neighbour", "neighbor"): _in_one_spelling(part) for name, part in plain.items()}
    return [_in_one_spelling(part) for part in plain] if isinstance(plain, list) else plain


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
    class_shares: Any = None,
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
    class_shares: how common the classes are, "even" or K shares, where it is known: neighbours are then read by it.
    table: the long rows, with columns named by `item`, `label` and, where there are any, `annotator` and `options` (a
    list, or names joined by "|", in the order shown). Its items are matched to the rows of comp by `items`, or by first
    appearance.
    classes: the names of the K columns; without them, the table's as `labels.from_table` sorts them, or numbers.
    """
    for what, names in (("classes", classes), ("items", items)):
        if names is not None and len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise InputError(f"{what} must be distinct; got {twice!r} more than once.")
    features = features.detach().cpu().numpy() if isinstance(features, Tensor) else features
    rows, has_says = None, table is not None and SAYS in labels.column_names(table)
    if table is not None:
        items = labels.unique_items(labels.column(table, item)) if items is None else items
        classes = class_names(table, label, options) if classes is None else classes
        labels.check_n_classes(len(classes))
        rows = read(table, classes, items, item=item, label=label, annotator=annotator, options=options)
    given = _given(comp, rows, classes, items)
    # T of the labels as they were given, which judges models, and not as if all classes had been among the options
    known = shares.read(class_shares, len(given.classes))
    near, likely, why = estimation.ask_neighbors(given.comp, given.counts, features, graph, metric, sample, seed, known)
    why = WITHOUT_FEATURES if features is None and graph is None else why
    repeats = (None, False) if rows is None else (rows.repeated, rows.annotators is not None)
    found = Audit(
        classes=given.classes,
        coverage=coverage(given),
        marginals=marginals(given),
        annotators=None if rows is None else annotators(rows, given.classes, likely),
        shown=None if rows is None else shown(rows, len(given.classes)),
        duplicates=duplicates(features, given, *repeats),
        neighborhood=None if near is None else Neighborhood(**vars(near), suspects=_suspects(given, likely, seed)),
        not_told=(why,) if why else (),
        together=sum(kind != "not" for kind in labels.column(table, SAYS)) if has_says else 0,
    )
    return replace(found, advice=advise(found))


def _given(comp: Any, rows: Rows | None, classes: Sequence[Any] | None, items: Sequence[Any] | None) -> Given:
    """The labels, checked, with their names; counts are the table's where there is one, for comp may hide repeats."""
    if comp is not None:
        comp = labels.validate(comp, None if classes is None else len(classes)).detach().cpu()
        if items is not None and len(items) != len(comp):
            got = f"{len(items)} items for {len(comp)} rows"
            raise InputError(f"items must name the rows of comp, one each; got {got}.")
    if rows is not None and items is not None and classes is not None:
        n, n_classes = len(items), len(classes)
        flat = np.bincount(rows.item * n_classes + rows.label, minlength=n * n_classes)
        counts = flat.reshape(n, n_classes).astype(np.int32)
        if comp is None:
            comp = torch.from_numpy(counts / np.maximum(counts.sum(1, keepdims=True), 1)).float()
        else:  # which may weigh annotators
            _check_same(counts, comp.numpy(), items)
    elif comp is not None:
        counts = estimation.label_counts(comp)
    else:
        raise InputError("there is nothing to audit: pass comp, an (n, K) matrix of labels, or a table of long rows.")
    if not counts.any():
        got = f"{len(counts)} items without any"
        raise InputError(f"there must be at least one label to audit; got {got}. Check that labels were read at all.")
    names = tuple(str(name) for name in (range(comp.shape[1]) if classes is None else classes))
    return Given(comp, counts, names, items)


def _check_same(counts: LabelCounts, comp: NDArray[Any], items: Sequence[Any]) -> None:
    """A row of comp names the classes that the table names, or none (contradictions may have been unlabelled)."""
    off = ((counts > 0) != (comp > 0)).any(1) & comp.any(1)
    if off.any():
        at = int(off.argmax())
        raise InputError(
            f"comp and table must say the same; row {at} of comp, item {items[at]!r}, names other classes than the "
            "table does. Pass `items` and `classes` in the order of comp's rows and columns, or the table alone."
        )


def _suspects(given: Given, likely: Counts, seed: int) -> tuple[Suspect, ...]:
    """At random, not the clearest first: a fair sample to look at tells what share of the suspects is truly wrong."""
    clear = np.flatnonzero(likely != -1)
    rows = clear[given.counts[clear, likely[clear]] > 0]
    rows = rows[np.sort(stream(seed, "audit suspects").permutation(len(rows))[:SUSPECTS])]
    items = given.names(rows, SUSPECTS)
    return tuple(Suspect(item, given.classes[k]) for item, k in zip(items, likely[rows], strict=True))
