"""Class names as people write them: which are classes, which are one class in two spellings, and in what order.

Two names are taken for one class when they differ only in case, in white space or in how Unicode composes a letter
("Café", "cafe\u0301 "). Guessing either way would be silent, so it is an error: merge them, or name both as classes.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

from naysay.datasets.columns import read_columns
from naysay.errors import InputError
from naysay.words import few, writable

Names = Sequence[str]
NUMBER = re.compile(r"-[0-9]{1,17}|[0-9]{1,18}")  # ASCII only: int() also reads digits that no program wrote
UNLABELLED = "-1"  # where every other label is a whole number, as in arrays of class numbers


@dataclass(frozen=True)
class Classes:
    """The classes in order, and the number of the class of each text; texts that say "no label" are not in it."""

    names: tuple[str, ...]
    number: Mapping[str, int]


def find_classes(
    counts: Mapping[str, int], wanted: Names | None = None, *, merge_spelling: bool = False, who: str = "a label"
) -> Classes:
    """The classes of texts that were given so many times each: `wanted` in its order, or all that were given, sorted.

    merge_spelling: texts that differ only in spelling are one class, written as most of them are (or as in `wanted`).
    who: whose texts they are.
    """
    refuse_unwritable([*counts, *(wanted or ())])
    nothing = {UNLABELLED} if _numbers(set(counts) - {UNLABELLED}) else set()
    texts = [text for text in counts if text not in nothing or text in (wanted or ())]
    if wanted is not None:
        return _among(texts, tuple(wanted), merge_spelling, who)
    alike: dict[str, list[str]] = {}
    for text in sorted(texts):
        alike.setdefault(spelling_key(text), []).append(text)
    for spellings in alike.values():
        if len(spellings) > 1 and not merge_spelling:
            ways = f"{len(spellings)} ways, {' and '.join(map(repr, spellings[:3]))}"
            way_out = "take them for one with merge_spelling=True, or name each with classes= if they differ"
            raise InputError(f"one class is spelled in {ways}: correct them, {way_out}.")
    stands = {text: max(spellings, key=lambda name: counts[name]) for spellings in alike.values() for text in spellings}
    chosen, whole = set(stands.values()), _numbers(stands.values())
    names = tuple(sorted(chosen, key=lambda name: (int(name) if whole else 0, name)))  # numbers by size, else as text
    place = {name: k for k, name in enumerate(names)}
    return Classes(names, {text: place[name] for text, name in stands.items()})


def refuse_unwritable(names: Iterable[str]) -> None:
    """Refuse the name of a class that no file of results could hold: before the work, not at its end."""
    for name in names:
        if not writable(name):
            raise InputError(f"the class {name!r} has a name that is not UTF-8 text. Rename it.")


def spelling_key(name: str) -> str:
    """What two spellings of one name share."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def read_shares(file: str | PathLike[str], classes: Names) -> list[float]:
    """How common the classes are, in their order, from a table with the columns class and share (or counts).

    Every class stands in it once; the numbers are divided by their sum.
    """
    columns = read_columns(file, ["class", "share"])
    stated: dict[str, float] = {}
    for name, text in zip(columns["class"].tolist(), columns["share"].tolist(), strict=True):
        try:
            value = float(text)
        except (TypeError, ValueError):
            value = -1.0
        if not 0 <= value < float("inf") or name not in classes or name in stated:
            got = f"class {name!r} with share {text!r}"
            wants = f"{file} must have a row for each class ({few(map(repr, classes))}) with a share of at least 0"
            raise InputError(f"{wants}; got {got}{' a second time' if name in stated else ''}.")
        stated[name] = value
    missing = [name for name in classes if name not in stated]
    if missing or not sum(stated.values()):
        what = f"nothing of {few(map(repr, missing))}" if missing else "shares of 0 only"
        raise InputError(f"{file} must say how common every class is; got {what}.")
    return [stated[name] / sum(stated.values()) for name in classes]


def _among(texts: Names, wanted: tuple[str, ...], merge_spelling: bool, who: str) -> Classes:
    twice = next((name for i, name in enumerate(wanted) if name in wanted[:i] or not name), None)
    if twice is not None:
        got = f"{twice!r}{' twice' if twice else ''}"
        raise InputError(f"the classes must be different names, none of them empty; got {got}.")
    place = {name: k for k, name in enumerate(wanted)}
    by_key = {spelling_key(name): k for name, k in place.items()}
    found = dict(place)
    for text in (text for text in texts if text not in place):
        near = by_key.get(spelling_key(text))
        if near is None or not merge_spelling:
            merge = None if near is None else f"take it for {wanted[near]!r} with merge_spelling=True"
            hint = f"Correct it, or {merge or 'name all classes with classes='}"
            among = f"which is not among the classes {few(map(repr, wanted))}"
            raise InputError(f"{who} names the class {text!r}, {among}. {hint}.")
        found[text] = near
    return Classes(wanted, found)


def _numbers(names: Collection[str]) -> bool:
    return len(names) > 0 and all(NUMBER.fullmatch(name) for name in names)
