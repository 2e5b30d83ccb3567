"""What a run found, in words and in JSON: no sentence says more than the held-out labels can show."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from naysay.audit.advice import doubted, shares_unknown
from naysay.features.unseen import OTHERS, THESE, UNKNOWN
from naysay.figures import FIGURES
from naysay.learning import RECIPES
from naysay.runs.apart import UNSEEN
from naysay.runs.attempt import Attempt
from naysay.runs.fit import Fitted
from naysay.selection import Choice, Comparison
from naysay.words import count, joined, percent, with_error

# what it means for the estimate that an encoder knew images before
SAW = {
    UNSEEN: "The encoder had not seen the images that judged.",
    THESE: (
        "The encoder had seen images that judged, so that the estimate may be too high (by 2 to 3.5 points, as an "
        "audit found on decoding); apart=True avoids it, with an encoder pretrained with leave_out=0.1."
    ),
    OTHERS: "The encoder was pretrained on other data; if these images were among it, the estimate is too high.",
    UNKNOWN: "An encoder that was pretrained on these very items makes the estimate too high.",
}
DOUBT = 2.0  # standard errors below which a difference is not called one


def verdict(fitted: Fitted) -> str:
    """What the comparison says, and what to keep in mind about it."""
    told = fitted.chosen.accuracy.value is not None
    if fitted.settings.auto:
        return " ".join([*mixed(fitted), *caveats(fitted), *by_shares(fitted)])
    if RECIPES[recipe := fitted.settings.config.recipe].shares:  # its one scheme, none, would say the opposite
        said = [f"Only the recipe {recipe} was trained, so there is nothing to compare it with."]
    else:
        said = compared(fitted.choice, len(fitted.held), told)
    return " ".join([*said, *trained_on(fitted), *caveats(fitted), *by_shares(fitted)])


def mixed(fitted: Fitted) -> list[str]:
    """What the mixture is made of, and how it compares with the best of what it is made of."""
    chosen = fitted.chosen
    tried = [one for one in fitted.attempts if one.weight is not None]
    parts = sorted((one for one in tried if one.weight), key=lambda one: -(one.weight or 0.0))
    named = joined([f"{percent(one.weight or 0.0, 0)} {one.name}" for one in parts])
    by = f"the labels of {count(len(fitted.held), 'item')}, which no model judged by them had seen"
    if len(tried) == 1:
        said = [f"Only {chosen.name} was tried, judged by {by}."]
    elif len(parts) == 1:
        said = [f"{chosen.name} is kept, of {len(tried)} candidates judged by {by}: no mixture with another is better."]
    else:
        best = min(tried, key=lambda one: one.loss.value)
        gain = fitted.choice.gains[best.name]["scel"]
        than = "lower" if gain.difference >= 0 else "higher"  # as class shares that were stated may make it
        lead = f"{abs(gain.difference):.3f} ± {gain.standard_error:.3f}"
        said = [
            f"A mixture of {named} is kept, of {len(tried)} candidates judged by {by}.",
            f"Its loss is {than} than that of the best of them alone, {best.name}, by {lead}.",
        ]
    if fitted.encoder is not None:
        width = fitted.space.features.shape[1]
        said.append(f"All learned what {fitted.encoder.name} makes of the images, {width} numbers each.")
    if fitted.not_tried:
        said.append(f"The budget had no time for {joined(list(fitted.not_tried))}.")
    return [*said, f"The models judged saw {percent(fitted.seen, 0)} of the labels, the one that is kept all of them."]


def compared(choice: Choice[str], n_held: int, told: bool = True) -> list[str]:
    """What n held-out labels say of the scheme that was kept against the others, in a sentence or two.

    told: whether anything can be said of accuracies.
    """
    kept, recommended = choice.kept, choice.recommended
    if not choice.gains:
        return [f"Only {kept} was trained, so there is nothing to compare it with."]
    leads = {name: f"{name} ({_lead(gains, told)})" for name, gains in choice.gains.items()}
    # the recommended scheme loses its place by one standard error; by how many, its numbers show
    sure = [name for name, gains in choice.gains.items() if gains["scel"].z >= DOUBT or name == recommended]
    better, same = [leads[name] for name in sure], [leads[name] for name in leads if name not in sure]
    why = "as recommended" if kept == recommended else f"instead of the recommended {recommended}"
    if not better:
        return [f"{kept} is kept, {why}: {n_held:,} held-out labels show no clear difference from {joined(same)}."]
    first = f"{kept} is kept, {why}: better than {joined(better)} on the same {n_held:,} held-out labels."
    return [first, f"They show no clear difference from {joined(same)}."] if same else [first]


def trained_on(fitted: Fitted) -> list[str]:
    """Which labels the models saw, where those that were judged are not the one that is kept."""
    saw = f"The models judged saw {percent(fitted.seen, 0)} of the labels"
    return [f"{saw}, the one that is kept all of them."] if fitted.settings.refit else []


def caveats(fitted: Fitted) -> list[str]:
    """Where the accuracy cannot be told, that and why; else what the rows that judged had a part in."""
    why = fitted.chosen.accuracy.why_not
    if why:
        return [f"The accuracy cannot be told: {why}."]
    by = had_a_part(fitted)
    items, labels = joined(by["items"]), joined(by["labels"])
    seen = [SAW[fitted.saw]] if fitted.saw else []
    if items and labels:
        return [*seen, f"The items that judged had a part in {items}, and their labels in {labels}."]
    if labels:
        return [*seen, f"The labels that judged had a part in {labels}."]
    return [*seen, f"The held-out items had a part in {items}, though their labels had none."] if items else seen


def had_a_part(fitted: Fitted) -> dict[str, list[str]]:
    """What the items that judged had a part in without their labels, and what their labels had, an encoder aside."""
    settings, labels = fitted.settings, list[str]()
    # recipes that share labels themselves look up neighbours among the rows that they train on, and the portfolio makes
    # its spaces of these
    of_rows = settings.apart or settings.auto or fitted.saw or RECIPES[settings.config.recipe].shares
    items = [*([] if of_rows else ["making the space"]), *fitted.learned_of_all]
    in_folds = settings.auto and fitted.folds > 1
    # judged apart, models learn by what others' labels tell, but for a T that neighbours told of all
    if settings.auto and fitted.T is not None and (in_folds or settings.assume == "estimated"):
        labels.append("how labels are taken to come about")
    if in_folds:
        labels.append("choosing and calibrating the models")
    return {"items": items, "labels": labels}


def by_shares(fitted: Fitted) -> list[str]:
    """What class shares did, or would have done where nobody stated any and the labels cannot tell them."""
    stated, turned = fitted.settings.sharing.class_shares, fitted.kept.turned
    if stated is not None:
        how = "even" if isinstance(stated, str) else "as stated"
        its = fitted.settings.config.recipe
        by_itself = not fitted.settings.auto and RECIPES[its].shares
        did = f"the recipe {its} reads labels by them" if by_itself else "nothing is shared, so they changed nothing"
        read = "class" if fitted.settings.auto else "least named class"
        did = did if turned is None else f"that gave {percent(turned)} of the items another {read}"
        return [f"Class shares were taken to be {how}: {did}."]
    if not shares_unknown(fitted.audit):
        return []
    asked = "The labels favour some classes, and how common the classes are was not stated"
    would = "" if turned is None else f"; if they are even, {percent(turned)} of the items should be read otherwise"
    return [f"{asked}{would}: state it with class_shares=."]


def _lead(gains: Mapping[str, Comparison], told: bool) -> str:
    loss, right = gains["scel"], gains["ure-accuracy"]
    points = f", accuracy {with_error(right.difference, right.standard_error, '+')} points" if told else ""
    return f"loss {-loss.difference:+.3f} ± {loss.standard_error:.3f}{points}"


def judging(fitted: Fitted) -> dict[str, Any]:
    """How the schemes were judged and one of them chosen, ready for JSON."""
    return {
        "folds": fitted.folds,
        "rows": len(fitted.held),
        "labels_seen": fitted.seen,
        "recommended": fitted.choice.recommended,
        "decided_by": fitted.choice.decided_by,
        "not_tried": list(fitted.not_tried),
        "had_a_part": had_a_part(fitted),
    }


def results(fitted: Fitted) -> list[dict[str, Any]]:
    """Each attempt's figures, ready for JSON: of the models that were judged, but of the kept one where it is shown
    what the truth says or what sharing did.
    """
    return [_result(attempt, fitted) for attempt in fitted.attempts]


def _result(attempt: Attempt, fitted: Fitted) -> dict[str, Any]:
    chosen, gains = attempt is fitted.chosen, fitted.choice.gains.get(attempt.name)
    shown = fitted.kept if chosen else attempt.models[0] if attempt.models else None
    told = None not in (attempt.accuracy.value, fitted.chosen.accuracy.value)
    truth = {**attempt.of_labels, **_against_the_truth(attempt.history[-1])} if attempt.models else {}
    if chosen:  # where there are no test items, none are left for the kept model: the judged ones' figure stays
        truth |= {**fitted.kept.oracle, **_against_the_truth(fitted.kept.history[-1])}
    return {
        "scheme": attempt.name,
        "chosen": chosen,
        "estimate": None if doubted(fitted.audit) else attempt.accuracy.value,  # then the interval stands alone
        "standard_error": attempt.accuracy.standard_error,
        "low": attempt.accuracy.low,
        "high": attempt.accuracy.high,
        "assumes": attempt.accuracy.assumes,
        "why_not": attempt.accuracy.why_not,
        "turned": None if shown is None else shown.turned,
        "held_out_rows": len(attempt.estimate.rows),
        "chosen_minus_this": None if gains is None or not told else asdict(gains["ure-accuracy"]),
        "held_out_loss": attempt.loss.value,
        "held_out_loss_error": attempt.loss.standard_error,
        "sharpness": attempt.sharpness,
        "chosen_loss_is_lower_by": None if gains is None else asdict(gains["scel"]),
        "sharing": None if shown is None else shown.sharing.as_dict(),
        "weight": attempt.weight,
        "truth": truth,
        "seconds": round(attempt.seconds, 3),
    }


def _against_the_truth(figures: Mapping[str, float]) -> dict[str, float]:
    return {row.name: figures[row.name] for row in FIGURES if row.needs_truth and row.name in figures}


def plain(value: Any) -> Any:
    """A tree of dicts, lists and numbers as JSON has it: what is no number becomes null."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
