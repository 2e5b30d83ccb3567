"""The report of a run folder: its files turned into what `naysay.report` draws."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from naysay import report as page
from naysay.audit import Audit
from naysay.datasets.store import read_npz
from naysay.errors import InputError
from naysay.learning import records
from naysay.report import Column, Curves, FeatureMap, HeatMap, Item, KeyFigure, Method, Report, Results, Series, Value
from naysay.runs.account import Arrays
from naysay.runs.results import with_error

T = TypeVar("T")

TRUTH = "known only where ordinary labels are; nothing was chosen by it"
ESTIMATE = "accuracy estimated from held-out complementary labels; ± is one standard error"

# What an attempt's figures are called in the table: name in run.json's "truth", title, which end is good.
ORACLE_COLUMNS: tuple[tuple[str, str, Any], ...] = (
    ("test_accuracy", "test accuracy", "higher"),
    ("train_accuracy", "training accuracy", "higher"),
    ("argmin_accuracy", "least named is true", "higher"),
    ("mass_on_true", "mass on true class", "lower"),
    ("sharing_efficiency", "sharing efficiency", "higher"),
    ("neighbouring_noise", "neighbouring noise", "lower"),
)
# The curves of every epoch: figure, title of its series, whether it needs the truth.
CONFIDENCES = (
    ("confidence_seen", "labels given", False),
    ("confidence_augmented", "labels after sharing", False),
    ("confidence_unseen", "wrong classes never named", True),
)


def build(folder: Path) -> Report:
    """The report of the run in `folder`."""
    about, arrays = _json(folder / "run.json"), read_npz(folder / "report.npz", "Fit the run again.")
    epochs = [line for line in _records(folder / "records.jsonl") if line["kind"] == "epoch"]
    chosen = next(row for row in about["results"] if row["chosen"])
    return Report(
        title=f"naysay: {about['data'].get('name', 'a run')}",
        summary=_summary(chosen),
        classes=about["classes"],
        key_figures=_key_figures(about, chosen),
        results=_results(about),
        learning=_learning(epochs, about),
        sharing=_sharing([line for line in epochs if line["scheme"] == about["chosen"]]),
        heat_maps=_heat_maps(arrays, about),
        feature_map=_feature_map(arrays, about),
        examples=[_item(arrays, row) for row in arrays["examples"]],
        doubtful=[_item(arrays, [at]) for at in arrays["doubtful"]],
        audit=Audit.from_dict(_json(folder / "audit.json")).as_html(),
        config={"scheme": about["chosen"], **about["settings"]},
        versions=about["versions"],
        facts={
            **{name: str(value) for name, value in about["hardware"].items()},
            "neighbours by": about["space"],
            "seconds": f"{about['seconds']:.1f}",
        },
        data_hash=about["data"]["hash"],
        date=about["created"],
        command=about["command"],
    )


def _json(path: Path) -> Any:
    return _read(path, lambda path: json.loads(path.read_text(encoding="utf-8")))


def _records(path: Path) -> list[dict[str, Any]]:
    return _read(path, records.read)


def _read(path: Path, reader: Callable[[Path], T]) -> T:
    try:
        return reader(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}). Fit the run again.") from None


def _summary(chosen: dict[str, Any]) -> str:
    share = with_error(chosen["estimate"], chosen["standard_error"])
    return f"An estimated {share} % of the items are classified rightly, told by complementary labels alone."


def _key_figures(about: dict[str, Any], chosen: dict[str, Any]) -> list[KeyFigure]:
    labels = about["labels"]
    figures = [
        KeyFigure(
            "estimated accuracy",
            Value(chosen["estimate"], chosen["standard_error"]),
            note=f"from {chosen['held_out_rows']:,} held-out complementary labels; ± one standard error",
        ),
        KeyFigure(
            "items", Value(about["data"]["rows"]), unit="", digits=0, note=f"{about['training_rows']:,} trained on"
        ),
        KeyFigure(
            "labels per labelled item",
            Value(labels["mean"]),
            unit="",
            digits=2,
            note=f"{labels['labels']:,} labels in all",
        ),
    ]
    if "test_accuracy" in chosen["truth"]:
        note = f"on {about['data'].get('tested_on', 'the held-out items')}; {TRUTH}"
        figures.insert(
            1, KeyFigure("test accuracy", Value(chosen["truth"]["test_accuracy"]), note=note, needs_truth=True)
        )
    return figures


def _results(about: dict[str, Any]) -> Results:
    rows = about["results"]
    known = [column for column in ORACLE_COLUMNS if any(column[0] in row["truth"] for row in rows)]
    columns = [
        Column("estimated accuracy", note=ESTIMATE),
        *(Column(title, better=better, needs_truth=True) for _, title, better in known),
        Column("seconds", unit="", better="lower", cost=True, note="sharing and training"),
    ]
    methods = [
        Method(
            row["scheme"],
            [
                Value(row["estimate"], row["standard_error"]),
                *(Value(row["truth"].get(name)) for name, _, _ in known),
                Value(row["seconds"]),
            ],
            chosen=row["chosen"],
            note=_difference(row),
        )
        for row in rows
    ]
    drawn = ["estimated accuracy", *(title for name, title, _ in known if name == "test_accuracy")]
    return Results(columns, methods, note=about["verdict"], drawn=drawn)


def _difference(row: dict[str, Any]) -> str:
    against = row["chosen_minus_this"]
    if against is None:
        return ""
    points = with_error(-against["difference"], against["standard_error"], "+")
    return f"{points} points against the chosen one, on the same rows"


def _learning(epochs: list[dict[str, Any]], about: dict[str, Any]) -> list[Curves]:
    by_scheme = {
        row["scheme"]: [line for line in epochs if line["scheme"] == row["scheme"]] for row in about["results"]
    }
    x = [line["epoch"] for line in max(by_scheme.values(), key=len)]
    estimates = [_band(scheme, lines) for scheme, lines in by_scheme.items()]
    curves = [
        Curves(
            "Estimated accuracy on the held-out rows",
            x,
            estimates,
            note="From complementary labels; bands are ± one standard error.",
        )
    ]
    if any("test_accuracy" in line for line in epochs):
        tested = [
            Series(scheme, [line.get("test_accuracy") for line in lines], needs_truth=True)
            for scheme, lines in by_scheme.items()
        ]
        curves.append(Curves("Test accuracy", x, tested, note=f"Against the truth, {TRUTH}."))
    losses = [Series(scheme, [line["loss"] for line in lines]) for scheme, lines in by_scheme.items()]
    return [
        *curves,
        Curves(
            "Training loss",
            x,
            losses,
            unit="",
            note="The schemes train on different labels, so compare shapes, not heights.",
        ),
    ]


def _band(scheme: str, lines: list[dict[str, Any]]) -> Series:
    value, error = ([line[name] for line in lines] for name in ("held_out", "held_out_error"))
    pairs = list(zip(value, error, strict=True))
    return Series(scheme, value, [v - e for v, e in pairs], [v + e for v, e in pairs])


def _sharing(lines: list[dict[str, Any]]) -> list[Curves]:
    x = [line["epoch"] for line in lines]
    series = [
        Series(title, [line.get(name) for line in lines], needs_truth=needs_truth)
        for name, title, needs_truth in CONFIDENCES
        if any(name in line for line in lines)
    ]
    curves = [
        Curves(
            "Confidence on classes that items are not",
            x,
            series,
            note="Mean probability that the model gives them; less is better.",
        )
    ]
    if any("sharing_efficiency" in line for line in lines):
        efficiency = Series("sharing efficiency", [line.get("sharing_efficiency") for line in lines], needs_truth=True)
        curves.append(
            Curves(
                "Sharing efficiency",
                x,
                [efficiency],
                note="How much of what was never said about an item the model learnt from others.",
            )
        )
    return curves


def _heat_maps(arrays: Arrays, about: dict[str, Any]) -> list[HeatMap]:
    names = about["classes"]
    rows = [f"{name} ({count:,})" for name, count in zip(names, arrays["class_counts"], strict=True)]
    titles = [("heat_given", "Labels as given")] + (
        [("heat_shared", f"Labels after sharing ({about['chosen']})")] if about["chosen"] != "none" else []
    )
    note = "Mean label mass of the items of each predicted class: the lighter the diagonal, the less labels and predictions contradict."
    return [HeatMap(title, arrays[name], rows, names, row_title="predicted class", note=note) for name, title in titles]


def _feature_map(arrays: Arrays, about: dict[str, Any]) -> FeatureMap:
    truth = arrays.get("map_truth")
    truth = None if truth is None or truth.min() < 0 else truth
    explained = " and ".join(f"{100 * float(share):.0f} %" for share in arrays["map_explained"])
    return FeatureMap(
        arrays["map_points"],
        arrays["map_predicted"],
        names=arrays["map_id"].tolist(),
        probability=arrays["map_probability"],
        labels=arrays["map_labels"],
        y_true=truth,
        note=f"{len(arrays['map_points']):,} training items by {about['space']}, in the two directions of greatest variance ({explained}).",
    )


def _item(arrays: Arrays, places: Sequence[int]) -> Item:
    """The item at the first of the places in the pool, with those at the others as its neighbours."""
    at, *near = places
    truth = int(arrays["item_truth"][at]) if "item_truth" in arrays else -1
    return Item(
        name=str(arrays["item_id"][at]),
        labels=[int(k) for k in arrays["item_labels"][at] if k >= 0],
        image=arrays["item_image"][at] if "item_image" in arrays else None,
        probabilities=arrays["item_probabilities"][at],
        predicted=int(arrays["item_predicted"][at]),
        augmented=arrays["item_shared"][at],
        neighbours=[_item(arrays, [place]) for place in near],
        y_true=None if truth < 0 else truth,
    )


def render(folder: str | Path, path: str | Path) -> Path:
    """Draw the report of the run in `folder` again, into the file `path`."""
    return page.write(build(Path(folder)), path)
