"""What is said of an item, as the classes that it is not: mixed evidence becomes one kind of label.

| says | of the classes A | names as wrong |
| --- | --- | --- |
| not | the item is none of A | A |
| is | it is the one class in A (of several: one of them) | all others |
| one-of | it is one of A | all others |
| chosen | A was chosen among the options shown | the options shown, but A |

So "is k" counts as K - 1 labels, which together weigh what one "not k" does in an item that has no other label. Beside
other labels they weigh more, as they tell more. They were not drawn one by one: what assumes so (noise, bias and T from
neighbours, their errors) reads K - 1 witnesses where there was one, and is too sure of itself.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from naysay import memory
from naysay.errors import InputError, unknown
from naysay.words import few

ROW_BYTES = 150  # about what a row of a long table takes, as lists of Python's own
# a draft, a suggestion, a question that was skipped: it names classes, and says nothing of its item
NOTHING = "nothing"
FEWER = "Give fewer rows or classes."
Numbers = Collection[int]


# the classes that each way to speak of an item rules out, of those said, those shown and all
KINDS: dict[str, Callable[[Numbers, Numbers, Numbers], list[int]]] = {
    "not": lambda said, shown, every: list(said),
    "is": lambda said, shown, every: _but(every, said),
    "one-of": lambda said, shown, every: _but(every, said),
    "chosen": lambda said, shown, every: _but(shown, said),
}


def _but(numbers: Numbers, said: Numbers) -> list[int]:
    """The numbers but those said, which may be hundreds of thousands."""
    known = frozenset(said)
    return [k for k in numbers if k not in known]


class Statement(NamedTuple):
    """Somebody says something of an item: texts of classes, and of the options shown, where they are known."""

    item: Any
    says: str
    classes: tuple[str, ...]
    who: str | None = None
    shown: tuple[str, ...] | None = None


def find_kind(text: Any) -> str:
    """The kind that a cell of a column means."""
    name = str(text).strip().lower().replace(" ", "-").replace("_", "-")
    if name not in KINDS:
        raise unknown("way to say something of an item", text, KINDS)
    return name


def as_rows(statements: Sequence[Statement], names: tuple[str, ...], number: Any, strict: bool) -> dict[str, Any]:
    """Long rows of what statements rule out, one class each: item, label, annotator, and says where not all say "not".

    `number`: the class number of a text, of which those that say nothing are not in it. strict: refuse a class that was
    not among the options shown.
    """
    if all(one.says == "not" and one.shown is None and len(one.classes) < 2 for one in statements):
        return _plain_rows(statements, {text: names[k] for text, k in number.items()})
    table: dict[str, list[Any]] = {"item": [], "label": [], "annotator": [], "says": [], "options": []}
    every, plain = range(len(names)), True
    for row, one in enumerate(statements):
        said, shown = (
            list(dict.fromkeys(number[text] for text in texts or () if text in number))
            for texts in (one.classes, one.shown)
        )
        if one.shown is not None and strict and (odd := next((k for k in said if k not in shown), None)) is not None:
            among = f"the options shown {few(names[k] for k in shown)}"
            raise InputError(f"row {row} names class {names[odd]!r}, which was not among {among}.")
        if one.says == "chosen" and one.shown is None:
            raise InputError(f'row {row} was chosen among options, which are not known; pass options="COLUMN" too.')
        ruled_out: list[int] = KINDS[one.says](said, shown, every) if said else []
        plain = plain and one.says == "not"
        if len(table["item"]) % 1000 < len(ruled_out):
            memory.afford(ROW_BYTES * (len(table["item"]) + len(ruled_out)), "labels in long rows", FEWER)
        named: list[str | None] = [names[k] for k in ruled_out] or [None]
        table["item"] += [one.item] * len(named)
        table["label"] += named
        table["annotator"] += [one.who] * len(named)
        table["says"] += [one.says] * len(named)
        table["options"] += [[names[k] for k in shown]] * len(named)  # one list, which nobody changes
    # of "not" alone the place in the list of options tells something, of the others it does not
    left_out = ["says"] if plain else ["options"]
    left_out += [] if any(who is not None for who in table["annotator"]) else ["annotator"]
    left_out += [] if any(table["options"]) else ["options"]
    return {name: column for name, column in table.items() if name not in left_out}


def _plain_rows(statements: Sequence[Statement], spelled: Mapping[str, str]) -> dict[str, Any]:
    """The rows of statements that say "not" of one class, as most do: half a million of them are read 5 s sooner so."""
    rows: dict[str, Any] = {"item": [one.item for one in statements]}
    rows["label"] = [spelled.get(one.classes[0]) if one.classes else None for one in statements]
    who = [one.who for one in statements]
    return rows | ({"annotator": who} if any(name is not None for name in who) else {})
