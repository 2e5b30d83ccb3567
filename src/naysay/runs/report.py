"""The report of a run folder: its files turned into what `naysay.report` draws."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from naysay import report as page
from naysay.audit import Audit
from naysay.datasets.store import read_npz
from naysay.errors import InputError, intact
from naysay.figures import FIGURES, find_figure
from naysay.learning import records
from naysay.report import Column, Curves, FeatureMap, HeatMap, Item, KeyFigure, Method, Report, Results, Series, Value
from naysay.runs.account import Arrays
from naysay.runs.estimates import NOTE, assumed, estimated, never_predicted, opening, why_untold
from naysay.runs.pictures import figures, values_of
from naysay.statistics import Z95
from naysay.words import count, joined, percent, with_error

T = TypeVar("T")
Line = dict[str, Any]  # of records.jsonl, or an entry of run.json

AGAIN = "Fit the run again."
TRUTH = "known only where ordinary labels are; nothing was chosen by it"
ESTIMATED = "estimated accuracy"
LOSS = "held-out loss"
LOSS_NOTE = "minus the log probability of a held-out label (SCEL), at the best sharpness; differences choose the scheme"
ON_ALL = "epoch on all labels"  # lines of the model that is kept, where it is not the one that was judged
CONFIDENCES = ("confidence_seen", "confidence_augmented", "confidence_unseen")  # drawn epoch by epoch, in one chart


def render(folder: str | Path, path: str | Path) -> Path:
    """Draw the report of the run in `folder` again, into the file `path`."""
    with intact(folder, AGAIN):
        return page.write(build(Path(folder)), path)


def build(folder: Path) -> Report:
    """The report of the run in `folder`."""
    about, arrays = read_json(folder / "run.json"), read_npz(folder / "report.npz", AGAIN)
    lines = _read(folder / "records.jsonl", records.read)
    epochs, on_all = ([line for line in lines if line["kind"] == kind] for kind in ("epoch", ON_ALL))
    chosen = next(row for row in about["results"] if row["chosen"])
    shared = chosen["sharing"]["scheme"] != "none"  # else there is nothing to show of sharing
    audit = Audit.from_dict(read_json(folder / "audit.json"))
    hardware = {name: str(value) for name, value in about["hardware"].items()}
    return Report(
        title=f"naysay: {about['data'].get('name', 'a run')}",
        summary=" ".join([opening(chosen), *never_predicted(about)]),
        classes=about["classes"],
        key_figures=_key_figures(about, chosen),
        results=_results(about),
        learning=[
            *_learning(epochs, [row["scheme"] for row in about["results"]], chosen["estimate"] is not None),
            *([_teaching(on_all or epochs)] if epochs else []),
        ],
        sharing=_sharing(on_all or [line for line in epochs if line["scheme"] == about["chosen"]]) if shared else [],
        predictions=figures(arrays, about, audit),
        heat_maps=_heat_maps(arrays, about),
        feature_map=_feature_map(arrays, about),
        examples=[_item(arrays, row, shared) for row in arrays["examples"]],
        doubtful=[
            replace(_item(arrays, [at]), values=values_of(arrays, place)) for place, at in enumerate(arrays["doubtful"])
        ],
        audit=audit.as_html(),
        config={"scheme": about["chosen"], **about["settings"]},
        versions=about["versions"],
        facts={**hardware, "neighbours by": about["space"], "seconds": f"{about['seconds']:.1f}"},
        data_hash=about["data"]["hash"],
        date=about["created"],
        command=about["command"],
    )


def read_json(path: Path) -> Line:
    """The object in a JSON file of a run; it was written without NaN, so one that has them was changed."""

    def refuse(name: str) -> None:
        raise ValueError(f"it holds {name}")

    found = _read(path, lambda path: json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse))
    if not isinstance(found, dict):
        raise InputError(f"{path} cannot be read (it is no JSON object). {AGAIN}")
    return found


def _read(path: Path, reader: Callable[[Path], T]) -> T:
    try:
        return reader(path)
    except (OSError, RecursionError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}). {AGAIN}") from None


def _key_figures(about: Line, chosen: Line) -> list[KeyFigure]:
    labels, estimate = about["labels"], estimated(chosen)
    told_by = f"95 % interval from {chosen['held_out_rows']:,} held-out complementary labels{assumed(chosen)}"
    if estimate.low is None:
        told_by = f"cannot be told: {why_untold(chosen)}"
    elif seen := about.get("judging", {}).get("labels_seen"):
        told_by += f"; of models that saw {percent(seen, 0)} of the labels"
    tested_on, tested = about["data"].get("tested_on", "the held-out items"), chosen["truth"].get("test_accuracy")
    in_all = count(labels["labels"], "label")
    figures = [
        KeyFigure(ESTIMATED, estimate, note=told_by),
        KeyFigure("test accuracy", Value(tested), note=f"on {tested_on}; {TRUTH}", needs_truth=True),
        KeyFigure("items", Value(about["data"]["rows"]), "", 0, f"{about['training_rows']:,} trained on"),
        KeyFigure("labels per labelled item", Value(labels["mean"]), "", 2, f"{in_all} in all"),
    ]
    return [figure for figure in figures if "test_accuracy" in chosen["truth"] or not figure.needs_truth]


def _results(about: Line) -> Results:
    rows = about["results"]
    measured = {name for row in rows for name in row["truth"]} - {*CONFIDENCES}
    known = [figure for figure in FIGURES if figure.name in measured]
    lost = ["held_out_loss" in row for row in rows]  # which older runs do not have
    columns = [
        Column(ESTIMATED, note=NOTE),
        *([Column(LOSS, "", 3, "lower", LOSS_NOTE)] if all(lost) else []),
        *(Column(figure.words, figure.unit, better=figure.better, needs_truth=True) for figure in known),
        Column("seconds", unit="", better="lower", cost=True, note="sharing and training"),
    ]
    methods = []
    for row in rows:
        truth = [Value(row["truth"].get(figure.name)) for figure in known]
        loss = [Value(row["held_out_loss"], row["held_out_loss_error"])] if all(lost) else []
        values = [estimated(row), *loss, *truth, Value(row["seconds"])]
        apart = []
        if against := row["chosen_minus_this"]:
            apart.append(f"{with_error(-against['difference'], against['standard_error'], '+')} points")
        if less := row.get("chosen_loss_is_lower_by"):
            apart.append(f"loss {less['difference']:+.3f} ± {less['standard_error']:.3f}")
        note = f"{', '.join(apart)} against the chosen one, on the same rows" if apart else ""
        methods.append(Method(row["scheme"], values, chosen=row["chosen"], note=note))
    drawn = [ESTIMATED, *(figure.words for figure in known if figure.name == "test_accuracy")]
    return Results(columns, methods, note=about["verdict"], drawn=drawn, by=LOSS if all(lost) else "")


def _learning(epochs: list[Line], schemes: list[str], told: bool) -> list[Curves]:
    """The charts of every scheme; one in which nothing was measured, such as test accuracy, is not drawn.

    Nor is the accuracy, epoch by epoch, where it cannot be told.
    """
    if not epochs:  # a mixture is made of models without any
        return []
    lines = {scheme: [line for line in epochs if line["scheme"] == scheme] for scheme in schemes}
    x = [line["epoch"] for line in max(lines.values(), key=len)]
    estimates, tested, losses = [], [], []
    for scheme, of in lines.items():
        pairs = [(line["held_out"], line["held_out_error"]) for line in of]
        value, low, high = ([_possible(v + z * e) for v, e in pairs] for z in (0.0, -Z95, Z95))
        estimates.append(Series(scheme, value, low, high))
        tested.append(Series(scheme, [line.get("test_accuracy") for line in of], needs_truth=True))
        losses.append(Series(scheme, [line.get("loss") for line in of]))
    bands = "From complementary labels; bands are 95 % intervals."
    shapes = "The schemes train on different labels, so compare shapes, not heights."
    return [
        *([Curves("Estimated accuracy on the held-out rows", x, estimates, note=bands)] if told else []),
        Curves("Test accuracy", x, tested, note=f"Of the models that were judged, against the truth, {TRUTH}."),
        Curves("Training loss", x, losses, unit="", note=shapes),
    ]


def _possible(accuracy: float) -> float:
    return min(max(accuracy, 0.0), 1.0)


def _teaching(lines: list[Line]) -> Curves:
    """What a recipe with a teacher tells of its targets; of other recipes nothing, and then it is not drawn."""
    series = [one for name in ("coverage", "agreement", "evenness", "noise") for one in _series(lines, name)]
    notes = ["A target is sure from 95 %; evenness is 100 % where targets have all classes equally often in a batch."]
    if lines and "linear" in lines[0]:
        by = "a linear model fitted to all of them" if lines[0]["linear"] else "what neighbours share"
        notes.append(f"Labels were read by {by}.")
    return Curves("Targets of the student", [line["epoch"] for line in lines], series, note=" ".join(notes))


def _sharing(lines: list[Line]) -> list[Curves]:
    """The charts of sharing; what no epoch measured leaves no line, and a chart without lines is not drawn."""
    x = [line["epoch"] for line in lines]
    confidence = [series for name in CONFIDENCES for series in _series(lines, name)]
    efficiency = _series(lines, "sharing_efficiency")
    less = "Mean probability that the model gives them; less is better."
    learnt = "How much of what was never said about an item the model learnt from others."
    return [
        Curves("Confidence on classes that items are not", x, confidence, note=less),
        Curves("Sharing efficiency", x, efficiency, note=learnt),
    ]


def _series(lines: list[Line], name: str) -> list[Series]:
    figure, values = find_figure(name), [line.get(name) for line in lines]
    measured = any(name in line for line in lines)
    return [Series(figure.words, values, needs_truth=figure.needs_truth)] if measured else []


def _heat_maps(arrays: Arrays, about: Line) -> list[HeatMap]:
    names = about["classes"]
    rows = [f"{name} ({count:,})" for name, count in zip(names, arrays["class_counts"], strict=True)]
    titles = {"heat_given": "Labels as given", "heat_shared": f"Labels after sharing ({about['chosen']})"}
    if about["chosen"] == "none" or about["settings"].get("auto"):
        del titles["heat_shared"]
    fainter = "the fainter the diagonal, the less labels and predictions contradict"
    note = f"Mean label mass of the items of each predicted class: {fainter}."
    return [HeatMap(title, arrays[name], rows, names, "predicted class", note=note) for name, title in titles.items()]


def _feature_map(arrays: Arrays, about: Line) -> FeatureMap:
    truth = arrays.get("map_truth")
    explained = joined([percent(float(share), 0) for share in arrays["map_explained"]])
    items = f"{len(arrays['map_points']):,} training items by {about['space']}"
    return FeatureMap(
        arrays["map_points"],
        arrays["map_predicted"],
        names=arrays["map_id"].tolist(),
        probability=arrays["map_probability"],
        labels=arrays["map_labels"],
        y_true=None if truth is None or truth.min() < 0 else truth,
        note=f"{items}, in the two directions of greatest variance ({explained}).",
    )


def _item(arrays: Arrays, places: Sequence[int], shared: bool = True) -> Item:
    """The item at the first of the places in the pool, with those at the others as its neighbours."""
    at, *near = places
    truth = int(arrays["item_truth"][at]) if "item_truth" in arrays else -1
    return Item(
        name=str(arrays["item_id"][at]),
        labels=[int(k) for k in arrays["item_labels"][at] if k >= 0],
        image=arrays["item_image"][at] if "item_image" in arrays else None,
        probabilities=arrays["item_probabilities"][at],
        predicted=int(arrays["item_predicted"][at]),
        augmented=arrays["item_shared"][at] if shared else None,
        neighbors=[_item(arrays, [place]) for place in near],
        y_true=None if truth < 0 else truth,
    )
