"""JSON and JSON lines from outside, as plain values: read whole, within memory, and refused in one sentence."""

import json
import math
from pathlib import Path
from typing import Any

from naysay import memory
from naysay.errors import InputError

UNPACKED = 10  # times its text that JSON takes as Python's own values
FEWER = "Split it into several files."
NO_JSON = (ValueError, RecursionError)  # a ValueError is also what is not UTF-8, and numbers of too many digits


def load(path: Path) -> Any:
    """The value of a JSON file."""
    text = _text(path)
    try:
        return json.loads(text)
    except NO_JSON as error:
        raise InputError(f"{path} cannot be read as JSON ({str(error)[:100]}). Export it again.") from error


def load_lines(path: Path) -> list[Any]:
    """The values of a JSON lines file, or of a JSON list."""
    text = _text(path)
    if text.lstrip()[:1] == "[":
        listed = load(path)
        return listed if isinstance(listed, list) else [listed]
    found = []
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: text may hold other line ends
        if line.strip():
            try:
                found.append(json.loads(line))
            except NO_JSON as error:
                what = f"{path} cannot be read as JSON in line {number} ({str(error)[:100]})"
                raise InputError(f"{what}. Export it again.") from error
    return found


def _text(path: Path) -> str:
    memory.afford(UNPACKED * path.stat().st_size, str(path), FEWER)
    try:
        return path.read_text(encoding="utf-8-sig")
    except ValueError as error:
        raise InputError(f"{path} is not UTF-8 text ({error}). Save it as UTF-8.") from error


def dicts(value: Any) -> list[dict[str, Any]]:
    """Those of a list that are objects; of anything else, none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(value: Any) -> tuple[str, ...]:
    """Names in a value: a text or a number, or a list of them. NaN is no name, as in a table: pandas writes it so."""
    several = value if isinstance(value, list | tuple) else [value]
    plain = [one for one in several if isinstance(one, str | int | float) and not isinstance(one, bool)]
    if any(isinstance(one, float) and math.isinf(one) for one in plain):
        raise InputError("an export names something by the number infinity. Write a name in its place.")
    known = (one for one in plain if not (isinstance(one, float) and math.isnan(one)))
    return tuple(text for one in known if (text := str(one).strip()))


def name(value: Any) -> str | None:
    """One name, of an annotator or an item; an object has it as its email, username or id."""
    if isinstance(value, dict):
        value = next((value[key] for key in ("email", "username", "id") if value.get(key) is not None), None)
    found = texts(value)
    return found[0] if len(found) == 1 else None
