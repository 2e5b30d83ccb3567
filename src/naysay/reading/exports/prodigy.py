"""Prodigy's JSON lines (`prodigy db-out`): a question with its answer in each.

A question about one `label`: "accept" says "is", "reject" says "not", "ignore" nothing. A question with options: what
was accepted says "is" (of several: one of them); a rejected or ignored one says nothing of its item.
Items are named by `item`, a key of the task or of its meta; else by id. Source: https://prodi.gy/docs/api-interfaces
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from naysay.errors import InputError
from naysay.reading.exports.plain_json import dicts, name, texts
from naysay.reading.statements import NOTHING, Statement

ANSWERS = {"accept": "is", "reject": "not", "ignore": NOTHING}


def recognises(lines: Any) -> bool:
    """Whether this is such an export."""
    found = dicts(lines)
    return (
        bool(found)
        and all(one.get("answer") in (*ANSWERS, None) for one in found)
        and any("answer" in one for one in found)
    )


def read(lines: Any, path: Path, item: str | None, label: str | None) -> list[Statement]:
    """What each answer says. label: the key of the label, if it is not called so."""
    if not recognises(lines):
        raise InputError(f"{path} is no export of Prodigy: JSON lines, each with an answer (accept, reject or ignore).")
    return [one for line in dicts(lines) for one in _statements(line, path, item or "id", label or "label")]


def _statements(line: dict[str, Any], path: Path, item: str, label: str) -> Iterator[Statement]:
    says, meta = ANSWERS.get(str(line.get("answer")), NOTHING), line.get("meta")
    whose = name(line.get(item, meta.get(item) if isinstance(meta, dict) else None))
    if whose is None and says != NOTHING:
        text = str(line.get("text", line.get("image", "")))[:40]
        raise InputError(f"{path} has an answer without {item!r} ({text!r}); name the key of the items with item=.")
    who = name(line.get("_annotator_id", line.get("_session_id")))
    if "options" in line:
        shown = tuple(text for option in dicts(line["options"]) for text in texts(option.get("id")))
        yield Statement(whose, says if says == "is" else NOTHING, texts(line.get("accept")), who, shown)
    else:
        yield Statement(whose, says, texts(line.get(label)), who)
