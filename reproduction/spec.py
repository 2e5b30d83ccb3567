"""Specs: each table or figure of the paper as a TOML file that says which runs it is made of, and how they are shown.

    [values]                          # a scalar holds for every run, a list is an axis: one run for every combination
    model = "resnet18"
    loss = ["pc", "scl-nl"]
    seed = [0, 1, 2, 3, 4]

    [[block]]                         # where one product is not enough: each block's values go over those above
    label = "MNIST, MLP"
    dataset = "mnist"

    [quick]                           # what --quick puts in their place; a block may have its own, `quick = {...}`
    [origin]                          # where each value comes from: "paper", or "ours" and why
    [show]                            # rows, columns, figures: see `standing.names` and `table.sections`

`extends = "tab-main"` starts from another spec. A run's key is a hash of its experiment, its values and the version of
what decides its result (`versions`), and of nothing else.
A path that ends in .toml is a spec of one's own, checked as ours are.
"""

import functools
import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from naysay.errors import InputError, unknown
from reproduction import versions
from reproduction.values import EXPERIMENTS, NEEDED, Value, accepts, checked, written

SPECS = Path(__file__).parent / "specs"

NAMES = (
    "fig-implicit",
    "fig-efficiency",
    "fig-efficiency-losses",
    "fig-explicit",
    "tab-explicit",
    "tab-main",
    "tab-encoder",
    "tab-best-epoch",
    "clcifar10-simulated",
    "clcifar20-simulated",
    "fig-neighbours",
    "tab-baselines",
    "tab-simsiam",
    "check-order",
    "check-rate",
    "check-features",
    "check-labels",
    "check-gamma",
    "tab-shares",
    "check-shares",
    "tab-recipe",
    "tab-rivals",
    "tab-taught",
)
KINDS = ("table", "figure")
TEXTS, TABLES = ("kind", "title", "source", "experiment"), ("values", "origin", "show")  # what every spec has
OPTIONAL = ("extends", "quick", "block")
OF_A_BLOCK = ("label", "experiment", "quick", "without")  # what is in a block beside values


@dataclass(frozen=True)
class Block:
    """One product of values: scalars and axes (lists), what --quick puts in their place, and the kind of run."""

    label: str
    experiment: str
    values: Mapping[str, Any]
    quick: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Spec:
    """A table or figure: what it is, its blocks of runs, where the values come from, and how it is shown."""

    name: str
    kind: str  # "table" or "figure"
    title: str
    source: str
    blocks: tuple[Block, ...]
    origin: Mapping[str, str]
    show: Mapping[str, Any]


@dataclass(frozen=True)
class Wanted:
    """One run that a spec wants. `quick`: it is not one of the spec's full runs."""

    experiment: str
    label: str
    values: Mapping[str, Value]
    quick: bool = False

    @property
    def said(self) -> Mapping[str, Value]:
        """What the run can be asked for by: its values, and its kind as "experiment"."""
        return {"experiment": self.experiment, **self.values}

    @property
    def key(self) -> str:
        """What names the run wherever it is wanted: a hash of the experiment, the values and their version."""
        return next(iter(self.keys))

    @functools.cached_property
    def keys(self) -> Mapping[str, versions.Version]:
        """The run's key and every one that it had before a repair, newest first, each with its version."""
        named = [self.experiment, dict(sorted(self.values.items()))]
        return {
            _hash([*named, version] if version else named): version
            for version in versions.history(self.experiment, self.values)
        }


def _hash(content: list[Any]) -> str:
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()[:16]


def get(name: str) -> Spec:
    """The spec of that name, or of a .toml file of one's own."""
    if name.endswith(".toml"):
        return _build(Path(name).stem, _content(name), name)
    if name not in NAMES:
        raise unknown("table or figure", name, NAMES)
    return _shipped(name)


@functools.cache
def _shipped(name: str) -> Spec:
    return _build(name, _content(name), name)


def wanted(spec: Spec, *, quick: bool = False, only: Mapping[str, Sequence[str]] | None = None) -> tuple[Wanted, ...]:
    """The runs of a spec in its order, each once; `only` keeps those with one of the given values, written as text.

    The kind of run counts as a value, "experiment".
    """
    runs = {run.key: run for run in _runs(spec, quick=quick)}
    if quick:
        full = {run.key for run in _runs(spec, quick=False)}
        runs = {key: Wanted(run.experiment, run.label, run.values, key not in full) for key, run in runs.items()}
    for name, texts in (only or {}).items():
        said = {key: run.said for key, run in runs.items()}
        having = {values[name] for values in said.values() if name in values}
        if not having:
            raise unknown("value", name, sorted({known for values in said.values() for known in values}))
        for text in texts:
            if not any(accepts(value, text) for value in having):
                raise unknown(name, text, sorted(map(written, having)))
        kept = {value for value in having if any(accepts(value, text) for text in texts)}
        runs = {key: run for key, run in runs.items() if said[key].get(name) in kept}
    if not runs:
        raise InputError(f"no run of {spec.name} has all of {dict(only or {})}. Ask for fewer things at once.")
    return tuple(runs.values())


