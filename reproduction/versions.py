"""What decides a run's result besides its values: parts of the code, each with a version that is raised by hand.

A repair after which runs come out otherwise, or measure more, is a row of `REPAIRS`: the part that it mends, the part's
version from then on, what is wrong with the records of before, and which runs it touches. A run's version has the
parts that were mended for it, and is in its key (`spec.Wanted.keys`); a run that no repair touches has the key that it
always had. A record under an earlier key of a run stands for it, marked stale, until `run` makes it again: stale ones
first. Records of before there were versions have none, and are of version 0 in every part.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from reproduction.values import Value

Version = Mapping[str, int]  # by part; a part that is not there is of version 0


@dataclass(frozen=True)
class Repair:
    """A row: the part, its version since, what records of before have wrong, in words, and whether it touches a run."""

    part: str
    version: int
    before: str
    touches: Callable[[str, Mapping[str, Value]], bool]


def _mixed(values: Mapping[str, Value]) -> bool:
    return values.get("precision") == "bf16-mixed"


def _soft(values: Mapping[str, Value]) -> bool:
    """Whether a label trained on may be other than 0 and 1: shared, added, or one of several."""
    from reproduction import sets  # which needs torch, and keys do not

    explicit, shared = values.get("sharing") == "explicit", values.get("scheme", "none") != "none"
    return explicit or shared or sets.row(values["dataset"]).n_labels > 1


def _simulated(values: Mapping[str, Value]) -> bool:
    from reproduction import sets

    return sets.row(values["dataset"]).human is not None


# in the order in which they were made; the versions of a part rise
REPAIRS = (
    Repair(
        "labels",
        1,
        "labels were rounded to bfloat16 on their way into the loss, by up to 0.4 % of each",
        lambda experiment, values: "loss" in values and _mixed(values) and _soft(values),
    ),
    Repair(
        "loss",
        1,
        "URE-GA failed in mixed precision and was run with a line put in by hand",
        lambda experiment, values: values.get("loss") == "ure-ga" and _mixed(values),
    ),
    Repair(
        "draws",
        1,
        "the three labels of an image were drawn without replacement, so that their mean was not the matrix's",
        lambda experiment, values: _simulated(values),
    ),
    Repair(
        "loss",
        2,
        "MCL took the classes of a soft label for a set, instead of averaging its loss under the label",
        lambda experiment, values: str(values.get("loss", "")).startswith("mcl-") and _soft(values),
    ),
    Repair(
        "figures",
        1,
        "confidence on the labels that were added was not measured apart",
        lambda experiment, values: experiment == "sharing" and values.get("sharing") == "explicit",
    ),
    Repair(
        "ties",
        1,
        "of classes that the neighbours named equally little the first was taken",
        lambda experiment, values: experiment == "decoding",
    ),
    Repair(
        "recipe",
        1,
        "T was counted again at half time, which can take classes for one another",
        lambda experiment, values: values.get("naming") == "counted",
    ),
    Repair(
        "space",
        1,
        "labels were first shared by pixels, not in a space of whitened patches",
        lambda experiment, values: experiment == "consistent" and not values.get("fine_tune"),
    ),
    Repair(
        "ties",
        2,
        "the number of neighbours was chosen with ties going to the first class",
        lambda experiment, values: experiment == "decoding",
    ),
)


def touching(experiment: str, values: Mapping[str, Value]) -> list[Repair]:
    """The repairs that touch a run, in their order."""
    return [repair for repair in REPAIRS if repair.touches(experiment, values)]


def history(experiment: str, values: Mapping[str, Value]) -> list[Version]:
    """Every version that a run has had, the present one first, version 0 of everything last."""
    versions: list[Version] = [{}]
    for repair in touching(experiment, values):
        versions.insert(0, {**versions[0], repair.part: repair.version})
    return versions


def before(experiment: str, values: Mapping[str, Value], version: Version) -> tuple[str, ...]:
    """What is wrong with a record of that version: nothing, or what each repair since has mended."""
    later = (repair for repair in touching(experiment, values) if version.get(repair.part, 0) < repair.version)
    return tuple(repair.before for repair in later)
