"""The options that several commands share, each with its help, so that a word means the same everywhere.

The library speaks of arguments (`label="COLUMN"`), the command of flags (`--label COLUMN`): `in_flags` translates.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from naysay.errors import InputError

PANELS = ITEMS, LABELS, SHARING, TRAINING, OUTPUT = "Items", "Labels", "Sharing", "Training", "Output"


def option(panel: str | None, flag: str, metavar: str | None, help: str, **more: Any) -> Any:
    """An option in a panel of the help (None: the first); flags without a value, and numbers, need no metavar."""
    return typer.Option(flag, metavar=metavar, rich_help_panel=panel, help=help, **more)


items, labels, sharing, training, output = (partial(option, panel) for panel in PANELS)

DATA = "A CSV, Parquet, .npz or .npy file, a folder of images, or a known set such as digits (naysay data list)."
FEATURES = "Columns of any kind, or a pattern such as 'e*'; may be repeated. Else all that are not named otherwise."
LABEL = "A column that says what an item is NOT (empty: no label; -1 too, where classes are numbers); may be repeated."
LABELS_FILE = "Labels in a table of their own, one row per label: --item names the item, --label the class it is not."
FORMAT = (
    "How labels are written, if it is not seen: a matrix of codes, or the export of an annotation tool in --labels."
)
FORMATS = "dummies|signed|snorkel|label-studio|prodigy|argilla"
LABELS_SAY = (
    "What labels say of an item: what it is not, is, one of; or the column of --labels that tells for each row."
)
SAY = "not|is|one-of|chosen|COLUMN"
WEIGHED = "Count labels by how reliable their annotator is, as neighbours tell."
EVERY_CLASS = "What becomes of an item of which every class is said to be wrong."
DRAWN = (
    "For experiments: draw labels from the truth, uniform, biased-weak, biased-strong or published (clcifar10, ...)."
)
TRUE = (
    "Ordinary labels, where known: only for evaluation, never for training. Of images in a folder, a column of "
    "--labels, or else the names of subfolders."
)
FOLDER = "Where known sets lie; else $NAYSAY_DATA, else the cache folder."
MERGED = 'Take "Cat" and "cat" for one class, written as most are.'
N_LABELS = "Labels to draw for each item (1), or to take of its annotators' (all)."
NEIGHBORS = "Neighbours that an item shares with (else 64, fewer in small classes), or auto: chosen by hidden labels."
ALPHA = "The weight of an item's own labels, above 0 and at most 1, or auto: chosen by hidden labels."
GAMMA = (
    "How fast weights fall with squared distance (dss, dms; else 1 by angle, auto elsewhere); auto: by the distances."
)
CLASS_SHARES = "How common the classes are: corrects labels that favour some. FILE: a table with columns class, share."
SPACE = "How items are compared; auto: columns standardised, embeddings by angle, large images by principal components."
ENCODER = "Compare items by an encoder (naysay pretrain), or by embeddings of your own: .npy, or file.parquet:column."

Run = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that naysay fit made.")]
Data = Annotated[str, typer.Argument(metavar="DATA", help=DATA)]
Id = Annotated[str | None, items("--id", "COLUMN", "The column of item ids; else rows are numbered from 0.")]
Features = Annotated[list[str] | None, items("--features", "COLUMN", FEATURES)]
Ignore = Annotated[list[str] | None, items("--ignore", "COLUMN", "A column or pattern to leave out; may be repeated.")]
Truth = Annotated[str | None, items("--truth", "COLUMN", TRUE)]
Folder = Annotated[Path | None, items("--data", "FOLDER", FOLDER)]
Label = Annotated[list[str] | None, labels("--label", "COLUMN", LABEL)]
Labels = Annotated[Path | None, labels("--labels", "FILE", LABELS_FILE)]
Item = Annotated[str | None, labels("--item", "COLUMN", "In --labels: the column of item ids (else item, or id).")]
Annotator = Annotated[str | None, labels("--annotator", "COLUMN", "In --labels: the column that says who said so.")]
Options = Annotated[str | None, labels("--options", "COLUMN", "In --labels: the classes shown, as a|b|c.")]
Format = Annotated[str | None, labels("--format", FORMATS, FORMAT)]
LabelsSay = Annotated[str | None, labels("--labels-say", SAY, LABELS_SAY)]
Without = Annotated[list[str] | None, labels("--without", "NAME", "An annotator to leave out; may be repeated.")]
WeighAnnotators = Annotated[bool, labels("--weigh-annotators", None, WEIGHED)]
Classes = Annotated[str | None, labels("--classes", "A,B,C", "All classes, in order, if labels don't name every one.")]
MergeSpelling = Annotated[bool, labels("--merge-spelling", None, MERGED)]
ContradictionsOption = Annotated[str, labels("--contradictions", "raise|unlabel|keep", EVERY_CLASS)]
Transition = Annotated[str | None, labels("--transition", "NAME", DRAWN)]
NLabels = Annotated[int | None, labels("--n-labels", None, N_LABELS, min=1)]
Seed = Annotated[int, typer.Option("--seed", help="All randomness comes from this number.")]
Scheme = Annotated[str, sharing("--scheme", "NAME", "How labels are shared: none, rss, rms, dss or dms.")]
Neighbors = Annotated[str | None, sharing("--neighbors", "NUMBER|auto", NEIGHBORS)]
Alpha = Annotated[str, sharing("--alpha", "NUMBER|auto", ALPHA)]
Gamma = Annotated[str | None, sharing("--gamma", "NUMBER|auto", GAMMA)]
ClassShares = Annotated[str, sharing("--class-shares", "even|unknown|FILE", CLASS_SHARES)]
Space = Annotated[str, sharing("--space", "auto|standardised|cosine|pca|raw", SPACE)]
Encoder = Annotated[Path | None, sharing("--encoder", "FILE", ENCODER)]
Force = Annotated[bool, output("--force", None, "Replace what is there already.")]
Json = Annotated[bool, output("--json", None, "Print the result as JSON, for machines.")]
Quiet = Annotated[bool, output("--quiet", None, "Say nothing but the result.")]

# what the library calls what a flag gives; the flag is the same word, but for two
ARGUMENTS = (
    *("id", "label", "features", "ignore", "truth", "labels", "item", "annotator", "options", "classes", "data"),
    *("merge_spelling", "contradictions", "transition", "n_labels", "seed", "scheme", "n_neighbors", "alpha", "gamma"),
    *("rounds", "space", "encoder", "assume", "held_out", "folds", "apart", "force", "class_shares", "model", "budget"),
    *("whiten", "batch_size", "leave_out"),
    *("format", "labels_say", "without", "weigh_annotators"),
)
FLAGS = {name: f"--{name.replace('_', '-')}" for name in ARGUMENTS} | {
    "n_neighbors": "--neighbors",
    "batch_size": "--batch",
}
WORDS = FLAGS | {"cache": "$NAYSAY_DATA"}  # where features are kept is no option of its own
QUOTED = r"""(?<!\w)(?:'[^']*'|"[^"]*")"""  # what a user wrote: it stays as it is
ARGUMENT = rf"""(?<![\w/\\.-])({"|".join(WORDS)})=(?:"([^"]*)"|('[^']*'|\w+(?:\.\w+)*)|)"""  # not in a path
SPOKEN = re.compile(f"{QUOTED}|{ARGUMENT}")