@functools.cache  # the main table wants 3,600 runs, each named by a hash
def plans(spec: Spec) -> tuple[tuple[Wanted, ...], tuple[Wanted, ...]]:
    """Every full run that the spec wants, and every quick one."""
    return wanted(spec), wanted(spec, quick=True)


def _runs(spec: Spec, *, quick: bool) -> Iterator[Wanted]:
    for block in spec.blocks:
        values = {**block.values, **(block.quick if quick else {})}
        axes = [[(name, one) for one in value] for name, value in values.items() if isinstance(value, list)]
        fixed = {name: value for name, value in values.items() if not isinstance(value, list)}
        for point in itertools.product(*axes):
            yield Wanted(block.experiment, block.label, MappingProxyType({**fixed, **dict(point)}))


def _content(name: str) -> dict[str, Any]:
    """What the spec's file holds, laid over the spec that it extends."""
    content = _read(name)
    if "extends" not in content:
        return content
    base = content.pop("extends")
    if not (isinstance(base, str) and base in NAMES):
        raise _wrong(name, unknown("table or figure to extend", base, NAMES))
    below = _content(base)
    tables = {
        table: {**below.get(table, {}), **content[table]}
        for table in (*TABLES, "quick")
        if isinstance(content.get(table), dict)
    }
    return {**below, **content, **tables}


def _read(name: str) -> dict[str, Any]:
    try:
        path = Path(name).expanduser() if name.endswith(".toml") else SPECS / f"{name}.toml"
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"the spec {name} cannot be read ({error.strerror}). Give a .toml file, or one of {', '.join(NAMES)}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{name} is not valid TOML: {error}.") from None


def _build(name: str, content: dict[str, Any], where: str) -> Spec:
    """The Spec of a file's content, or one sentence on what is wrong with it."""
    try:
        _check_parts(content)
        shared, quick = content["values"], content.get("quick", {})
        blocks = tuple(_block(block, shared, quick, content["experiment"]) for block in content.get("block", [{}]))
        for value in sorted({value for block in blocks for value in (*block.values, *block.quick)}):
            if not isinstance(content["origin"].get(value), str):
                raise InputError(
                    f'the value {value} has no origin; say in [origin] where it comes from: "paper", or "ours" and why.'
                )
    except InputError as error:
        raise _wrong(where, error) from None
    return Spec(name, content["kind"], content["title"], content["source"], blocks, content["origin"], content["show"])


def _check_parts(content: Mapping[str, Any]) -> None:
    for part in content:
        if part not in (*TEXTS, *TABLES, *OPTIONAL):
            raise unknown("part of a spec", part, (*TEXTS, *TABLES, *OPTIONAL))
    for part in TEXTS:
        if not isinstance(content.get(part), str):
            raise InputError(f"it must say its {part}, as text; got {content.get(part, 'nothing')!r}.")
    for part in (*TABLES, "quick"):
        if not isinstance(content.get(part, {} if part == "quick" else None), dict):
            raise InputError(f"it must have a table [{part}]; got {content.get(part, 'none')!r}.")
    if content["kind"] not in KINDS:
        raise unknown("kind of spec", content["kind"], KINDS)
    blocks = content.get("block", [{}])
    if not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise InputError("blocks are written [[block]], one or more.")


def _block(row: Mapping[str, Any], shared: Mapping[str, Any], quick: Mapping[str, Any], experiment: str) -> Block:
    """A row of [[block]] over the shared values, less those that its kind of run has no use for (`without`)."""
    experiment = row.get("experiment", experiment)
    if experiment not in EXPERIMENTS:
        raise unknown("experiment", experiment, EXPERIMENTS)
    if not isinstance(row.get("label", ""), str) or not isinstance(row.get("quick", {}), dict):
        raise InputError(
            f"a block's label is text and its quick a table; got {row.get('label')!r} and {row.get('quick')!r}."
        )
    without = row.get("without", [])
    own = {name: value for name, value in row.items() if name not in OF_A_BLOCK}
    values = {name: value for name, value in {**shared, **own}.items() if name not in without}
    hasty = {name: value for name, value in {**quick, **row.get("quick", {})}.items() if name not in without}
    for name in NEEDED[experiment]:
        if name not in values:
            raise InputError(f"a {experiment} run needs the value {name}; give it in [values] or in the block.")
    for name in hasty:
        if name not in values:
            raise unknown("value for --quick to replace", name, values)
    full, short = (
        MappingProxyType({name: checked(experiment, name, value) for name, value in given.items()})
        for given in (values, hasty)
    )
    return Block(row.get("label", ""), experiment, full, short)


def _wrong(where: str, error: InputError) -> InputError:
    return InputError(f"the spec {where} cannot be used: {error}")
