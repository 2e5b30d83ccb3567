"""What to do about it: plain sentences, chosen by rules from what an audit found, each threshold with its reason."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, get_args

from naysay.errors import InputError
from naysay.estimation import ordinary
from naysay.report.content import Advice, Level
from naysay.statistics import MEDIUM, SMALL
from naysay.words import count, few, percent, quoted

if TYPE_CHECKING:
    from naysay.audit.look import Audit

UNLABELLED = 0.05  # below this, leaving unlabelled items out costs less than any choice of loss
# of the noise of random labels (1 / K): features that mix classes alone look like 0.07 (CIFAR-10, kNN accuracy 82 %)
NOISE = 0.2
FORESIGHT = 0.5  # neighbours that avoid the likely class less than half of what they could may just mix classes
# settings differ by a few points: labels that leave an error of 5 cannot choose among them
ACCURACY, BLURRED = 0.8, 0.05
COPIES = 0.01  # a hundredth of copies, split between training and held-out rows, flatters an estimate by a point
NAMED = 5  # names in one sentence

# measured on 1,442 digits, one label each, 30 epochs, two draws each of strongly biased labels, of these with a tenth
# at random, and of LLaVA's, mean % right: dms with scl-nl 29, 25, 65; with even class shares 55, 36, 86; fwd with the
# estimated T 56, 38, 79; with both 68, 53, 87; fwd with the true T 96, 94, 80
AGAINST_BIAS = (
    "Losses that assume even naming, scl-nl among them, will be far off. If you know T, how each class gets its "
    "labels, give it and take fwd with the scheme dms. If not, take fwd with the estimated T and dms; if you know how "
    "common the classes are, state these class shares as well, such as even ones. Do not read the estimated accuracy."
)

MEANING = (
    'If they say what items are, read them so with labels_say="is"; if they do say what items are not, confirm it with '
    'labels_say="not".'
)

act, look, fine = (partial(Advice, level) for level in get_args(Level))
Found = Iterator[Advice]


def advise(audit: "Audit") -> tuple[Advice, ...]:
    """What the rules say of an audit, the most pressing first; of ordinary labels nothing else is worth saying."""
    if said := _ordinary(audit):
        return (act(f"{said[0].upper()}{said[1:]}"),)
    found = [advice for rule in RULES for advice in rule(audit)] + [look(why) for why in audit.not_told]
    if not any(advice.level == "act" for advice in found):
        found.append(fine("Nothing stands in the way of training: start with the loss scl-nl and the scheme dms."))
    return tuple(sorted(found, key=lambda advice: get_args(Level).index(advice.level)))


def refuse_ordinary(audit: "Audit") -> None:
    """Raise InputError where labels look like ordinary ones."""
    if said := _ordinary(audit):
        raise InputError(said)


def _ordinary(audit: "Audit") -> str:
    """What makes labels look like ordinary ones, and the way out; "" where nothing does."""
    near = audit.neighborhood
    agreement = None if near is None else near.agreement
    return f"{ordinary(agreement)}. {MEANING}" if agreement is not None and agreement.ordinary else ""


def shares_unknown(audit: "Audit") -> bool:
    """Whether labels are too biased for how common the classes are to follow from how often each is named."""
    near = audit.neighborhood
    biased = near is not None and near.told and near.bias.effect_low > SMALL
    return biased or any(row.above_ceiling for row in audit.marginals.classes)


def doubted(audit: "Audit") -> bool:
    """Whether labels are biased or noisy, so that no number that rests on them may stand without its interval."""
    return shares_unknown(audit) or _noisy(audit)


def _noisy(audit: "Audit") -> bool:
    near = audit.neighborhood
    return near is not None and near.told and near.noise.low > NOISE * near.random


def _contradictions(audit: "Audit") -> Found:
    coverage, twice = audit.coverage, audit.duplicates
    if coverage.contradicting:
        such = few(map(quoted, coverage.contradicting_items), NAMED, coverage.contradicting)
        yield act(
            f"{count(coverage.contradicting, 'item')} with every class named as wrong ({such}): take the labels again, "
            'or pass contradictions="unlabel" to leave them to their neighbours.'
        )
    if twice.conflicting:
        yield act(
            f"{count(twice.conflicting, 'group')} of items with the same features whose labels together name every "
            f"class (such as {few(map(quoted, twice.examples[0]), NAMED)}): one of those labels is wrong, or the "
            "features leave out what matters."
        )
    if coverage.solved:
        yield fine(
            f"{count(coverage.solved, 'item')} with all classes but one named: their class is known if the labels are "
            "right, so they can serve to check a model."
        )


def _together(audit: "Audit") -> Found:
    if audit.together:
        yield look(
            f"{count(audit.together, 'label')} from statements such as “it is a”, which name all others at once: "
            "they are right or wrong together, so noise, bias and T are less sure than their intervals say."
        )


def _unlabelled(audit: "Audit") -> Found:
    unlabelled = audit.coverage.unlabelled.value
    if unlabelled > UNLABELLED:
        yield look(
            f"{percent(unlabelled, 0)} of the items have no label: sharing labels between neighbours (naysay.augment, "
            "scheme dms) gives them some, training without it ignores them."
        )


def _few_labels(audit: "Audit") -> Found:
    coverage = audit.coverage
    held = coverage.items - coverage.unlabelled.count  # each labelled item is held out once where they are few
    # of the estimated accuracy: (K - 1) times the standard error of the share (1 - accuracy) / (K - 1) of label hits
    error = math.sqrt((1 - ACCURACY) * (coverage.classes - 1 - (1 - ACCURACY)) / held)
    if error > BLURRED:
        yield look(
            "There are few labels for choosing settings: even if every one of them judges once, the estimated accuracy "
            f"has a standard error of about {100 * error:.0f} points. Compare settings on the same rows, or keep the "
            "default settings."
        )


def _bias(audit: "Audit") -> Found:
    near = audit.neighborhood
    high = [quoted(row.name) for row in audit.marginals.classes if row.above_ceiling]
    if near is not None and near.told:
        often = f"{percent(near.bias.effect, 0)} more or less often than even naming would"
        effect = f"for a given class, a typical wrong class is named {often}"
        if near.bias.effect_low > MEDIUM:
            between = _between(near.bias.effect_low, near.bias.effect_high)
            yield act(f"The labels are biased: {effect} ({between}). {AGAINST_BIAS}")
        elif near.bias.effect_low > SMALL:
            way_out = (
                "If you know how common the classes are, state these class shares; it costs nothing if labels are even."
            )
            yield look(f"The labels are somewhat biased: {effect}. {way_out}")
    elif high:
        yield act(
            f"The labels are biased towards {few(high, NAMED)}: no even naming gives a class that large a share. "
            f"{AGAINST_BIAS}"
        )
    elif audit.marginals.uniform.effect_low > SMALL:
        why = "by bias or because they are unequally frequent"
        yield look(f"The classes are named unequally, {why}; with features the audit can tell which.")


def _noise(audit: "Audit") -> Found:
    near = audit.neighborhood
    if near is not None and not near.told:
        yield act(
            "An item's neighbours say nothing about its labels: either these features do not hold the classes, or the "
            "labels were named at random. Sharing labels between such neighbours would not help; try other features "
            "(naysay pretrain, or embeddings) first."
        )
    elif near is not None and _noisy(audit):
        either = "Either labels are wrong, or the features mix the classes"
        both = "Some of that may be features that mix classes, the rest is wrong labels"
        cause = either if near.foresight < FORESIGHT else both
        yield act(
            f"Up to {percent(near.noise.value)} of the labels ({_between(near.noise.low, near.noise.high, 1)}) name "
            "the class that their neighbours point to, where labels named at random would have "
            f"{percent(near.random)}. {cause}: look at the suspected items. Share labels between neighbours (dms or "
            f"rms){'' if shares_unknown(audit) else ' and take scl-nl'}; ure and ure-ga amplify noise."
        )


def _annotators(audit: "Audit") -> Found:
    rows = () if audit.annotators is None else audit.annotators.rows
    wrong = [(row.name, row.suspected) for row in rows if row.suspected and row.contradicts_neighbors]
    for name, suspected in wrong[:NAMED]:
        yield act(
            f"Annotator {quoted(name)} contradicts the neighbours in {percent(suspected.value, 0)} of "
            f"{suspected.of:,} labels ({_between(suspected.low, suspected.high)}), far more than the others: look at "
            "their labels, and leave them out if they are wrong."
        )
    lazy = [row for row in rows if row.one_sided]
    for row in lazy[:NAMED]:
        yield act(
            f"Annotator {quoted(row.name)} names {quoted(row.favourite)} in {percent(row.favourite_share.value, 0)} of "
            f"{row.labels:,} labels: probably without looking. Such labels are mostly true and tell little; leave them "
            "out or ask again."
        )
    if more := len(wrong[NAMED:]) + len(lazy[NAMED:]):
        yield act(f"{count(more, 'more annotator')} with the same marks; the table of annotators lists them first.")


def _options(audit: "Audit") -> Found:
    shown = audit.shown
    if shown is not None and shown.not_shown:
        what = f"{count(shown.not_shown, 'label')} of a class that was not among the options shown"
        yield act(f"{what}: check how the table was joined.")
    if shown is not None and shown.position.effect_low > SMALL:
        first = shown.positions.index(max(shown.positions)) + 1
        level = act if shown.position.effect_low > MEDIUM else look
        yield level(
            f"The place in the list decides: option {first} of {len(shown.positions)} is named most. Show the options "
            "in random order, so that this does not become bias towards classes."
        )


def _duplicates(audit: "Audit") -> Found:
    twice = audit.duplicates
    if twice.repeated_labels and twice.by_whom:
        rows = count(twice.repeated_labels, "row")
        yield look(f"{rows} with a label that the same annotator gave the same item before: they count once.")
    if twice.copies and twice.copies > COPIES * audit.coverage.items:
        copies = count(twice.copies, "item")
        yield look(f"{copies} with exactly the features of another: drop them, or keep copies on one side of a split.")


def _classes(audit: "Audit") -> Found:
    never = [quoted(row.name) for row in audit.marginals.classes if row.named.count == 0]
    if never:
        why = "a model is not told what these are not, and may prefer them"
        yield look(f"Nobody ever names {few(never, NAMED)}: {why}. Ask about them too.")
    spelled: dict[str, list[str]] = {}
    for name in audit.classes:
        spelled.setdefault("".join(name.split()).casefold(), []).append(quoted(name))
    for alike in spelled.values():
        if len(alike) > 1:
            what = f"The classes {few(alike, NAMED)} differ only in spelling"
            yield act(f"{what}: if they are one class, give it one name.")


RULES: tuple[Callable[["Audit"], Found], ...] = (
    _contradictions,
    _classes,
    _options,
    _annotators,
    _noise,
    _bias,
    _together,
    _unlabelled,
    _duplicates,
    _few_labels,
)


def _between(low: float, high: float, digits: int = 0) -> str:
    return f"95 % interval {percent(low, digits)} to {percent(high, digits)}"
