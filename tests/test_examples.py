"""Every example runs as it stands, in a folder of its own; so do the tutorial's commands, in the order of the page."""

import re
import runpy
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 60  # lines: an example that needs more shows that the library lacks something


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_runs_and_is_short(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out.strip(), "an example shows something"
    assert len(example.read_text().splitlines()) <= LONGEST


def test_the_tutorials_commands_run_in_the_order_of_the_page(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from naysay.cli import app

    monkeypatch.chdir(tmp_path)
    # a fifth of the page's epochs and a twentieth of its seconds, which are enough to be right
    monkeypatch.setattr("naysay.runs.settings.MOST_EPOCHS", 20)
    monkeypatch.setattr("naysay.portfolio.trial.budget_for", lambda n_rows: 3.0)
    session = {"__name__": "tutorial"}
    page = (ROOT / "docs" / "TUTORIAL.md").read_text()
    fences = re.findall(r"^```(python|console)[^\n]*\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    for kind, block in fences:
        if kind == "python":
            exec(compile(block, "TUTORIAL.md", "exec"), session)
            continue
        for line in re.findall(r"^\$ naysay (.*)$", block.replace("\\\n", " "), re.MULTILINE):
            result = CliRunner().invoke(app, shlex.split(line))
            assert result.exit_code == 0, f"naysay {line}\n{result.output}"
    assert {"python", "console"} == {kind for kind, _ in fences}
