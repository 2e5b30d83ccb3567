"""What to do about it: plain sentences chosen by rules from what an audit found. Every threshold stands here with its
reason.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from naysay.audit.shares import MEDIUM, SMALL, percent

if TYPE_CHECKING:
    from naysay.audit.result import Audit

Level = Literal["act", "look", "fine"]

UNLABELLED = 0.05  # below this, leaving unlabelled items out costs less than any choice of loss
# of the noise of random labels (1 / K): features that mix classes alone look like 0.07 (CIFAR-10, kNN accuracy 82 %)
NOISE = 0.2
# neighbours that avoid the likely class less than half of what they could make noise and mixed classes hard to tell
# apart
FORESIGHT = 0.5
# settings differ by a few points: a held-out tenth whose error is 5 cannot choose among them
HELD_OUT, ACCURACY, BLURRED = 0.1, 0.8, 0.05
# a hundredth of copies, split between training and held-out rows, already flatters an estimate by a point
COPIES = 0.01
NAMED_IN_TEXT, LONGEST = 5, 40  # names in one sentence, and letters of a name


@dataclass(frozen=True)
class Advice:
    """One sentence or two: `act` on it before training, `look` into it, or all is `fine`."""

    level: Level
    text: str


def advise(audit: "Audit") -> tuple[Advice, ...]:
    """What the rules say of an audit, the most pressing first."""
    found = [advice for rule in RULES for advice in rule(audit)]
    if not any(advice.level == "act" for advice in found):
        found.append(
            Advice("fine", "Nothing stands in the way of training: start with the loss scl-nl and the scheme dms.")
        )
    return tuple(sorted(found, key=lambda advice: ("act", "look", "fine").index(advice.level)))


def _contradictions(audit: "Audit") -> Iterator[Advice]:
    coverage = audit.coverage
    if coverage.contradicting:
        yield Advice(
            "act",
            f"{_count(coverage.contradicting, 'item')} with every class named as wrong "
            f"({_some(coverage.contradicting_items, coverage.contradicting)}): "
            'take the labels again, or pass contradictions="unlabel" to leave them to their neighbours.',
        )
    if audit.duplicates.conflicting:
        yield Advice(
            "act",
            f"{_count(audit.duplicates.conflicting, 'group')} of items with the same features whose labels together "
            "name every class "
            f"(such as {_some(audit.duplicates.examples[0])}): one of those labels is wrong, or the features leave "
            "out what matters.",
        )
    if coverage.solved:
        yield Advice(
            "fine",
            f"{_count(coverage.solved, 'item')} with all classes but one named: their class is known if the labels "
            "are right, so they can "
            "serve to check a model.",
        )


def _unlabelled(audit: "Audit") -> Iterator[Advice]:
    unlabelled = audit.coverage.unlabelled
    if unlabelled.value > UNLABELLED:
        yield Advice(
            "look",
            f"{percent(unlabelled.value, 0)} of the items have no label: sharing labels between neighbours "
            "(naysay.augment, scheme dms) "
            "gives them some, training without it ignores them.",
        )


def _few_labels(audit: "Audit") -> Iterator[Advice]:
    coverage = audit.coverage
    held = HELD_OUT * (coverage.items - coverage.unlabelled.count)
    # the standard error of the estimated accuracy, (K - 1) times that of the share q = (1 - accuracy) / (K - 1) of hits
    # on labels
    error = math.sqrt((1 - ACCURACY) * (coverage.classes - 1 - (1 - ACCURACY)) / held)
    if error > BLURRED:
        yield Advice(
            "look",
            "There are few labels for choosing settings: on a held-out tenth the estimated accuracy has a standard "
            "error of about "
            f"{100 * error:.0f} points. Compare settings on the same rows, hold out more, or keep the default "
            "settings.",
        )


def _bias(audit: "Audit") -> Iterator[Advice]:
    near = audit.neighbourhood
    if near is not None and near.told:
        effect = (
            f"for a given class, a typical wrong class is named {percent(near.bias.effect, 0)} more or less often "
            "than even naming would"
        )
        if near.bias.effect_low > MEDIUM:
            yield Advice(
                "act",
                f"The labels are biased: {effect} ({_between(near.bias.effect_low, near.bias.effect_high)}). "
                "Losses that assume even naming (pc, l-w, and ure and ure-ga without a T) will be off: take scl-nl, "
                "or fwd with the "
                "estimated T, and compare the two by the criterion scel, because the stronger the bias, the rougher "
                "that T.",
            )
        elif near.bias.effect_low > SMALL:
            yield Advice(
                "look",
                f"The labels are somewhat biased: {effect}. scl-nl takes that well; compare it with fwd and the "
                "estimated T.",
            )
    elif any(row.above_ceiling for row in audit.marginals.classes):
        high = [row.name for row in audit.marginals.classes if row.above_ceiling]
        yield Advice(
            "act",
            f"The labels are biased towards {_some(high)}: no even naming gives a class that large a share. Take "
            "scl-nl rather than ure, "
            "and audit with features that tell the classes apart to have the transition T estimated.",
        )
    elif audit.marginals.uniform.effect_low > SMALL:
        yield Advice(
            "look",
            "The classes are named unequally, by bias or because they are unequally frequent; with features the audit "
            "can tell which.",
        )


def _noise(audit: "Audit") -> Iterator[Advice]:
    near = audit.neighbourhood
    if near is None:
        return
    if not near.told:
        yield Advice(
            "act",
            "An item's neighbours say nothing about its labels: either these features do not hold the classes, or the "
            "labels were named at "
            "random. Sharing labels between such neighbours would not help; try other features (naysay pretrain, or "
            "embeddings) first.",
        )
    elif near.noise.low > NOISE * near.random:
        cause = (
            "Either labels are wrong, or the features mix the classes"
            if near.foresight < FORESIGHT
            else "Some of that may be features that mix classes, the rest is wrong labels"
        )
        yield Advice(
            "act",
            f"Up to {percent(near.noise.value)} of the labels ({_between(near.noise.low, near.noise.high, 1)}) name "
            "the class that their "
            f"neighbours point to, where labels named at random would have {percent(near.random)}. {cause}: look at "
            "the suspected items. "
            "Share labels between neighbours (dms or rms) and take scl-nl; ure and ure-ga amplify noise.",
        )


def _annotators(audit: "Audit") -> Iterator[Advice]:
    if audit.annotators is None:
        return
    wrong = [(row.name, row.suspected) for row in audit.annotators.rows if row.suspected and row.contradicts_neighbours]
    for name, suspected in wrong[:NAMED_IN_TEXT]:
        yield Advice(
            "act",
            f"Annotator {_quoted(name)} contradicts the neighbours in {percent(suspected.value, 0)} of "
            f"{suspected.of:,} labels "
            f"({_between(suspected.low, suspected.high)}), far more than the others: "
            "look at their labels, and leave them out if they are wrong.",
        )
    lazy = [row for row in audit.annotators.rows if row.one_sided]
    for row in lazy[:NAMED_IN_TEXT]:
        yield Advice(
            "act",
            f"Annotator {_quoted(row.name)} names {_quoted(row.favourite)} in {percent(row.favourite_share.value, 0)} "
            f"of {row.labels:,} "
            "labels: probably without looking. Such labels are mostly true and tell little; leave them out or ask "
            "again.",
        )
    more = max(len(wrong) - NAMED_IN_TEXT, 0) + max(len(lazy) - NAMED_IN_TEXT, 0)
    if more:
        yield Advice(
            "act", f"{_count(more, 'more annotator')} with the same marks; the table of annotators lists them first."
        )


def _options(audit: "Audit") -> Iterator[Advice]:
    if audit.shown is None:
        return
    if audit.shown.not_shown:
        yield Advice(
            "act",
            f"{_count(audit.shown.not_shown, 'label')} of a class that was not among the options shown: check how the "
            "table was joined.",
        )
    if audit.shown.position.effect_low > SMALL:
        first = max(range(len(audit.shown.positions)), key=audit.shown.positions.__getitem__) + 1
        yield Advice(
            "act" if audit.shown.position.effect_low > MEDIUM else "look",
            f"The place in the list decides: option {first} of {len(audit.shown.positions)} is named most. Show the "
            "options in random "
            "order, so that this does not become bias towards classes.",
        )


def _duplicates(audit: "Audit") -> Iterator[Advice]:
    duplicates, coverage = audit.duplicates, audit.coverage
    if duplicates.repeated_labels and duplicates.by_whom:
        yield Advice(
            "look",
            f"{_count(duplicates.repeated_labels, 'row')} with a label that the same annotator gave the same item "
            "before: they count once.",
        )
    if duplicates.copies and duplicates.copies > COPIES * coverage.items:
        yield Advice(
            "look",
            f"{_count(duplicates.copies, 'item')} with exactly the features of another: drop them, or keep copies on "
            "one side of a split.",
        )


def _classes(audit: "Audit") -> Iterator[Advice]:
    never = [row.name for row in audit.marginals.classes if row.named.count == 0]
    if never:
        yield Advice(
            "look",
            f"Nobody ever names {_some(never)}: a model is not told what these are not, and may prefer them. Ask "
            "about them too.",
        )
    spelled: dict[str, list[str]] = {}
    for name in audit.classes:
        spelled.setdefault("".join(name.split()).casefold(), []).append(name)
    for alike in spelled.values():
        if len(alike) > 1:
            yield Advice(
                "act", f"The classes {_some(alike)} differ only in spelling: if they are one class, give it one name."
            )


def _features(audit: "Audit") -> Iterator[Advice]:
    for reason in audit.not_told:
        yield Advice("look", reason)


RULES: tuple[Callable[["Audit"], Iterator[Advice]], ...] = (
    _contradictions,
    _classes,
    _options,
    _annotators,
    _noise,
    _bias,
    _unlabelled,
    _duplicates,
    _few_labels,
    _features,
)


def _between(low: float, high: float, digits: int = 0) -> str:
    return f"95 % interval {percent(low, digits)} to {percent(high, digits)}"


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _quoted(name: str) -> str:
    return f"“{name if len(name) <= LONGEST else name[: LONGEST - 1] + '…'}”"


def _some(names: Sequence[str], total: int | None = None) -> str:
    """The first few of the names, and how many more there are of `total` (or of the names)."""
    more = (len(names) if total is None else total) - min(len(names), NAMED_IN_TEXT)
    return ", ".join(_quoted(name) for name in names[:NAMED_IN_TEXT]) + (f" and {more:,} more" if more > 0 else "")
