"""What `naysay.read` is asked, as one record that all who read take; the words are its own, and are explained there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from naysay.errors import InputError
from naysay.labels import Contradictions
from naysay.reading.classes import Classes, Names, find_classes


@dataclass(frozen=True)
class Asked:
    """The arguments of `read` but its source and data folder; names that may be several are lists."""

    id: str | None
    label: Sequence[str]
    features: Sequence[str]
    ignore: Sequence[str]
    truth: str | None
    labels: Path | None
    item: str | None
    annotator: str | None
    options: str | None
    format: str | None
    labels_say: str | None
    without: Sequence[str]
    weigh_annotators: bool
    classes: Names | None
    merge_spelling: bool
    contradictions: Contradictions
    transition: str | None
    n_labels: int | None
    seed: int
    strict: bool

    def find(self, counts: Mapping[str, int], who: str = "a label", among: Names | None = None) -> Classes:
        """The classes of texts that were given so many times each, or which of the classes `among` they name."""
        return find_classes(counts, among or self.classes, merge_spelling=self.merge_spelling, who=who)


MEANT = {
    "id": "what an item is called",
    "item": "what an item is called",
    "label": "what is said of an item",
    "truth": "what an item is",
    "annotator": "who said it",
    "options": "the classes that were shown",
    "labels_say": "how it is meant",
}


def refuse_shared(**columns: str | Sequence[str] | None) -> None:
    """Raise InputError where one column of a file is named by two of the arguments, which mean different things."""
    seen: dict[str, str] = {}
    for argument, given in columns.items():
        for name in [given] if isinstance(given, str) else given or ():
            if (first := seen.setdefault(name, argument)) != argument:
                either = f"{MEANT[first]}, or {MEANT[argument]}"
                both = f"{first}= and {argument}= both name {name!r}, which can only say one thing: {either}"
                raise InputError(f"{both}. Name another one, or leave one of them out.")


def only_one(argument: str, names: Names) -> str | None:
    """The one name, or none, that was given for an argument that may have several elsewhere."""
    if len(names) > 1:
        raise InputError(f"only one {argument}= can be named here; got {', '.join(names)}.")
    return names[0] if names else None
