"""Label Studio's JSON export: a list of tasks with annotations (of people) and predictions (of machines).

What a person chose says "is" (of several choices: one of them). A prediction that the person changed or removed says
"not". An annotation that a reviewer rejected says "not" of what was chosen. Skipped ones (was_cancelled) say nothing.
Items are named by `item`, a key of the task's data; else by its key id or item; else by the task's own id.
Source: https://labelstud.io/guide/task_format
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from naysay.errors import InputError
from naysay.reading.exports.plain_json import dicts, name, texts
from naysay.reading.statements import NOTHING, Statement
from naysay.words import few


def recognises(tasks: Any) -> bool:
    """Whether this is such an export."""
    found = dicts(tasks)
    return bool(found) and all(isinstance(task.get("data"), dict) and _annotations(task) is not None for task in found)


def read(tasks: Any, path: Path, item: str | None, label: str | None) -> list[Statement]:
    """What is said of each task. label: the from_name of the choices, where there are several."""
    if not recognises(tasks):
        raise InputError(f"{path} is no JSON export of Label Studio: a list of tasks with data and annotations.")
    given = (one for task in dicts(tasks) for one in dicts(_annotations(task)) + dicts(task.get("predictions")))
    asked = {str(part.get("from_name")) for one in given for part in _choices(one)}
    if len(asked) > 1 and label is None:
        raise InputError(f"{path} holds choices of several questions ({few(sorted(asked))}): name one with label=.")
    if not asked or (label is not None and label not in asked):
        got = few(sorted(asked)) or "none"
        raise InputError(f"{path} must hold choices{'' if label is None else f' named {label!r}'}; got {got}.")
    return [one for task in dicts(tasks) for one in _statements(task, path, item, label)]


def _annotations(task: dict[str, Any]) -> Any:
    found = task.get("annotations", task.get("completions"))  # as it was called before 1.0
    return found if isinstance(found, list) else None


def _choices(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [part for part in dicts(one.get("result")) if part.get("type") == "choices"]


def _chosen(one: dict[str, Any], label: str | None) -> tuple[str, ...]:
    values = (part.get("value") for part in _choices(one) if label is None or part.get("from_name") == label)
    found = (texts(value.get("choices")) for value in values if isinstance(value, dict))
    return tuple(dict.fromkeys(text for several in found for text in several))


def _statements(task: dict[str, Any], path: Path, item: str | None, label: str | None) -> Iterator[Statement]:
    data = task["data"]
    key = item or next((key for key in ("id", "item") if key in data), None)
    whose = name(data.get(key)) if key is not None else name(task.get("id"))
    if whose is None:
        raise InputError(f"{path} has a task (id {task.get('id')}) without {key or 'id'!r}; name the key with item=.")
    predicted = {text: None for one in dicts(task.get("predictions")) for text in _chosen(one, label)}
    yield Statement(whose, NOTHING, tuple(predicted))
    for one in dicts(_annotations(task)):
        if one.get("was_cancelled"):
            continue
        chosen, who = _chosen(one, label), name(one.get("completed_by"))
        refused = [review for review in dicts(one.get("reviews")) if review.get("accepted") is False]
        if refused:
            yield Statement(whose, "not", chosen, name(refused[0].get("created_by")))
            continue
        if chosen:
            yield Statement(whose, "is", chosen, who)
        if wrong := tuple(text for text in predicted if text not in chosen):
            yield Statement(whose, "not", wrong, who)
