"""The judgement of `make gates`, on figures made up here; no task is run."""

import pytest

from benchmarks import gate_tasks, gates

TABLE_ROWS = ("a", "b", "c", "d", "e", "f", "g", "h")
ALL_ROWS = (*TABLE_ROWS, "other")
EVEN = {str(seed): 0.8 + seed / 100 for seed in range(5)}
STORED = dict.fromkeys(ALL_ROWS, EVEN)
MODULE_COUNTS = dict.fromkeys(gates.MODULES, 100)


def moved(*points):
    """A row whose accuracies are higher by so many points, seed by seed."""
    changes = dict(zip(EVEN, points, strict=True))
    return {seed: value + changes[seed] / 100 for seed, value in EVEN.items()}


def tables_moved(*points):
    return {**STORED, **dict.fromkeys(TABLE_ROWS, moved(*points))}


ROW_CASES = {
    "equal": (STORED, []),
    "mean drops by 0.6": (tables_moved(-0.1, -1.1, -0.3, -0.9, -0.6), ["failure"]),
    "mean drops by 0.4": (tables_moved(-0.1, -0.8, -0.2, -0.7, -0.2), ["worse"]),
    "mean rises by 0.6": (tables_moved(0.1, 1.1, 0.3, 0.9, 0.6), ["better"]),
    "noisy drop": (tables_moved(-5, 3, -4, 4, -1), []),
    "a table drops by 2": ({**STORED, "a": moved(-2, -2.1, -1.9, -2, -2)}, ["failure", "worse"]),
    "another row drops by 2": ({**STORED, "other": moved(-2, -2.1, -1.9, -2, -2)}, ["failure"]),
    "a row drops by 2 for all seeds": ({**STORED, "other": moved(-2, -2, -2, -2, -2)}, ["failure"]),
    "a row drops by 2, noisily": ({**STORED, "other": moved(-9, 5, -4, 1, -3)}, []),
    "a row drops by 0.5": ({**STORED, "other": moved(-0.5, -0.5, -0.5, -0.5, -0.6)}, ["worse"]),
    "a row rises by 2": ({**STORED, "other": moved(2, 2.1, 1.9, 2, 2)}, ["better"]),
    "a row is missing": (dict.fromkeys(TABLE_ROWS, EVEN), ["missing"]),
    "a seed is missing": ({**STORED, "other": {"0": 0.8}}, ["missing"]),
}


@pytest.mark.parametrize(("measured", "kinds"), ROW_CASES.values(), ids=ROW_CASES)
def test_accuracies(measured, kinds):
    findings = gates.compare_rows(STORED, measured, ALL_ROWS, TABLE_ROWS)
    assert [finding.kind for finding in findings] == kinds


def test_row_without_stored_figures_is_incomplete():
    findings = gates.compare_rows({**STORED, "other": {}}, STORED, ALL_ROWS, TABLE_ROWS)
    assert [finding.kind for finding in findings] == ["missing"]


@pytest.mark.parametrize(
    ("name", "ratios", "kinds"),
    [
        ("graph cpu_s", [1, 1, 1, 1, 1], []),
        ("graph cpu_s", [1.09, 1.09, 1.09, 3, 3], []),
        ("graph cpu_s", [1.11, 1.11, 1.11, 1, 1], ["failure"]),
        ("graph cpu_s", [0.8, 0.8, 0.8, 1, 1], ["better"]),
        ("fit_1500 peak_mb", [1.11] * 5, ["failure"]),
        ("rounds cpu_s", [1.5] * 5, []),
        ("rounds cpu_s", [1.7] * 5, ["failure"]),
        ("graph cpu_s", [1] * 4, ["missing"]),
    ],
)
def test_speed(name, ratios, kinds):
    figures = {f"{task} cpu_s": [(1.0, 1.0)] * 5 for task in gates.SPEED}
    figures[name] = [(ratio * (turn + 1), turn + 1) for turn, ratio in enumerate(ratios)]
    assert [finding.kind for finding in gates.compare_speed(figures)] == kinds


def test_speed_that_was_not_measured_is_incomplete():
    assert {finding.kind for finding in gates.compare_speed({})} == {"missing"}


@pytest.mark.parametrize(
    ("count", "kinds"),
    [(100, []), (101, ["failure"]), (99, ["better"]), (None, ["missing"])],
)
def test_modules(count, kinds):
    measured = {**MODULE_COUNTS, gates.MODULES[0]: count}
    measured = {name: value for name, value in measured.items() if value is not None}
    assert [finding.kind for finding in gates.compare_modules(MODULE_COUNTS, measured)] == kinds


def test_verdict_names_every_finding():
    kinds = ("better", "missing", "worse", "failure")
    text = gates.verdict([gates.Finding(kind, f"of {kind}") for kind in kinds])
    assert all(f"of {kind}" in text for kind in kinds)
    assert "no difference" not in text
    assert gates.verdict([]) == "no difference"


def test_driver_has_exactly_the_tasks_of_the_gates():
    assert {*gate_tasks.ACCURACY, *gate_tasks.IMAGES} == set(gates.ROWS)
    assert set(gate_tasks.SPEED) == {*gates.SPEED, "prepare", "peers"}
    assert set(gate_tasks.MODULES) == set(gates.MODULES)
