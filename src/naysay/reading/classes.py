"""Class names as people write them: which are classes, which are one class in two spellings, and in what order.

Two names are taken for one class when they differ only in case, in white space or in how Unicode composes a letter
("Café", "cafe\u0301 "). Guessing either way would be silent, so it is an error: merge them, or name both as classes.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from naysay.errors import InputError

UNLABELLED = "-1"  # where every other label is a whole number, as in arrays of class numbers


@dataclass(frozen=True)
class Classes:
    """The classes in order, and the number of the class of each text; texts that say "no label" are not in it."""

    names: tuple[str, ...]
    number: Mapping[str, int]

    def spelled(self, text: str | None) -> str | None:
        """The class that a text means, in the spelling that stands for it; None where it means none."""
        return None if text is None or text not in self.number else self.names[self.number[text]]


def find_classes(
    counts: Mapping[str, int],
    wanted: Sequence[str] | None = None,
    *,
    merge_spelling: bool = False,
    who: str = "a label",
) -> Classes:
    """The classes of texts that were given so many times each: `wanted` in its order, or all that were given, sorted.

    merge_spelling: texts that differ only in spelling are one class, written as most of them are (or as in `wanted`).
    who: whose texts they are.
    """
    nothing = {UNLABELLED} if _numbers(set(counts) - {UNLABELLED}) else set()
    texts = [text for text in counts if text not in nothing or text in (wanted or ())]
    if wanted is not None:
        return _among(texts, tuple(wanted), merge_spelling, who)
    alike: dict[str, list[str]] = {}
    for text in sorted(texts):
        alike.setdefault(spelling_key(text), []).append(text)
    for spellings in alike.values():
        if len(spellings) > 1 and not merge_spelling:
            some = " and ".join(map(repr, spellings[:3]))
            raise InputError(
                f"one class is spelled in {len(spellings)} ways, {some}: correct them, take them for one with "
                "merge_spelling=True, or name each with classes= if they differ."
            )
    stands = {text: max(spellings, key=lambda name: counts[name]) for spellings in alike.values() for text in spellings}
    names = in_order(set(stands.values()))
    place = {name: k for k, name in enumerate(names)}
    return Classes(names, {text: place[name] for text, name in stands.items()})


def spelling_key(name: str) -> str:
    """What two spellings of one name share."""
    return "".join(unicodedata.normalize("NFKC", name).casefold().split())


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names sorted: whole numbers by size, all else as text."""
    names = set(names)
    return tuple(sorted(names, key=lambda name: (int(name), name)) if _numbers(names) else sorted(names))


def _among(texts: Sequence[str], wanted: tuple[str, ...], merge_spelling: bool, who: str) -> Classes:
    twice = next((name for i, name in enumerate(wanted) if name in wanted[:i] or not name), None)
    if twice is not None:
        raise InputError(
            f"the classes must be different names, none of them empty; got {twice!r}{' twice' if twice else ''}."
        )
    place = {name: k for k, name in enumerate(wanted)}
    by_key = {spelling_key(name): k for name, k in place.items()}
    found = dict(place)
    for text in texts:
        near = by_key.get(spelling_key(text))
        if text in place:
            continue
        if near is None or not merge_spelling:
            hint = "name all classes with classes="
            if near is not None:
                hint = f"take it for {wanted[near]!r} with merge_spelling=True"
            raise InputError(
                f"{who} names the class {text!r}, which is not among the classes {_few(wanted)}. Correct it, or {hint}."
            )
        found[text] = near
    return Classes(wanted, found)


def _numbers(names: Iterable[str]) -> bool:
    names = list(names)
    # ASCII only: int() also reads digits that no program wrote, and str.isdecimal has no sign
    return bool(names) and all(
        name.removeprefix("-").isdecimal() and name.isascii() and len(name) < 19 for name in names
    )


def _few(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
