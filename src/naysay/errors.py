"""What goes wrong because of what was given: one sentence with what is wrong, what was got, and the way out.

The command prints such a sentence and exits with 2; a library user catches it as the ValueError it is.
"""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from os import PathLike

# what Python raises where a value is missing, or of another type, size or shape than it was
MISSING = (AttributeError, LookupError, StopIteration)
UNFIT = (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError)


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, what was got, and the way out."""


class Ended(SystemExit):
    """Somebody asked this process to end, by a signal; the code is 128 and the signal's number.

    A job that exits has an outcome; one that is ended with its process has none, and is not tried again.
    """


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a table: `raise unknown("loss", "slc-nl", LOSSES)` points at scl-nl."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return InputError(f"unknown {kind} {name!r}: {hint}The known ones are {', '.join(names)}.")


@contextmanager
def intact(path: str | PathLike[str], way_out: str) -> Iterator[None]:
    """Around what is made of a file of ours: where it stumbles over its content, the file is not as it was written."""
    try:
        yield
    except InputError as error:
        if str(path) in str(error):
            raise
        raise InputError(f"{path}: {error}") from error
    except (*MISSING, *UNFIT) as error:
        found = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise InputError(f"{path} is damaged or was changed ({found}). {way_out}") from error
