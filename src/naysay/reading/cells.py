"""Cells that hold several labels: `a|b`, a JSON list (`["a", "b"]`, or as Python writes it), `a;b` and `a, b`.

A bar or a list is never part of a name, unless the classes are named and it is. Semicolons and commas are part of many
("Smith, John"), so such a cell is several labels only where every part is a class: one of those that were named, or
one that stands alone in another cell. That is a guess, and is told.
"""

import ast
import json
import warnings
from collections.abc import Mapping

from naysay.reading.classes import Names, spelling_key
from naysay.words import shortened

LONGEST = 10_000  # letters of a list in a cell; a longer text is no list of classes
Parts = dict[str, tuple[str, ...]]


def split_cells(counts: Mapping[str, int], wanted: Names | None) -> Parts:
    """The labels of each text that holds several, of texts with their counts; `wanted`: the classes, if named."""
    named = set(wanted or ())
    found: Parts = {}
    for text in counts.keys() - named:
        parts = _listed(text) if text[:1] == "[" and text[-1:] == "]" else None
        if parts is None and "|" in text:
            parts = _parts(text, "|")
        if parts is not None:
            found[text] = parts
    alone = named or {text for text in counts if text not in found}.union(*found.values())
    known = {spelling_key(name) for name in alone}
    guessed: Parts = {}
    for text in counts.keys() - named - found.keys():
        for mark in ";,":
            parts = _parts(text, mark)
            if len(parts) > 1 and all(spelling_key(part) in known for part in parts):
                guessed[text] = parts
    if guessed:
        example = min(guessed)
        cells = sum(counts[text] for text in guessed)
        way_out = "name all classes with classes= if it is one"
        warnings.warn(
            f"{cells:,} cells such as {shortened(example)!r} are read as several labels; {way_out}", stacklevel=5
        )
    return found | guessed


def _parts(text: str, mark: str) -> tuple[str, ...]:
    return tuple(part for piece in text.split(mark) if (part := piece.strip()))


def _listed(text: str) -> tuple[str, ...] | None:
    """The names of a list as JSON or as Python writes it; None where it is none."""
    if len(text) > LONGEST:
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            names = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(names, list) and all(isinstance(name, str | int) for name in names):
            return tuple(part for name in names if (part := str(name).strip()))
    return None
