"""Exports of annotation tools, as statements: what a person said, and what of a machine's suggestions was refused.

A person's choice says what an item is; a suggestion that a person changed, refused or removed says what it is not. To
take the refusals alone, pass labels_say="not".
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from naysay.datasets.opening import open_parquet
from naysay.reading.exports import argilla, label_studio, prodigy
from naysay.reading.exports.plain_json import load, load_lines
from naysay.reading.statements import Statement

open_records = partial(open_parquet, way_out="Export it again.")


@dataclass(frozen=True)
class Export:
    """A tool's format: whether a file is one, and its statements; `item` and `label` name the fields, if they are."""

    name: str
    endings: tuple[str, ...]
    recognises: Callable[[Any], bool]
    open: Callable[[Path], Any]
    read: Callable[[Any, Path, str | None, str | None], Sequence[Statement]]


EXPORTS = {
    row.name: row
    for row in (
        Export("label-studio", (".json",), label_studio.recognises, load, label_studio.read),
        Export("prodigy", (".jsonl", ".json"), prodigy.recognises, load_lines, prodigy.read),
        Export("argilla", (".parquet", ".pq"), argilla.recognises, open_records, argilla.read),
    )
}
