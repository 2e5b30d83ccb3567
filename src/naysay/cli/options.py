"""The options that several commands share, each with its help, so that a word means the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

ITEMS, LABELS, SHARING, TRAINING, OUTPUT = "Items", "Labels", "Sharing", "Training", "Output"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, .npz or .npy file, a folder of images, or a known set such as digits (naysay data list).",
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id", metavar="COLUMN", rich_help_panel=ITEMS, help="The column of item ids; else rows are numbered from 0."
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        metavar="COLUMN",
        rich_help_panel=ITEMS,
        help="Feature columns, one column of embeddings, or a pattern such as 'e*'; may be repeated. Else all columns not named otherwise.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        rich_help_panel=ITEMS,
        help="A column, or a pattern, to leave out; may be repeated.",
    ),
]
Truth = Annotated[
    str | None,
    typer.Option(
        "--truth",
        metavar="COLUMN",
        rich_help_panel=ITEMS,
        help="Ordinary labels, where known: for evaluation only, never for training.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="FOLDER",
        rich_help_panel=ITEMS,
        help="Where known sets lie; else $NAYSAY_DATA, else the cache folder.",
    ),
]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="COLUMN",
        rich_help_panel=LABELS,
        help="A column that says what an item is NOT (empty: no label; -1 too, where classes are numbers); may be repeated.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        rich_help_panel=LABELS,
        help="Labels in a table of their own, one row per label: --item names the item, --label the class it is not.",
    ),
]
Item = Annotated[
    str | None,
    typer.Option(
        "--item",
        metavar="COLUMN",
        rich_help_panel=LABELS,
        help="In --labels: the column of item ids (else item, or id).",
    ),
]
Annotator = Annotated[
    str | None,
    typer.Option(
        "--annotator", metavar="COLUMN", rich_help_panel=LABELS, help="In --labels: the column that says who said so."
    ),
]
Options = Annotated[
    str | None,
    typer.Option(
        "--options",
        metavar="COLUMN",
        rich_help_panel=LABELS,
        help="In --labels: the classes shown to the annotator, as a|b|c.",
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        "--classes",
        metavar="A,B,C",
        rich_help_panel=LABELS,
        help="All classes, in order, if the labels don't name every one.",
    ),
]
MergeSpelling = Annotated[
    bool,
    typer.Option(
        "--merge-spelling", rich_help_panel=LABELS, help='Take "Cat" and "cat" for one class, written as most are.'
    ),
]
ContradictionsOption = Annotated[
    str,
    typer.Option(
        "--contradictions",
        metavar="raise|unlabel|keep",
        rich_help_panel=LABELS,
        help="What becomes of an item of which every class is said to be wrong.",
    ),
]
Transition = Annotated[
    str | None,
    typer.Option(
        "--transition",
        metavar="NAME",
        rich_help_panel=LABELS,
        help="For experiments: draw labels from the truth, uniform, biased-weak, biased-strong, or as published (clcifar10, ...).",
    ),
]
NLabels = Annotated[
    int | None,
    typer.Option(
        "--n-labels",
        min=1,
        rich_help_panel=LABELS,
        help="Labels to draw for each item (1), or to take of its annotators' (all).",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="All randomness comes from this number.")]
Scheme = Annotated[
    str,
    typer.Option(
        "--scheme", metavar="NAME", rich_help_panel=SHARING, help="How labels are shared: none, rss, rms, dss or dms."
    ),
]
Neighbors = Annotated[
    int | None,
    typer.Option(
        "--neighbors",
        min=1,
        rich_help_panel=SHARING,
        help="Neighbours that an item shares with; else 64, fewer in small classes.",
    ),
]
Alpha = Annotated[
    float,
    typer.Option("--alpha", rich_help_panel=SHARING, help="The weight of an item's own labels, above 0 and at most 1."),
]
Gamma = Annotated[
    str,
    typer.Option(
        "--gamma",
        metavar="NUMBER|auto",
        rich_help_panel=SHARING,
        help="How fast weights fall with squared distance (dss, dms).",
    ),
]
Space = Annotated[
    str,
    typer.Option(
        "--space",
        metavar="auto|standardised|cosine|pca|raw",
        rich_help_panel=SHARING,
        help="How items are compared; auto: columns standardised, embeddings by angle, large images by principal components.",
    ),
]
Encoder = Annotated[
    Path | None,
    typer.Option(
        "--encoder",
        metavar="FILE",
        rich_help_panel=SHARING,
        help="Compare items by an encoder of images (naysay pretrain), or by embeddings of your own: .npy, or file.parquet:column.",
    ),
]
Force = Annotated[bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Replace what is there already.")]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as JSON, for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", rich_help_panel=OUTPUT, help="Say nothing but the result.")]


def number_or_auto(gamma: str) -> float | str:
    """What --gamma says."""
    from naysay.errors import InputError

    if gamma == "auto":
        return gamma
    try:
        return float(gamma)
    except ValueError:
        raise InputError(f"--gamma must be a positive number or auto; got {gamma!r}.") from None
