"""Argilla's records as Parquet: a question's responses of people, beside a machine's suggestion.

A submitted response says "is" (of several values: one of them); a suggestion that differs from it says "not". Drafts
and discarded responses say nothing. Both layouts: that of version 2, question.responses (lists of values), with .users
and .status, and question.suggestion; and that before, a list of {user_id, value, status}, and question-suggestion.
Items are named by the column `item`; else by id, external_id or _server_id.
"""

from pathlib import Path
from typing import Any

from naysay import memory
from naysay.errors import InputError
from naysay.reading.class_names import class_label_names
from naysay.reading.exports.plain_json import dicts, name, texts
from naysay.reading.statements import NOTHING, Statement
from naysay.words import few

UNPACKED = 20  # times its packed bytes that a column of lists takes as Python's own values, about
FEWER = "Split it into several files."
IDS = ("id", "external_id", "_server_id")
SUBMITTED = ("submitted", None)


def recognises(file: Any) -> bool:
    """Whether the columns are those of such an export."""
    return bool(_questions(file.schema_arrow.names))


def _questions(columns: list[str]) -> list[str]:
    """The questions that people answered."""
    now = [column.removesuffix(".responses") for column in columns if column.endswith(".responses")]
    before = (column.removesuffix("-suggestion") for column in columns if column.endswith("-suggestion"))
    return now + [column for column in before if column in columns]


def read(file: Any, path: Path, item: str | None, label: str | None) -> list[Statement]:
    """What each response says. label: the question, where there are several."""
    columns = file.schema_arrow.names
    questions = _questions(columns)
    if (len(questions) != 1 and label is None) or (label is not None and label not in questions):
        raise InputError(
            f"{path} must hold one question with responses; got {few(questions) or 'none'}. Name it with label=."
        )
    asked = label or questions[0]
    key = item or next((column for column in IDS if column in columns), None)
    if key is None or key not in columns:
        raise InputError(f"{path} has no column of items; its columns are {few(columns)}. Name it with item=.")
    now = f"{asked}.responses" in columns
    ends = (".responses", ".responses.users", ".responses.status", ".suggestion") if now else ("", "-suggestion")
    wanted = [key, *(f"{asked}{end}" for end in ends if f"{asked}{end}" in columns)]
    # the names of class numbers, where the file says what its numbers are called
    called = enumerate(class_label_names(file.schema_arrow.metadata, f"{asked}{ends[-1]}") or ())
    number = {str(k): text for k, text in called}
    found = []
    for record in _records(file, path, wanted):
        whose = name(record[key])
        if whose is None:
            raise InputError(f"{path} has a record without {key!r}. Name the column of the items with item=.")
        suggested = tuple(number.get(text, text) for text in texts(record.get(f"{asked}{ends[-1]}")))
        found.append(Statement(whose, NOTHING, suggested))
        for value, who, status in _responses(record, asked, now):
            given = tuple(number.get(text, text) for text in texts(value))
            if status not in SUBMITTED or not given:
                found.append(Statement(whose, NOTHING, given))
                continue
            found.append(Statement(whose, "is", given, name(who)))
            if wrong := tuple(text for text in suggested if text not in given):
                found.append(Statement(whose, "not", wrong, name(who)))
    return found


def _records(file: Any, path: Path, wanted: list[str]) -> list[dict[str, Any]]:
    import pyarrow as pa

    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    size = sum(group.column(j).total_uncompressed_size for group in groups for j in range(group.num_columns))
    memory.afford(UNPACKED * size, str(path), FEWER)
    try:
        records: list[dict[str, Any]] = file.read(columns=wanted).to_pylist()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}). Export it again.") from error
    return records


def _responses(record: dict[str, Any], asked: str, now: bool) -> list[tuple[Any, Any, Any]]:
    """Each response's value, user and status."""
    if not now:
        return [(one.get("value"), one.get("user_id"), one.get("status")) for one in dicts(record.get(asked))]
    values = record.get(f"{asked}.responses")
    values = values if isinstance(values, list) else []
    beside = []
    for end in ("users", "status"):
        listed = record.get(f"{asked}.responses.{end}")
        beside.append(listed if isinstance(listed, list) and len(listed) == len(values) else [None] * len(values))
    return list(zip(values, *beside, strict=True))
