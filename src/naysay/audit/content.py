"""What an audit says, part by part, for a page and a terminal alike (`naysay.report.content` draws both)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from naysay.audit.advice import shares_unknown
from naysay.report.content import Content, Field, Part, Table
from naysay.statistics import Z95, Fit, Share, size
from naysay.words import count, few, percent, shortened

if TYPE_CHECKING:
    from naysay.audit.annotators import Annotators, Shown
    from naysay.audit.counts import ClassCount, Duplicates
    from naysay.audit.look import Audit, Neighborhood

LISTED = 20  # names in one sentence, at most


def content(audit: "Audit") -> Content:
    """The whole audit."""
    coverage = audit.coverage
    found = f"{count(coverage.items, 'item')}, {coverage.classes} classes, {count(coverage.labels, 'label')}."
    to_do = Part("What to do", advice=audit.advice)
    return Content("Audit of complementary labels", f"{found} Intervals in [ ] are 95 %.", to_do, tuple(_parts(audit)))


def _parts(audit: "Audit") -> Iterator[Part]:
    yield _labels(audit)
    yield _classes(audit)
    if audit.shown is not None:
        yield _options(audit.classes, audit.shown)
    yield _neighbors(audit)
    if audit.annotators is not None:
        yield _annotators(audit.annotators, audit.neighborhood is not None)
    if audit.duplicates.repeated_labels is not None or audit.duplicates.copies is not None:
        yield _duplicates(audit.duplicates)


def _labels(audit: "Audit") -> Part:
    coverage = audit.coverage
    last = len(coverage.by_labels) - 1
    numbers = [*map(str, range(last)), f"{last} or more" if coverage.most > last else str(last)]
    rows = [(m, f"{n:,}") for m, n in zip(numbers, coverage.by_labels, strict=True) if n or m == "0"]
    names = f" ({_names(coverage.contradicting_items, coverage.contradicting)})" if coverage.contradicting else ""
    most = f" Those with the most, {coverage.most}: {_names(coverage.most_items)}." if coverage.most_items else ""
    says = (
        f"{coverage.mean:.2f} labels per labelled item; {interval(coverage.unlabelled)} of the items have no label."
        f"{most} Items with all classes but one named: {coverage.solved:,}; with every class named, a contradiction: "
        f"{coverage.contradicting:,}{names}."
    )
    return Part("Labels per item", [Table("Items by labels", [Field("labels", "name"), Field("items")], rows), says])


def _classes(audit: "Audit") -> Part:
    classes = audit.marginals.classes
    most = max(row.named.value for row in classes)
    told, biased = audit.neighborhood is not None and audit.neighborhood.told, shares_unknown(audit)
    fields = [Field("class", "name"), Field("labels"), Field("share"), Field("", "bar")]
    marked = any(row.above_ceiling for row in classes)
    fields += [Field("", "text")] if marked else []
    fields += [] if biased else [Field("of the items, if naming is even")]
    rows = []
    for row in classes:
        mark = ("above ceiling" if row.above_ceiling else "",) if marked else ()
        implied = () if biased else (interval(implied_share(row)),)
        rows.append((row.name, f"{row.named.count:,}", interval(row.named), row.named.value / most, *mark, *implied))
    table = Table("Classes and the labels that name them", fields, rows)
    meaning = f"{audit.marginals.meaning} Against even: {effect(audit.marginals.uniform)}."
    shares = UNTELLABLE if biased else EVEN_NAMING if told else ""
    return Part("How often each class is named", [table, meaning, *([shares] if shares else [])])


UNTELLABLE = (
    "How common the classes are cannot be told from these labels: a class may be named often because it is popular or "
    "because few items belong to it. If you know it, state these class shares."
)
EVEN_NAMING = (
    "Neighbours show no bias, so naming is about even, and the classes' shares of the items follow from how often each "
    "is named: 1 - (K - 1) times its share of the labels, as far as that is possible."
)


def _options(classes: Sequence[str], shown: "Shown") -> Part:
    rows = [(name, f"{share.of:,}", interval(share)) for name, share in zip(classes, shown.named, strict=True)]
    fields = [Field("class", "name"), Field("shown"), Field("named when shown")]
    places = ", ".join(f"{n:,}" for n in shown.positions)
    says = (
        Table("How often each class is named when it is shown", fields, rows),
        f"Against even choice among those shown: {effect(shown.evenly)}.",
        f"Labels by place in the list, first to last: {places}; {effect(shown.position)}.",
        f"Labels that name a class that was not shown: {shown.not_shown:,}.",
    )
    return Part(f"Options shown: {count(shown.rows, 'label')} with options", says)


def _neighbors(audit: "Audit") -> Part:
    near = audit.neighborhood
    if near is None:
        return Part("Noise and bias", audit.not_told)
    looked = "all" if near.rows == near.labelled else f"a random sample of {near.rows:,} of"
    items = f"{near.labelled:,} labelled items; {near.clear:,} have clear neighbours"
    asked = f"{near.neighbors} neighbours each, of {looked} {items}."
    silent = "The neighbours say nothing about an item's labels, so neither noise nor bias can be estimated from them."
    says = [asked, *(_told(audit.classes, near) if near.told else [silent])]
    return Part("Noise and bias, estimated from neighbours, without ordinary labels", says)


def _told(classes: Sequence[str], near: "Neighborhood") -> Iterator[str | Table]:
    noise = [
        ("where neighbours are clear", interval(near.noise)),
        ("everywhere", interval(near.noise_everywhere)),
        ("if labels were named at random", percent(near.random)),
    ]
    yield Table("Noise: labels that name the true class", [Field("", "text"), Field("share")], noise)
    yield (
        "The estimate leans high: features that mix classes look like noise. Read it as “at most”; the intervals "
        "cover counting only."
    )
    yield f"Bias, how unevenly the wrong classes of one class are named: {effect(near.bias)}."
    yield Table(
        "T, estimated: of items likely of the row's class, per cent of labels that name the column's",
        [Field("", "name"), *(Field(name, "shade") for name in classes)],
        [(name, *row) for name, row in zip(classes, near.transition, strict=True)],
    )
    if near.suspects:
        pairs = few((f"{shortened(s.item)} (not {shortened(s.named)}?)" for s in near.suspects), LISTED)
        yield f"Suspected items, at random, to look at: {pairs}."


def _annotators(people: "Annotators", suspected: bool) -> Part:
    numbers = Field("labels"), Field("items")
    judged = Field("favourite", "text"), Field("agrees"), Field("suspected"), Field("stands out", "text")
    fields = [Field("annotator", "name"), *numbers, *judged]
    rows = [
        (
            row.name,
            f"{row.labels:,}",
            f"{row.items:,}",
            f"{shortened(row.favourite, 12)}, {percent(row.favourite_share.value, 0)}",
            percent(row.agreement.value, 0) if row.agreement else "-",
            interval(row.suspected) if row.suspected else "-",
            ", ".join(["contradicts neighbours"] * row.contradicts_neighbors + ["one-sided"] * row.one_sided),
        )
        for row in people.rows
    ]
    says: list[str | Table] = [Table("Annotators, those who stand out first", fields, rows)]
    if people.agreement:
        says.append(
            f"Two annotators of one item name the same class in {interval(people.agreement)} of "
            f"{people.agreement.of:,} pairs; independent, even naming would give {percent(people.chance)}. Different "
            "classes are no contradiction."
        )
    if suspected:
        says.append("Suspected are labels that name the class to which clear neighbours point.")
    if people.unnamed:
        says.append(f"Labels that name no annotator: {people.unnamed:,}.")
    return Part(f"Annotators: {len(people.rows):,}", says)


def _duplicates(twice: "Duplicates") -> Part:
    says = []
    if twice.repeated_labels is not None:
        who = "item, annotator and label" if twice.by_whom else "item and label (no annotators tell them apart)"
        says.append(f"Rows of the table that repeat another's {who}: {twice.repeated_labels:,}.")
    if twice.copies is not None:
        such = "".join(f" Such as {_names(names)}." for names in twice.examples[:3])
        says.append(
            f"Items that copy another's features exactly: {twice.copies:,}, in {count(twice.groups or 0, 'group')}, "
            f"of which {twice.conflicting:,} contradict themselves.{such}"
        )
    return Part("Duplicates", says)


def implied_share(row: "ClassCount") -> Share:
    """The share of the items that labels imply, with its 95 % interval; chance may not take it out of 0 to 1."""
    ends = (row.implied_share + z * row.implied_error for z in (0.0, -Z95, Z95))
    return Share(row.named.count, row.named.of, *(min(max(end, 0.0), 1.0) for end in ends))


def interval(share: Share) -> str:
    """A share with its interval."""
    return f"{percent(share.value)} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def effect(fit: Fit) -> str:
    """A test in one line."""
    p = "< 0.0001" if fit.p_value < 1e-4 else f"= {fit.p_value:.4f}"
    found = f"effect w = {fit.effect:.3f} [{fit.effect_low:.3f}, {fit.effect_high:.3f}], {size(fit.effect)}"
    return f"{found}; chi-square {fit.chi2:.1f} on {fit.df}, p {p}"


def _names(names: Sequence[str], total: int | None = None) -> str:
    return few(map(shortened, names), LISTED, total)
