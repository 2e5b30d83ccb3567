"""Every Python example in README and docs runs as it stands, each page's in one session, as a reader types them."""

import json
import re
from pathlib import Path

import pytest
import stand_ins
from typer.testing import CliRunner

from naysay.cli import app

ROOT = Path(__file__).parent.parent
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NUMBER = r"\d+(?:\.\d+)?"
PAGES = [page for page in TEXTS if "```python" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "EMBEDDINGS.md":  # the same lines, with small models in place of large ones
        stand_ins.install(monkeypatch)
    monkeypatch.setattr("naysay.portfolio.trial.budget_for", lambda n_rows: 3.0)  # a twentieth of what a reader has
    session = {"__name__": "example"}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, str(page), "exec"), session)


def test_what_the_page_on_embeddings_leaves_is_what_its_commands_take(tmp_path, monkeypatch):
    page = ROOT / "docs" / "EMBEDDINGS.md"
    test_every_example_of_the_page_runs(page, tmp_path, monkeypatch)
    for line in re.findall(r"^    naysay fit (.*) --out RUN$", page.read_text(), re.MULTILINE):
        done = CliRunner().invoke(app, ["augment", *line.split(), "--out", "shared.csv", "--force", "--json"])
        assert done.exit_code == 0, done.output
        assert "by angle" in json.loads(done.stdout)["space"]
        assert len(Path("shared.csv").read_text().splitlines()) == 61


def test_the_pages_table_of_losses_is_the_table():
    from naysay.losses import LOSSES

    page = (ROOT / "docs" / "LOSSES.md").read_text()
    named = {name for row in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(.*?)`", row)}
    assert named == set(LOSSES)
    saturating = {name for name, row in LOSSES.items() if row.saturates}
    rows = re.findall(r"^\| (`.*?) \|.*\| yes \| [A-Z]", page, re.MULTILINE)
    said = {n for row in rows for n in re.findall(r"`(.*?)`", row)}
    assert said | {"mcl-mae", "mcl-exp"} == saturating


def test_links_between_pages_lead_somewhere():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


@pytest.mark.parametrize("path", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_holds_what_its_cells_give(path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from notebook import run

    stored = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == [*range(1, len(cells) + 1)]
    for cell, given in zip(cells, run(stored), strict=True):
        kept, now = (json.dumps(outputs) for outputs in (cell["outputs"], given))
        # words are the same; numbers may differ by what another machine's rounding makes of a training
        assert re.sub(NUMBER, "0", kept) == re.sub(NUMBER, "0", now), "run make notebook"
        pairs = zip(re.findall(NUMBER, kept), re.findall(NUMBER, now), strict=True)
        assert all(abs(float(a) - float(b)) <= 0.05 * max(1, abs(float(a))) for a, b in pairs), f"{kept} is now {now}"


def test_a_notebook_that_was_changed_by_hand_would_be_seen(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from notebook import run

    cells = [{"cell_type": "code", "source": ["x = 3\n", "print(x)\n", "x + 1"]}, {"cell_type": "markdown"}]
    [first, second] = run({"cells": cells})[0]
    assert (first["text"], second["data"]) == (["3\n"], {"text/plain": ["4"]})
