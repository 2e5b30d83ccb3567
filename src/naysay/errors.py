"""What goes wrong because of what was given: one sentence with what is wrong, what was got, and the way out.

The command prints such a sentence and exits with 2; a library user catches it as the ValueError it is.
"""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, what was got, and the way out."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a table: `raise unknown("loss", "slc-nl", LOSSES)` points at scl-nl."""
    names = sorted(known)
    near = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    return InputError(f"unknown {kind} {name!r}: {hint}The known ones are {', '.join(names)}.")
