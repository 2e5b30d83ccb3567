"""An audit as plain text for a terminal: at most `WIDTH` columns, aligned, nothing that a terminal would obey."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from naysay.audit.shares import Fit, Share, percent, size

if TYPE_CHECKING:
    from naysay.audit.result import Audit

WIDTH = 100
NAME = 24  # columns for a name
ROWS = 20  # of a table
BAR = 20
MATRIX = 12  # classes up to which T is printed


def text(audit: "Audit") -> str:
    """The whole audit."""
    parts = [
        _head(audit),
        _labels(audit),
        _classes(audit),
        _people(audit),
        _shown(audit),
        _neighbours(audit),
        _twice(audit),
        _advice(audit),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def clean(name: str, width: int = NAME) -> str:
    """A name on one line of at most `width` columns, without control characters: names come from files."""
    flat = "".join(c if c.isprintable() else " " for c in name)
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def interval(share: Share) -> str:
    """A share with its interval."""
    return f"{percent(share.value)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def effect(fit: Fit) -> str:
    """A test in one line."""
    return (
        f"effect w = {fit.effect:.3f} [{fit.effect_low:.3f}, {fit.effect_high:.3f}], {size(fit.effect)}; "
        f"chi-square {fit.chi2:.1f} on {fit.df}, p {'< 0.0001' if fit.p_value < 1e-4 else f'= {fit.p_value:.4f}'}"
    )


def _head(audit: "Audit") -> list[str]:
    coverage = audit.coverage
    lines = [
        f"{coverage.items:,} items, {coverage.classes} classes, {coverage.labels:,} labels",
        "Intervals in [ ] are 95 %.",
    ]
    return ["Audit of complementary labels", "=" * 29, *lines]


def _labels(audit: "Audit") -> list[str]:
    coverage = audit.coverage
    last = len(coverage.by_labels) - 1
    counts = [
        (f"{m} or more" if m == last and coverage.most > last else str(m), f"{n:,}")
        for m, n in enumerate(coverage.by_labels)
        if n or m == 0
    ]
    lines = _title("Labels per item") + _table(("labels", "items"), counts)
    lines.append(f"  {coverage.mean:.2f} labels per labelled item; {interval(coverage.unlabelled)} without a label")
    if coverage.most_items:
        lines += _wrap(f"The most, {coverage.most}, have: {', '.join(clean(name) for name in coverage.most_items)}")
    lines.append(
        f"  {coverage.solved:,} items with all classes but one named, {coverage.contradicting:,} with every class "
        "named (a contradiction)"
    )
    return lines + (
        _wrap(f"Contradicting: {', '.join(clean(name) for name in coverage.contradicting_items)}")
        if coverage.contradicting
        else []
    )


def _classes(audit: "Audit") -> list[str]:
    most = max(row.named.value for row in audit.marginals.classes)
    rows = [
        (
            clean(row.name),
            f"{row.named.count:,}",
            interval(row.named),
            "above ceiling" if row.above_ceiling else "",
            "#" * round(BAR * row.named.value / most),
        )
        for row in audit.marginals.classes
    ]
    lines = _title("How often each class is named") + _table(("class", "labels", "share", "", ""), rows)
    return [*lines, *_wrap(audit.marginals.meaning), *_wrap(f"against even: {effect(audit.marginals.uniform)}")]


def _people(audit: "Audit") -> list[str]:
    people = audit.annotators
    if people is None:
        return []
    rows = [
        (
            clean(row.name, 16),
            f"{row.labels:,}",
            f"{clean(row.favourite, 8)} {percent(row.favourite_share.value, 0)}",
            f"{percent(row.agreement.value, 0)}" if row.agreement else "-",
            interval(row.suspected) if row.suspected else "-",
            " ".join(
                word for word, so in (("neighbours", row.contradicts_neighbours), ("one-sided", row.one_sided)) if so
            ),
        )
        for row in people.rows
    ]
    lines = _title(f"Annotators: {len(people.rows):,}") + _table(
        ("annotator", "labels", "favourite", "agree", "suspected", ""), rows
    )
    if people.agreement:
        lines += _wrap(
            f"Two annotators of one item name the same class in {interval(people.agreement)} of "
            f"{people.agreement.of:,} pairs; "
            f"independent, even naming would give {percent(people.chance)}. Different classes are no contradiction."
        )
    lines += (
        _wrap("suspected: labels that name the class to which clear neighbours point.") if audit.neighbourhood else []
    )
    return lines + ([f"  {people.unnamed:,} labels name no annotator"] if people.unnamed else [])


def _shown(audit: "Audit") -> list[str]:
    shown = audit.shown
    if shown is None:
        return []
    rows = [
        (clean(name), f"{share.of:,}", interval(share)) for name, share in zip(audit.classes, shown.named, strict=True)
    ]
    lines = _title(f"Options shown: {shown.rows:,} labels with options") + _table(
        ("class", "shown", "named when shown"), rows
    )
    places = ", ".join(f"{count:,}" for count in shown.positions)
    return [
        *lines,
        *_wrap(f"against even choice among those shown: {effect(shown.evenly)}"),
        *_wrap(f"Labels by place in the list, first to last: {places}; {effect(shown.position)}"),
        f"  {shown.not_shown:,} labels name a class that was not shown",
    ]


def _neighbours(audit: "Audit") -> list[str]:
    near = audit.neighbourhood
    if near is None:
        return _title("Noise and bias") + [line for reason in audit.not_told for line in _wrap(reason)]
    lines = _title("Noise and bias, estimated from neighbours, without ordinary labels")
    looked = "all" if near.rows == near.labelled else f"a random sample of {near.rows:,} of"
    lines += _wrap(
        f"{near.neighbors} neighbours each, of {looked} {near.labelled:,} labelled items; {near.clear:,} have clear "
        "neighbours."
    )
    if not near.told:
        return lines + _wrap(
            "The neighbours say nothing about an item's labels, so neither noise nor bias can be estimated from them."
        )
    lines += [
        f"  noise (labels that name the true class):  {interval(near.noise)} where neighbours are clear",
        f"                                            {interval(near.noise_everywhere)} everywhere",
        f"                                            {percent(near.random)} is what labels named at random would have",
    ]
    lines += _wrap(
        "The estimate leans high: features that mix classes look like noise. Read it as “at most”; the intervals "
        "cover counting only."
    )
    lines += _wrap(f"bias (how unevenly the wrong classes of one class are named): {effect(near.bias)}")
    if len(audit.classes) <= MATRIX:
        rows = [
            (clean(name, 12), *(f"{100 * p:.0f}" for p in row))
            for name, row in zip(audit.classes, near.transition, strict=True)
        ]
        lines += ["  T, estimated: of items likely of the row's class, per cent of labels that name the column's"]
        lines += _table(("", *(clean(name, 5) for name in audit.classes)), rows)
    if near.suspects:
        pairs = ", ".join(f"{clean(s.item)} (not {clean(s.named, 12)}?)" for s in near.suspects)
        lines += _wrap(f"Suspected items, at random, to look at: {pairs}")
    return lines


def _twice(audit: "Audit") -> list[str]:
    twice = audit.duplicates
    lines = []
    if twice.repeated_labels is not None:
        who = "item, annotator and label" if twice.by_whom else "item and label (no annotators tell them apart)"
        lines.append(f"  {twice.repeated_labels:,} rows of the table repeat another's {who}")
    if twice.copies is not None:
        lines.append(f"  {twice.copies:,} items copy another's features exactly, in {twice.groups:,} groups")
        lines.append(f"  {twice.conflicting:,} of these groups contradict themselves")
        for names in twice.examples[:3]:
            lines += _wrap(f"such as {', '.join(clean(name) for name in names)}")
    return _title("Duplicates") + lines if lines else []


def _advice(audit: "Audit") -> list[str]:
    lines = _title("What to do")
    for advice in audit.advice:
        lines += textwrap.wrap(
            clean(advice.text, 10**6), WIDTH, initial_indent=f"  {advice.level:<5} ", subsequent_indent=" " * 8
        )
    return lines


def _title(name: str) -> list[str]:
    return [name, "-" * len(name)]


def _wrap(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Aligned columns, those of numbers to the right; at most `ROWS` rows."""
    rows = list(rows)
    left_out = len(rows) - ROWS
    rows = rows[:ROWS] if left_out > 0 else rows
    widths = [max(len(row[j]) for row in [head, *rows]) for j in range(len(head))]
    numeric = [j > 0 and any(row[j][:1].isdigit() for row in rows) for j in range(len(head))]
    lines = [
        "  "
        ""
        + "  ".join(
            cell.rjust(w) if right else cell.ljust(w) for cell, w, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in [head, *rows]
    ]
    return lines + ([f"  ... and {left_out:,} more"] if left_out > 0 else [])
