"""Names and numbers as sentences say them: percent, plurals, lists, a value with its error."""

from collections.abc import Iterable, Sequence


def percent(share: float, digits: int = 1) -> str:
    """A share as text, such as "4.2 %"."""
    return f"{100 * share:.{digits}f} %"


def with_error(share: float, error: float, sign: str = "") -> str:
    """A share with its standard error, in points of a hundred, with as many digits as the error leaves meaning."""
    digits = 1 if error >= 0.001 else 2
    return f"{100 * share:{sign}.{digits}f} ± {100 * error:.{digits}f}"


def between(low: float, high: float, digits: int = 1) -> str:
    """An interval of shares as a sentence has it: "88.1 to 93.9 %"."""
    return f"{100 * low:.{digits}f} to {percent(high, digits)}"


def count(n: int, noun: str) -> str:
    """So many of something: "1 label", "2,000 labels"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def joined(names: Sequence[str]) -> str:
    """All of the names: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def few(names: Iterable[object], most: int = 8, total: int | None = None) -> str:
    """The first `most` of the names, and how many more there are of `total` (or of the names): "a, b and 3 more"."""
    said = [str(name) for name in names]
    more = (len(said) if total is None else total) - min(len(said), most)
    return ", ".join(said[:most]) + (f" and {more:,} more" if more > 0 else "")


def shortened(text: str, letters: int = 40) -> str:
    """The text, cut to so many letters, the last of them "…"."""
    return text if len(text) <= letters else text[: letters - 1] + "…"


def quoted(name: str) -> str:
    """A name from a file as a sentence holds it: in quotation marks, and not too long."""
    return f"“{shortened(name)}”"


def writable(text: str) -> bool:
    """Whether a file can hold the text as UTF-8: names of files and JSON's escapes may stand for half a letter."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
