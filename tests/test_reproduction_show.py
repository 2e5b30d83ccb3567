"""The paper's tables with records in them, all of them synthetic: made by this file, of runs that nobody did."""

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from naysay.engine import Ledger
from reproduction import NAMES, beside, drawing, get, html_page, markdown_page, standing, versions, wanted, words
from reproduction.cells import cells, correlations, landed, pairs
from reproduction.command import app
from reproduction.pictures import Dots, picture
from reproduction.provenance import provenance
from reproduction.published import Number, published
from reproduction.records import read
from reproduction.table import absent, as_json, cuts, lines, printed, sections, told

ROOT = Path(__file__).parent.parent
MAIN, EXPLICIT, IMPLICIT = get("tab-main"), get("tab-explicit"), get("fig-implicit")
STEPS = "multi-step over single-step over none"
DMS = {"loss": "scl-nl", "scheme": "dms", "dataset": "cifar10"}


def record(run, history=None, **given):
    """A synthetic record of a run with the given figures."""
    return {
        "key": run.key,
        "experiment": run.experiment,
        "values": dict(run.values),
        "figures": {"held_out": 0.5, **given},
        **({"history": history} if history else {}),
        "seconds": 60.0,
        "data": {
            "name": run.values["dataset"],
            "hash": "ab" * 16,
            "simulated": "simulated" in str(run.values["dataset"]),
            "note": "SYNTHETIC",
        },
        "encoder": None,
        "environment": {
            "versions": {"torch": "2.13.0"},
            "hardware": {"name": "SYNTHETIC"},
            "started": "2026-11-15T12:00:00+00:00",
        },
    }


ONE = {"quick": True, "seed": 0}  # the first of the quick runs of a place


def runs(spec, quick=False, **values):
    """The spec's runs that have these values."""
    return [
        run for run in wanted(spec, quick=quick) if all(run.values.get(name) == value for name, value in values.items())
    ]


def cell_of(spec, records, figure="test_accuracy", **place):
    (found,) = [cell for cell in cells(spec, records) if cell.figure == figure and dict(cell.place) == place]
    return found


def five(accuracies=(0.88, 0.89, 0.90, 0.89, 0.89), **values):
    """The full runs of SCL-NL + DMS on CIFAR10, with one test accuracy for each seed."""
    return [record(run, test_accuracy=accuracies[run.values["seed"]]) for run in runs(MAIN, **{**DMS, **values})]


def curve(last, epochs=30):
    return [
        {"epoch": epoch, "confidence_seen": 0.1 / epoch, "confidence_unseen": 0.1 / epoch + last}
        for epoch in range(1, epochs + 1)
    ]


def tables():
    """Synthetic records of two tables that are quick but for one full cell."""
    height = {"none": 0.5, "rss": 0.8, "rms": 0.87, "dss": 0.83, "dms": 0.875}
    quick = [*runs(MAIN, **ONE, dataset="cifar10"), *runs(get("clcifar10-simulated"), **ONE)]
    return [*five(), *(record(run, test_accuracy=height[run.values["scheme"]]) for run in quick)]


def some_of_everything():
    """Synthetic records for tables and figures."""
    found = tables()
    for run in runs(get("fig-neighbours"), **ONE):
        found.append(record(run, test_accuracy=0.9 - run.values["n_neighbors"] / 1e4))
    for run in [*runs(IMPLICIT, dataset="mnist"), *runs(get("fig-efficiency"), quick=True, dataset="mnist")]:
        size = 60_000 if run.values["n_train"] == "all" else run.values["n_train"]
        efficiency = 0.6 + size / 3e5 + (0.05 if run.values["optimizer"] == "sgd" else 0)
        given = {
            "train_accuracy": 0.5 + size / 2e5,
            "test_accuracy": 0.5 + size / 2.1e5,
            "sharing_efficiency": efficiency,
        }
        last = curve(0.007 + run.values["seed"] / 1e4)
        found.append(record(run, last, confidence_seen=0.003, confidence_unseen=last[-1]["confidence_unseen"], **given))
    return list({one["key"]: one for one in reversed(found)}.values())


