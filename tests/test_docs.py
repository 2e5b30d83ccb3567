"""Every Python example in README and docs runs as it stands, each page's in one session, as a reader types them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in TEXTS if "```python" in page.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_of_the_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    session = {"__name__": "example"}
    for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        exec(compile(block, str(page), "exec"), session)


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