def in_flags(sentence: str) -> str:
    """A sentence of the library as a user of the command must read it: arguments by their flags."""

    def flag(found: re.Match[str]) -> str:
        name, value = found[1], found[2] or found[3]
        if name is None:
            return found[0]
        return WORDS[name] if value in (None, "True") else f"{WORDS[name]} {value}"

    return SPOKEN.sub(flag, sentence)


def reading(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a command's arguments say about reading, as `naysay.read` takes it; those of other names say nothing."""
    from naysay.reading import read

    names = inspect.signature(read).parameters.keys() - {"data"}
    given = {name: asked[name] for name in names if asked.get(name) is not None}
    return {**given, "source": asked["data"], "data": asked["folder"], "classes": class_names(asked["classes"])}


def class_names(text: str | None) -> list[str] | None:
    """What --classes says."""
    return None if text is None else [name.strip() for name in text.split(",")]


def class_shares(text: str, classes: Sequence[str]) -> Any:
    """What --class-shares says, of these classes."""
    from naysay.reading import read_shares

    return {"unknown": None, "even": "even"}[text] if text in ("unknown", "even") else read_shares(text, classes)


def check_class_shares(text: str) -> None:
    """Raise InputError where --class-shares names neither a way nor a file, before anything is read."""
    if text not in ("unknown", "even") and not Path(text).is_file():
        raise InputError(f"--class-shares must be even, unknown or a file with columns class and share; got {text!r}.")


def how_shared(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What --neighbors, --alpha, --gamma and --whiten say, each a number or auto, by the library's names."""
    return {
        "n_neighbors": _number_or_auto("--neighbors", asked["neighbors"], "a whole number of at least 1", _whole),
        "alpha": _number_or_auto("--alpha", asked["alpha"], "a positive number"),
        "gamma": _number_or_auto("--gamma", asked["gamma"], "a positive number"),
        "whiten": _number_or_auto("--whiten", asked.get("whiten"), "a number from 0 to 1"),
    }


def _number_or_auto(flag: str, text: str | None, must: str, kind: Callable[[str], float] = float) -> float | str | None:
    try:
        return text if text in (None, "auto") else kind(str(text))
    except ValueError:
        raise InputError(f"{flag} must be {must} or auto; got {text!r}.") from None


def _whole(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError
    return number
