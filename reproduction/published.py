"""What the paper reports, read from `published.toml`: for a place in a table and a figure a share between 0 and 1.

Where the paper gives a mean "± sd" over its runs, the sd is here too.
A place is what rows and columns of a table stand for: {"loss": "pc", "scheme": "dms", "dataset": "cifar10"}.
"""

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RUNS = 5  # behind every published mean
FILE = Path(__file__).parent / "published.toml"

Key = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Number:
    """A published mean and its standard deviation over runs, None where the paper gives none."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True)
class Published:
    """The published numbers of one table or figure: where they stand, what to know of them, and each by its place."""

    source: str
    note: str
    values: Mapping[Key, Number]

    def at(self, place: Mapping[str, Any], figure: str) -> Number | None:
        """The published value, or None where there is none."""
        return self.values.get(_key({**place, "figure": figure}))

    @property
    def figures(self) -> list[str]:
        """The figures that have a published value, in the order of the file."""
        return list(dict.fromkeys(dict(key)["figure"] for key in self.values))


@functools.cache
def published(name: str) -> Published:
    """What the paper says in the table or figure of that name."""
    tables = tomllib.loads(FILE.read_text(encoding="utf-8"))
    table = tables.get(name, {"none": "No published values are known for this."})
    if "none" in table:
        return Published("", table["none"], {})
    if "like" not in table:
        return Published(table["source"], table.get("note", ""), _values(table))
    renamed: Mapping[str, str] = table["rename"]
    values = {
        frozenset((what, renamed.get(word, word)) for what, word in key): value
        for key, value in _values(tables[table["like"]]).items()
        if {word for _, word in key} & set(renamed)
    }
    return Published(table["source"], table["note"], values)


def _values(table: Mapping[str, Any]) -> dict[Key, Number]:
    scale = {"percent": 100.0, "share": 1.0}[table["unit"]]
    fixed = table.get("fixed", {})
    return {
        _key({**fixed, **_named(table["row"], row), **_named(table["column"], column)}): _number(value, scale)
        for row, line in table["values"].items()
        for column, value in zip(table["columns"], line, strict=True)
    }


def _number(value: float | str, scale: float) -> Number:
    """A number, or a text "mean ± sd", as shares."""
    mean, _, sd = str(value).partition(" ± ")
    return Number(float(mean) / scale, float(sd) / scale if sd else None)


def _named(names: list[str], words: str) -> dict[str, str]:
    return dict(zip(names, words.split(" / "), strict=True))


def _key(place: Mapping[str, Any]) -> Key:
    return frozenset((name, str(value)) for name, value in place.items())