def keep(records, folder):
    """A results folder that holds the records."""
    for one in records:
        Ledger(folder / f"{one['experiment']}.jsonl").add(one)
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A results folder with some synthetic records of everything."""
    return keep(some_of_everything(), tmp_path_factory.mktemp("results"))


def laboratory(*arguments, code=0):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == code, (done.exit_code, done.output, done.exception)
    return done


# What the paper says


def test_the_published_numbers_are_all_there():
    counts = {name: len(published(name).values) for name in NAMES}
    assert counts["tab-main"] == counts["tab-best-epoch"] == 80
    assert counts["tab-explicit"] == 18
    assert counts["tab-baselines"] == 16
    assert counts["clcifar10-simulated"] == counts["clcifar20-simulated"] == 20
    assert published("fig-implicit").at({"label": "MNIST, MLP"}, "confidence_unseen") == Number(0.0073)
    assert published("fig-implicit").at({"label": "MNIST, MLP"}, "sharing_efficiency") == Number(0.9343)


def test_every_number_of_the_papers_tables_has_its_spread():
    for name in (name for name in NAMES if not published(name).goal):
        spreads = [number.sd for number in published(name).values.values()]
        if name.startswith(("tab", "clcifar")):
            assert all(0 < sd < 0.04 for sd in spreads), name  # the widest is 3.43 points
        else:
            assert not any(spreads), name


@pytest.mark.parametrize("name", NAMES)
def test_every_published_number_has_its_cell_and_what_has_none_says_so(name):
    shown = [cell.published for cell in cells(get(name), []) if cell.published is not None]
    assert len(shown) == len(published(name).values)
    assert published(name).values or published(name).note in " ".join(told(get(name), cells(get(name), [])))
    assert published(name) != published("a table of one's own")


def test_published_numbers_stand_where_the_paper_has_them():
    def at(name, figure="test_accuracy", **place):
        number = published(name).at(place, figure)
        return round(number.mean * 100, 2), round(number.sd * 100, 2)

    assert at("tab-main", loss="ure-ga", scheme="dms", dataset="clcifar10") == (20.76, 1.66)
    assert at("tab-main", loss="l-w", scheme="dss", dataset="cifar20") == (47.43, 1.57)
    best = "best_test_accuracy"
    assert at("tab-best-epoch", best, loss="pc", scheme="none", dataset="cifar10") == (40.11, 2.36)
    assert at("tab-best-epoch", best, loss="scl-nl", scheme="rms", dataset="clcifar10") == (74.17, 2.66)
    assert at("tab-best-epoch", best, loss="l-w", scheme="dms", dataset="clcifar20") == (23.52, 1.42)
    assert at("tab-explicit", "neighbouring_noise", label="CIFAR10, ResNet-18", sharing="explicit") == (1.21, 0.13)
    assert at("tab-explicit", "train_accuracy", label="KMNIST, LeNet", sharing="original") == (92.95, 0.99)
    assert at("tab-baselines", label="kNN decoding", dataset="clcifar20") == (27.59, 1.12)
    assert at("clcifar20-simulated", loss="pc", scheme="rms", dataset="clcifar20-simulated") == (23.26, 1.39)


def test_numbers_that_stand_in_two_tables_are_the_same():
    main = published("tab-main")
    for table, rows in (
        ("tab-encoder", {"on images": "none", "on images + DMS": "dms"}),
        ("tab-simsiam", {"SCL-NL + DSS": "dss", "SCL-NL + DMS": "dms"}),
    ):
        for key, number in published(table).values.items():
            place = dict(key)
            if place["label"] in rows:
                there = {"loss": "scl-nl", "scheme": rows[place["label"]], "dataset": place["dataset"].split("-")[0]}
                assert number == main.at(there, "test_accuracy"), place


# Statistics, worked out by hand


def test_a_cell_is_mean_and_sd_over_seeds_and_its_difference_in_standard_errors():
    cell = cell_of(MAIN, five(), **DMS)
    assert cell.n == 5
    assert cell.mean == pytest.approx(0.89)
    assert cell.sd == pytest.approx(0.00707106781)  # sqrt((0.01² + 0.01²) / 4)
    assert cell.difference == pytest.approx(0.89 - 0.8872)
    assert cell.error == pytest.approx(0.00323264598)  # sqrt(sd²/5 + 0.0015²/5), which is the paper's
    assert cell.in_errors == pytest.approx(0.86616352)
    assert cell.verdict == "on"


def test_with_fewer_seeds_the_paper_still_counts_five():
    records = [one for one in five() if one["values"]["seed"] < 2]  # 0.88 and 0.89
    cell = cell_of(MAIN, records, **DMS)
    assert cell.n == 2
    assert cell.error == pytest.approx(0.00504479930)  # sd 0.00707106781; sqrt(sd²/2 + 0.0015²/5)


def test_a_published_number_without_a_spread_is_taken_to_spread_like_ours():
    runs_ = runs(IMPLICIT, dataset="mnist")
    found = [record(run, sharing_efficiency=(0.92, 0.93, 0.94, 0.93, 0.93)[run.values["seed"]]) for run in runs_]
    cell = cell_of(IMPLICIT, found, "sharing_efficiency", label="MNIST, MLP")
    assert cell.error == pytest.approx(0.00447213595)  # sqrt(sd²/5 + sd²/5)


def test_a_mean_beyond_two_standard_errors_is_below_or_above():
    assert cell_of(MAIN, five([0.85, 0.851, 0.849, 0.85, 0.85]), **DMS).verdict == "below"
    assert cell_of(MAIN, five([0.92, 0.921, 0.919, 0.92, 0.92]), **DMS).verdict == "above"


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [(0.8840, "on"), (0.8904, "on"), (0.8839, "below"), (0.8905, "above")],
    ids=["-1.9", "+1.9", "-2.01", "+2.01"],
)
def test_a_single_run_is_taken_to_spread_like_the_papers(accuracy, verdict):
    (run,) = runs(MAIN, **ONE, **DMS)
    cell = cell_of(MAIN, [record(run, test_accuracy=accuracy)], **DMS)
    assert cell.n == 1
    assert cell.sd is None
    assert cell.error == pytest.approx(0.00164316767)  # sqrt(0.0015² + 0.0015²/5)
    assert cell.verdict == verdict


@pytest.mark.parametrize(
    ("efficiency", "verdict"),
    [(0.9243, "on"), (0.9443, "on"), (0.9242, "below"), (0.9444, "above")],
    ids=["-1", "+1", "-1.01", "+1.01"],
)
def test_where_neither_side_has_a_spread_one_point_is_on_the_paper(efficiency, verdict):
    run = runs(IMPLICIT, dataset="mnist")[0]
    found = record(run, sharing_efficiency=efficiency)
    cell = cell_of(IMPLICIT, [found], "sharing_efficiency", label="MNIST, MLP")
    assert cell.error is None
    assert cell.in_errors is None
    assert cell.verdict == verdict


def test_a_single_run_of_a_small_figure_is_held_to_a_tenth_of_it():
    run = runs(IMPLICIT, dataset="mnist")[0]
    for confidence, verdict in ((0.0080, "on"), (0.0081, "above"), (0.0065, "below")):  # published 0.73 %
        found = record(run, confidence_unseen=confidence)
        assert cell_of(IMPLICIT, [found], "confidence_unseen", label="MNIST, MLP").verdict == verdict


def test_seeds_that_agree_exactly_have_no_standard_errors_to_count_in():
    same = [record(run, sharing_efficiency=0.95) for run in runs(IMPLICIT, dataset="mnist")]
    cell = cell_of(IMPLICIT, same, "sharing_efficiency", label="MNIST, MLP")
    assert cell.sd == 0
    assert cell.in_errors is None
    assert cell.verdict == "above"


# Which records stand for a cell


def test_each_seed_is_represented_by_the_setting_that_complementary_labels_chose():
    records = []
    for run in runs(MAIN, **DMS):
        chosen = run.values["learning_rate"] == 1e-4 and run.values["weight_decay"] == 1e-5
        records.append(record(run, held_out=0.8 if chosen else 0.7, test_accuracy=0.5 if chosen else 0.99))
    cell = cell_of(MAIN, records, **DMS)
    assert cell.values == (0.5,) * 5  # the test accuracy of others was higher
    assert cell.standing.kind == "full"
    assert not cell.standing.cut


def test_the_best_epochs_table_chooses_by_its_own_criterion():
    best = get("tab-best-epoch")
    records = []
    for number, run in enumerate(runs(best, **DMS, seed=0)):
        records.append(
            record(
                run, held_out=number, best_held_out=-number, best_test_accuracy=number / 10, test_accuracy=number / 10
            )
        )
    assert cell_of(best, records, "best_test_accuracy", **DMS).values == (0.0,)
    assert cell_of(MAIN, records, **DMS).values == (0.5,)


def test_a_diverged_run_is_chosen_last_and_an_unmeasured_figure_is_no_zero():
    settings = runs(MAIN, **DMS, seed=0)
    records = [record(settings[0], test_accuracy=0.1), *(record(run, test_accuracy=0.8) for run in settings[1:])]
    records[0]["figures"]["held_out"] = None
    assert cell_of(MAIN, records, **DMS).values == (0.8,)
    lost = [record(run, test_accuracy=None) for run in settings]
    cell = cell_of(MAIN, lost, **DMS)
    assert cell.n == 0
    assert cell.mean is None
    assert cell.verdict == ""


def test_full_runs_come_before_quick_ones_and_quick_before_a_part_of_the_full():
    quick = [record(run, test_accuracy=0.7) for run in runs(MAIN, quick=True, **DMS)]
    full = five()
    assert cell_of(MAIN, [*quick, *full], **DMS).standing.kind == "full"
    almost = cell_of(MAIN, [*quick, *full[1:]], **DMS)
    assert almost.standing.kind == "quick"
    assert almost.values == (0.7, 0.7)
    part = cell_of(MAIN, full[1:], **DMS)
    assert part.standing.kind == "partial"
    assert cell_of(MAIN, [], **DMS).standing.kind == "missing"


def test_a_cell_says_what_was_cut():
    def cut(records):
        return cell_of(MAIN, records, **DMS).standing.cut

    assert (
        cut([record(run, test_accuracy=0.7) for run in runs(MAIN, **ONE, **DMS)])
        == "30 of 200 epochs, 1 of 5 seeds, 1 of 6 settings"
    )
    full = five()
    assert cut([one for one in full if one["values"]["seed"] < 3]) == "3 of 5 seeds"
    assert cut(full[1:]) == "grid incomplete: 5 to 6 of 6 settings"
    assert (
        cut([one for one in full if one["values"]["seed"] == 0][:2]) == "1 of 5 seeds, grid incomplete: 2 of 6 settings"
    )


def test_seeds_whose_encoders_differ_are_told():
    def cut(*hashes):
        seeds = zip(runs(MAIN, quick=True, **DMS), hashes, strict=True)
        its = [record(run, test_accuracy=0.7) | {"encoder": {"name": "cifar10", "hash": one}} for run, one in seeds]
        return cell_of(MAIN, its, **DMS).standing.cut

    assert cut("a", "b") == cut("a", "a") + ", 2 encoders"


def test_a_quick_run_that_is_a_full_run_too_is_called_partial():
    table = get("tab-baselines")
    (run,) = runs(table, **ONE, dataset="cifar10", held_out=0.1, scheme=None)
    cell = cell_of(table, [record(run, test_accuracy=0.86)], label="kNN decoding", dataset="cifar10")
    assert (cell.standing.kind, cell.standing.cut) == ("partial", "1 of 5 seeds")


def test_a_criterion_that_is_better_when_lower_chooses_the_lowest():
    records = [
        record(run, held_out=number, test_accuracy=number / 10) for number, run in enumerate(runs(MAIN, **DMS, seed=0))
    ]
    for one in records:
        one["values"]["criterion"] = "scel"
    assert cell_of(MAIN, records, **DMS).mean == 0.0  # of the first setting, whose loss is 0


def test_failed_runs_are_counted_and_stand_for_nothing():
    failed = [{"key": run.key, "failed": "out of memory", "attempts": 3} for run in runs(MAIN, **DMS)[:2]]
    cell = cell_of(MAIN, failed, **DMS)
    assert (cell.standing.kind, cell.standing.failed, cell.n) == ("missing", 2, 0)
    assert provenance(MAIN, failed).runs() == ["2 failed"]


def test_a_record_of_before_a_repair_stands_marked_until_there_is_another():
    (run,) = runs(MAIN, **ONE, **DMS)
    old = record(run, test_accuracy=0.88) | {"key": list(run.keys)[-1]}
    its = cells(MAIN, [old])
    (rounded,) = [repair.before for repair in versions.REPAIRS if "bfloat16" in repair.before]
    assert cell_of(MAIN, [old], **DMS).standing.stale == (rounded,)
    row = {row[0]: row[-1] for row in lines(sections(MAIN, its)[0], cuts(its))}["SCL-NL + DMS"]
    assert row == "quick [1], stale [2]"
    assert f"[2] {rounded}." in told(MAIN, its)
    assert f"- [2] {rounded}" in markdown_page.page({"tab-main": its}, [old], "figures")
    assert [cell["stale"] for cell in as_json(MAIN, its)["cells"] if cell["place"] == DMS] == [[rounded]]
    assert provenance(MAIN, [old]).runs() == ["1 quick on SYNTHETIC, torch 2.13.0, 2026-11-15, 60 s in all"]
    new = cell_of(MAIN, [old, record(run, test_accuracy=0.89)], **DMS)
    assert (new.values, new.standing.stale) == ((0.89,), ())
    failed = {"key": run.key, "failed": "out of memory", "attempts": 3}
    assert cell_of(MAIN, [old, failed], **DMS).values == (0.88,)


def test_every_run_of_a_spec_belongs_to_exactly_one_place():
    for name in NAMES:
        spec = get(name)
        records = [record(run) for run in wanted(spec)]
        assert all(one.kind == "full" and not one.cut for one in standing.standings(spec, records)), name
        over = ("seed", *spec.show.get("choose", {}).get("over", ()))
        # no two runs are confused
        for group in standing._by_place(standing.names(spec), list(wanted(spec))).values():
            assert len({tuple(run.values.get(axis) for axis in over) for run in group}) == len(group), name


# How it is shown


def test_rows_show_ours_beside_the_published_with_their_marks():
    table = get("clcifar10-simulated")
    found = cells(table, [record(run, test_accuracy=0.8) for run in runs(table, **ONE, loss="pc", scheme="dms")])
    (section,) = sections(table, found)
    rows = {row[0]: row[1:] for row in lines(section, cuts(found))}
    assert rows["PC + DMS"] == ["80.00 (1)", "75.13 ± 0.49", "+4.87 (+9.1 se)", "above", "quick [1], simulated"]
    assert rows["PC"] == ["missing", "40.69 ± 1.98", "", "", ""]
    full = cells(MAIN, five())
    rows = {row[0]: row[1:] for row in lines(sections(MAIN, full)[0], cuts(full))}
    assert rows["SCL-NL + DMS"] == ["89.00 ± 0.71 (5)", "88.72 ± 0.15", "+0.28 (+0.9 se)", "on", ""]


def test_a_row_whose_kind_of_run_has_no_such_figure_is_not_called_missing():
    table = get("tab-simsiam")
    shared = [record(run, augmented_accuracy=0.9) for run in wanted(table, only={"experiment": ["augmented"]})]
    accuracy, least = sections(table, its := cells(table, shared))
    assert [row[:2] for row in lines(least, cuts(its)) if "shared labels, DMS" in row[0]] == [
        ["shared labels, DMS, CIFAR10", "90.00 ± 0.00 (5)"],
        ["shared labels, DMS, CIFAR10, SimSiam", "90.00 ± 0.00 (5)"],
    ]
    rows = [row[0] for row in lines(accuracy, cuts(its))]
    assert "kNN decoding, CIFAR10" in rows  # which is missing
    assert not any("shared labels" in row for row in rows)
    assert "shared labels" not in " ".join(absent(table, its))


def test_a_table_of_one_column_without_any_record_says_that_everything_is_missing():
    table = get("tab-rivals")
    assert "No record yet: everything." in " ".join(told(table, cells(table, [])))
    one = [record(run, test_accuracy=0.9) for run in wanted(table, only={"loss": ["scl-nl"]})]
    its = cells(table, one)
    rows = {row[0]: row[1] for row in lines(sections(table, its)[0], cuts(its))}
    assert rows["SCL-NL, plain training"] == "90.00 ± 0.00 (2)"
    assert [rows[name] for name in ("consistent", "POCR", "SCARCE, plain training")] == ["missing"] * 3


def test_the_efficiency_figure_has_the_papers_sizes():
    spec = get("fig-efficiency")
    sizes = {}
    for run in wanted(spec):
        sizes.setdefault(run.label, set()).add(run.values["n_train"])
    assert len(sizes) == 10
    for label, found in sizes.items():
        if label.startswith("CIFAR10"):
            assert found == {"all", 25000, 10000, 5000, 2500, 1000}
        else:
            assert found == {"all", 40000, 20000, 10000, 8000, 6000, 4000, 2000, 1000, 800, 600}
        assert ("SGD" in label) != (f"{label}, SGD" in sizes)  # each with both optimizers
    assert words.place({"label": "MNIST, MLP", "n_train": "all"}, ["label", "n_train"]) == "MNIST, MLP, all images"


def test_the_neighbour_figure_has_every_loss_at_one_setting():
    runs_ = wanted(get("fig-neighbours"))
    assert {run.values["loss"] for run in runs_} == {run.values["loss"] for run in wanted(MAIN)}
    assert len({(run.values["learning_rate"], run.values["weight_decay"]) for run in runs_}) == 1


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.8872, "88.72"), (0.0073, "0.73"), (0.00036, "0.036"), (-0.015, "−1.50"), (0.0, "0.00"), (None, "missing")],
)
def test_shares_are_written_in_percent(share, text):
    assert words.percent(share) == text


@pytest.mark.parametrize("name", NAMES)
def test_a_terminal_of_100_columns_is_enough(name):
    spec = get(name)
    console = Console(width=100, record=True, file=io.StringIO())
    its = cells(
        spec,
        [record(run, **dict.fromkeys(words.FIGURES, 0.123456 + run.values["seed"] / 100)) for run in wanted(spec)],
    )
    for part in printed(spec, its):
        console.print(part)
    text = console.export_text()
    assert "…" not in text
    for cell in (cell for cell in its if cell.n):
        spread = "" if cell.sd is None else f" ± {words.percent(cell.sd, cell.mean)}"
        assert f"{words.percent(cell.mean)}{spread} ({cell.n})" in text  # never broken over two lines


def test_the_order_of_schemes_is_checked_and_exceptions_are_named():
    found = cells(MAIN, tables())
    known, unknown = pairs(found, STEPS)
    assert len(known) == 16  # four losses, four pairs
    assert unknown == 80  # five more data sets
    undecided = [pair for pair in known if pair.holds is None]  # 4.5 points, where the paper's runs spread by 1.9 and 3
    assert [(pair.row, pair.better.place["scheme"]) for pair in undecided] == [("URE-GA, CIFAR10", "dms")]
    assert all(pair.holds for pair in known if pair not in undecided)
    run = runs(MAIN, **ONE, loss="pc", scheme="rms", dataset="cifar10")[0]
    swapped = [record(run, test_accuracy=0.75) if one["key"] == run.key else one for one in tables()]
    broken = [str(pair) for pair in pairs(cells(MAIN, swapped), STEPS)[0] if pair.holds is False]
    assert broken == ["PC, CIFAR10: RMS 75.00 is not over RSS 80.00"]


def test_a_pair_counts_only_where_its_difference_exceeds_its_error():
    def told(*means):
        found = []
        for scheme, mean in zip(("dss", "dms"), means, strict=True):
            seeds = [mean - 0.01, mean, mean + 0.01, mean, mean]  # sd 0.00707: two standard errors are 0.00894
            found += five(seeds, scheme=scheme)
        ((pair,), _) = pairs([cell for cell in cells(MAIN, found) if cell.n], STEPS)
        return pair.holds

    assert told(0.85, 0.86) is True
    assert told(0.86, 0.85) is False
    assert told(0.85, 0.8585) is None
    assert told(0.8585, 0.85) is None


def test_single_runs_of_which_no_spread_is_known_are_in_no_order():
    found = [
        record(run, test_accuracy=0.5 + 0.4 * (run.values["scheme"] == "dms"))
        for run in runs(MAIN, **ONE, dataset="aclcifar10", loss="pc")
    ]
    assert {pair.holds for pair in pairs(cells(MAIN, found), STEPS)[0]} == {None}
    page = markdown_page.page({"tab-main": cells(MAIN, found)}, found, "figures")
    assert "Order, multi-step over single-step over none: 4 not told apart; 92 without a record (error: 2 se)." in page


def test_whether_weights_by_distance_beat_weights_by_rank_is_told_too():
    found = cells(MAIN, tables())
    known, unknown = pairs(found, "by distance over by rank")
    assert (len(known), unknown) == (8, 40)
    # by 3 points over rss with each loss, where the paper's runs spread too far of URE-GA; over rms by half of one
    assert [pair.row for pair in known if pair.better.place["scheme"] == "dss" and pair.holds is None] == [
        "URE-GA, CIFAR10"
    ]
    assert [pair.row for pair in known if pair.better.place["scheme"] == "dms" and pair.holds] == ["SCL-NL, CIFAR10"]
    page = markdown_page.page({"tab-main": found}, tables(), "figures")
    assert "Order, by distance over by rank: holds in 4 of the 4 pairs whose difference exceeds its error" in page


def test_how_nearly_accuracy_is_a_line_over_sharing_efficiency_is_told_run_by_run():
    spec = get("fig-efficiency-losses")
    found = []
    for number, run in enumerate(runs(spec, dataset="mnist", model="mlp", optimizer="adamw")):
        bend = {"pc": 0.0, "l-w": 0.05}[run.values["loss"]] * (-1) ** number
        given = {"sharing_efficiency": number / 200, "train_accuracy": number / 400 + bend, "test_accuracy": 0.5}
        found.append(record(run, **given))
    told = correlations(cells(spec, found), "sharing_efficiency")
    assert set(told) == {("pc", "train_accuracy"), ("l-w", "train_accuracy")}  # of what is constant there is none
    assert told["pc", "train_accuracy"] == (pytest.approx(1), 55)
    efficiency, accuracy = np.array(
        [
            [one["figures"][name] for name in ("sharing_efficiency", "train_accuracy")]
            for one in found
            if one["values"]["loss"] == "l-w"
        ]
    ).T
    assert told["l-w", "train_accuracy"][0] == pytest.approx(np.corrcoef(efficiency, accuracy)[0, 1])
    page = markdown_page.page({spec.name: cells(spec, found)}, found, "figures")
    assert "Correlation with sharing efficiency: PC, training accuracy: 1.000 (55 runs); L-W" in page


def test_where_cells_land_is_counted():
    assert landed(cells(MAIN, five())) == "0 below, 1 on, 0 above the paper, 79 of 80 without a record"


def test_json_holds_every_cell(results):
    told = json.loads(laboratory("show", "tab-main", "--results", results, "--json").stdout)
    assert told == json.loads(json.dumps(as_json(MAIN, cells(MAIN, read(results)))))
    assert len(told["cells"]) == 120
    (cell,) = [cell for cell in told["cells"] if cell["place"] == DMS]
    assert (cell["n"], cell["runs"], cell["verdict"], cell["published"]) == (5, "full", "on", 0.8872)
    assert cell["mean"] == pytest.approx(0.89)
    assert len(cell["keys"]) == 5
    missing = [cell for cell in told["cells"] if cell["runs"] == "missing"]
    assert len(missing) == 100
    assert all(cell["mean"] is None and cell["n"] == 0 for cell in missing)


def test_show_prints_the_table(results):
    text = laboratory("show", "tab-main", "--results", results).stdout
    assert "89.00 ± 0.71 (5)" in text
    assert "[1] 30 of 200 epochs, 1 of 5 seeds, 1 of 6 settings." in text
    assert "No record yet: CIFAR20; CLCIFAR10; CLCIFAR20; ACLCIFAR10; ACLCIFAR20." in text


def test_a_spec_of_ones_own_is_shown_too(tmp_path):
    own = tmp_path / "mine.toml"
    own.write_text('extends = "tab-main"\ntitle = "Mine"\n[values]\nloss = ["scl-nl"]\ndataset = ["digits"]\n')
    spec = get(str(own))
    found = cells(spec, [record(run, test_accuracy=0.9) for run in runs(spec, scheme="dms")])
    assert [cell.n for cell in found] == [0, 0, 0, 0, 5]
    assert "No published values are known for this." in told(spec, found)


# Pictures


@pytest.mark.parametrize("name", ["fig-implicit", "fig-efficiency", "fig-neighbours", "tab-main"])
def test_the_picture_is_1600_pixels_wide_and_not_empty(name, results, tmp_path):
    path = tmp_path / f"{name}.png"
    laboratory("show", name, "--results", results, "--png", path)
    image = Image.open(path).convert("RGB")
    assert image.width == 1600
    assert 400 <= image.height <= 1600
    blue = [int(drawing.COLOURS[0][at : at + 2], 16) for at in (1, 3, 5)]
    apart = np.abs(np.asarray(image, dtype=int) - blue).max(2)
    assert (apart < 25).sum() > 100  # lines are slightly translucent, so not quite this blue, and quick dots hollow
    laboratory("show", name, "--results", results, "--png", path, code=2)  # what is there is not replaced unasked


def test_without_records_there_is_a_sentence_and_no_picture(tmp_path):
    for option in ("--png", "--html"):
        path = tmp_path / f"empty.{option[2:]}"
        done = laboratory("show", "fig-implicit", "--results", tmp_path, option, path, code=2)
        assert "no record" in done.stderr
        assert not path.exists()
    text = laboratory("show", "fig-implicit", "--results", tmp_path / "nowhere").stdout
    assert "No record yet: everything." in text
    assert "python -m reproduction run fig-implicit" in text


def test_a_curve_is_the_mean_over_seeds_and_its_band_their_range():
    records = [
        record(run, curve(0.01 * run.values["seed"], 3), confidence_seen=0.1, confidence_unseen=0.1)
        for run in runs(IMPLICIT, dataset="mnist")
    ]
    (panel,) = picture(IMPLICIT, cells(IMPLICIT, records)).panels
    seen, unseen = panel.lines
    assert list(seen.x) == [1, 2, 3]
    assert list(seen.y) == pytest.approx([10, 5, 10 / 3])
    assert list(unseen.y) == pytest.approx([12, 7, 10 / 3 + 2])  # the mean of 0 to 4 points more
    assert list(unseen.low) == pytest.approx([10, 5, 10 / 3])
    assert list(unseen.high) == pytest.approx([14, 9, 10 / 3 + 4])
    assert unseen.paper == pytest.approx((3, 0.73))


def test_neighbours_are_drawn_in_order():
    spec = get("fig-neighbours")
    records = [
        record(run, test_accuracy=run.values["n_neighbors"] / 1000) for run in reversed(runs(spec, dataset="cifar10"))
    ]
    (panel,) = picture(spec, cells(spec, records)).panels
    assert [line.name for line in panel.lines] == [
        f"{loss} + {scheme}" for loss in ("PC", "URE-GA", "SCL-NL", "L-W") for scheme in ("DSS", "DMS")
    ]
    assert list(panel.lines[0].x) == [4, 8, 16, 32, 64, 128, 256]
    assert list(panel.lines[0].y) == pytest.approx([0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6])


def test_two_figures_of_the_same_places_are_drawn_side_by_side():
    spec = get("check-labels")
    drawn = picture(
        spec,
        cells(spec, [record(run, augmented_accuracy=0.9, wrong_mass=0.02) for run in runs(spec, dataset="aclcifar10")]),
    )
    assert drawn.columns == 2
    assert [panel.y_name for panel in drawn.panels] == [
        "least named class is true, %",
        "labels naming the true class, %",
    ]
    assert [panel.lines[0].y[0] for panel in drawn.panels] == [90, 2]
    assert drawn.panels[0].note == "full (1 seed)"


def test_a_tables_picture_has_the_sections_with_records_and_the_rows_of_which_anything_is_known():
    drawn = picture(MAIN, cells(MAIN, five()))
    assert isinstance(drawn, Dots)
    assert [(title, len(rows)) for title, rows in drawn.panels] == [("CIFAR10", 20)]
    (acl,) = [
        record(run, test_accuracy=0.5) for run in runs(MAIN, dataset="aclcifar10", loss="pc", scheme="dms", seed=0)
    ][:1]
    ((title, rows),) = picture(MAIN, cells(MAIN, [acl])).panels
    assert (title, [name for name, _ in rows]) == ("ACLCIFAR10", ["PC + DMS"])


def test_the_order_of_schemes_is_one_of_accuracies():
    spec = get("check-labels")
    worse = [
        record(run, augmented_accuracy=0.9 - 0.1 * (run.values["scheme"] == "dms"), wrong_mass=0.02)
        for run in runs(spec)
    ]
    assert pairs(cells(spec, worse), STEPS) == ([], 0)


def test_the_colours_are_the_reports():
    css = (ROOT / "src/naysay/report/assets/report.css").read_text()
    assert re.findall(r"--c\d: (#\w{6})", css)[:10] == list(drawing.COLOURS)


@pytest.mark.parametrize(
    ("name", "section"), [("tab-main", "results"), ("fig-implicit", "sharing"), ("fig-efficiency", "sharing")]
)
def test_the_page_has_the_table_and_the_figure(name, section, results, tmp_path):
    path = tmp_path / "page.html"
    laboratory("show", name, "--results", results, "--html", path)
    text = path.read_text()
    assert 'id="results-table"' in text
    assert f'<section id="{section}"' in text
    assert "SYNTHETIC" in text  # hardware and note, from the records
    assert not re.search(r'="[^"]*\b(NaN|Infinity)\b', text)


# docs/REPRODUCTION.md


def test_the_same_records_give_the_same_page_and_pictures(tmp_path):
    results, out, pictures = (
        keep(tables(), tmp_path / "results"),
        tmp_path / "docs" / "REPRODUCTION.md",
        tmp_path / "docs" / "figures",
    )
    pictures.mkdir(parents=True)
    (pictures / "clcifar20-simulated.png").write_bytes(b"of records that are gone")
    laboratory("write", "--results", results, "--out", out, "--figures", pictures)
    # they want some of the same runs
    shared = {"fig-neighbours", "tab-baselines", "tab-encoder", "tab-simsiam", "check-order"}
    assert {path.stem for path in pictures.iterdir()} == {"tab-main", "clcifar10-simulated"} | shared
    first = {path: path.read_bytes() for path in [out, *pictures.iterdir()]}
    laboratory("write", "--results", results, "--out", out, "--figures", pictures)
    assert {path: path.read_bytes() for path in [out, *pictures.iterdir()]} == first
    page = out.read_text()
    assert "generated by `python -m reproduction write`" in page
    assert "](figures/tab-main.png)" in page
    assert "| SCL-NL + DMS | 89.00 ± 0.71 (5) | 88.72 ± 0.15 | +0.28 (+0.9 se) | on |  |" in page
    assert "30 full and 20 quick on SYNTHETIC, torch 2.13.0, 2026-11-15, 50 min in all" in page
    assert "`python -m reproduction run tab-main --quick --only dataset=cifar10 --only seed=0`" in page
    assert "simulated labels; SYNTHETIC" in page
    for line in re.findall(r"^\|.*", page, re.MULTILINE):
        assert line.endswith("|")


def test_the_page_in_the_repository_is_what_the_command_writes():
    records = read(ROOT / "results")
    tables = {name: cells(get(name), records) for name in NAMES}
    found = (ROOT / "docs" / "REPRODUCTION.md").read_text(encoding="utf-8")
    assert found == markdown_page.page(tables, records, "figures"), (
        "the records or the code have changed: run python -m reproduction write"
    )
    drawn = {f"{name}.png" for name, its in tables.items() if any(cell.n for cell in its)}
    assert {path.name for path in (ROOT / "docs" / "figures").glob("*.png")} == drawn


def test_the_recipe_stands_beside_the_papers_best_our_reproduction_and_full_supervision():
    tables = {name: cells(get(name), read(ROOT / "results")) for name in NAMES}
    by_label = {cell.place["label"]: cell for cell in tables["tab-recipe"]}
    named = {label for row in beside.ROWS for label in (row.recipe, row.full) if label}
    assert named <= by_label.keys()
    words, paper, ours, recipe, _ = beside.lines(tables)[0]
    cell = by_label["CIFAR10, uniform, 1, 190 epochs"]
    assert (words, paper, recipe) == ("CIFAR10, one label, even", "89.21", f"{100 * cell.mean:.2f} ({cell.n})")
    reproduced = [cell for name in beside.METHODS for cell in tables[name] if cell.place["dataset"] == "cifar10"]
    assert ours == f"{100 * max(cell.mean for cell in reproduced if cell.mean is not None):.2f}"
    # people's own labels were published of, and simulated ones run
    people = next(row for row in beside.lines(tables) if "people's" in row[0])
    assert people[1] == "78.68"
    assert beside.lines({name: cells(get(name), []) for name in NAMES}) == []


@pytest.mark.parametrize(("name", "word"), [("tab-main", "paper"), ("tab-recipe", "goal")])
def test_goals_of_ours_are_not_called_the_papers_in_picture_table_or_page(name, word):
    spec, records = get(name), read(ROOT / "results")
    its = cells(spec, records)
    legend = drawing._dots(spec, picture(spec, its)).legends[0]
    assert {"paper", "goal"} & {text.get_text() for text in legend.get_texts()} == {word}
    compared = [section for section in sections(spec, its) if section.compared]
    assert {section.beside for section in compared} == {word}
    titles = {column.name for section in compared for column in html_page._columns(section)}
    assert any(title.endswith(f", {word}") for title in titles)


def test_every_remark_is_on_a_row_that_exists_and_its_evidence_is_there():
    for name in NAMES:
        spec = get(name)
        shown = [
            text
            for section in sections(spec, cells(spec, []))
            for text in (section.title, *(row for row, _ in section.rows))
        ]
        for remark in markdown_page.remarks(name):
            assert any(text.startswith(remark["row"]) for text in shown), remark
            for path in re.findall(r"`([\w./]+/[\w./]+)`", remark["evidence"]):
                assert (ROOT / path).exists(), path


def test_a_remark_on_why_nothing_was_run_goes_when_something_was():
    def page(records):
        return markdown_page.page({"fig-implicit": cells(IMPLICIT, records)}, records, "figures")

    assert "Not run here" in page([])
    given = dict.fromkeys(("confidence_seen", "confidence_unseen", "sharing_efficiency"), 0.5)
    assert "Not run here" not in page([record(run, curve(0.0, 2), **given) for run in runs(IMPLICIT, dataset="kmnist")])


def test_commands_name_the_part_that_was_run():
    records = [record(run, test_accuracy=0.5) for run in runs(MAIN, quick=True, dataset="cifar20", loss="l-w")]
    assert provenance(MAIN, records).commands() == [
        "python -m reproduction run tab-main --quick --only dataset=cifar20 --only loss=l-w"
    ]
    baselines = get("tab-baselines")
    decoded = [record(run, test_accuracy=0.5) for run in wanted(baselines, only={"experiment": ["decoding"]})]
    assert provenance(baselines, decoded).commands() == [
        f"{words.COMMAND} run tab-baselines --only experiment=decoding"
    ]
    assert provenance(MAIN, []).commands() == [f"{words.COMMAND} run tab-main{quick}" for quick in ("", " --quick")]

    (command,) = provenance(baselines, decoded).commands()
    assert command == "python -m reproduction run tab-baselines --only experiment=decoding"


@pytest.mark.parametrize("name", ["tab-baselines", "tab-simsiam", "fig-neighbours", "fig-efficiency", "tab-encoder"])
def test_the_commands_on_the_page_make_the_runs_that_are_recorded_and_no_others(name):
    spec, records = get(name), read(ROOT / "results")
    made = set()
    for command in provenance(spec, records).commands():
        words_of = command.split()
        asked = [words_of[at + 1].split("=") for at, word in enumerate(words_of) if word == "--only"]
        only = {value: texts.split(",") for value, texts in asked}
        made |= {run.key for run in wanted(spec, quick="--quick" in words_of, only=only)}
    every = {run.key for quick in (False, True) for run in wanted(spec, quick=quick)}
    assert made == every & {one["key"] for one in records}


def test_a_command_says_no_more_than_tells_the_runs_apart():
    spec = get("fig-implicit")
    (first, *_) = runs(spec, dataset="mnist", seed=0)
    (command,) = provenance(spec, [record(first, confidence_seen=0.1)]).commands()
    assert command == "python -m reproduction run fig-implicit --only model=mlp --only seed=0"


# Without what it needs, and when it is stopped


def test_without_matplotlib_a_sentence_names_the_extra(results, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = laboratory("show", "tab-main", "--results", results, "--png", tmp_path / "main.png", code=2)
    assert done.stderr.startswith("reproduction: pictures need a package that is not here")
    assert "pip install 'naysay[reproduction]'" in done.stderr
    assert not list(tmp_path.iterdir())
    laboratory("show", "tab-main", "--results", results, "--html", tmp_path / "main.html")  # which draws without it


def test_an_interruption_is_a_sentence_and_130(monkeypatch):
    def interrupted(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("reproduction.spec.get", interrupted)
    assert laboratory("show", "tab-main", code=130).stderr.startswith("reproduction: interrupted; nothing unfinished")
