"""The result of an audit, a tree of frozen dataclasses, and its three forms: a dict for JSON, text for a terminal, HTML
for a page.
"""

from dataclasses import asdict, dataclass
from typing import Any, Self

from naysay.audit.advice import Advice
from naysay.audit.annotators import Annotators, Shown
from naysay.audit.counts import Coverage, Marginals
from naysay.audit.duplicates import Duplicates
from naysay.audit.nearby import Neighbourhood
from naysay.errors import InputError


@dataclass(frozen=True)
class Audit:
    """What the labels are like. A part is None where nothing was given to tell it from; `not_told` says what and why."""

    classes: tuple[str, ...]
    coverage: Coverage
    marginals: Marginals
    annotators: Annotators | None
    shown: Shown | None
    duplicates: Duplicates
    neighbourhood: Neighbourhood | None
    not_told: tuple[str, ...]
    advice: tuple[Advice, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The audit as dicts, lists, strings, numbers, booleans and None; `from_dict` reads it back."""
        plain: dict[str, Any] = _listed(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The audit that `as_dict` wrote, checked."""
        from pydantic import TypeAdapter, ValidationError

        try:
            audit: Self = TypeAdapter(cls).validate_python(plain)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"this is not an audit: {'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}. Run the audit "
                "again."
            ) from None
        return audit

    def as_text(self) -> str:
        """The audit as plain text of at most 100 columns."""
        from naysay.audit.text import text

        return text(self)

    def as_html(self) -> str:
        """The audit as one self-contained <section>, to be put into a page."""
        from naysay.audit.page import section

        return section(self)


def _listed(value: Any) -> Any:
    """Tuples as lists, all the way down: what JSON would give back."""
    if isinstance(value, dict):
        return {key: _listed(part) for key, part in value.items()}
    return [_listed(part) for part in value] if isinstance(value, list | tuple) else value
