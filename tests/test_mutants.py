"""The list of `make mutants` stays true: a mutant that no longer fits its file proves nothing."""

import pytest
from mutants import MUTANTS, ROOT


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_the_text_that_a_mutant_changes_stands_once_in_its_file(file):
    text = (ROOT / "src" / "naysay" / file).read_text(encoding="utf-8")
    for mutant in (mutant for mutant in MUTANTS if mutant.file == file):
        found = text.count(mutant.old)
        assert found == 1, f"{mutant.old!r} stands {found} times in {file}: give mutants.py the text as it is now"
        assert mutant.new != mutant.old


def test_the_tests_that_should_see_a_mutant_are_there():
    named = {part for mutant in MUTANTS for part in mutant.tests.split() if part.endswith(".py")}
    assert not [name for name in named if not (ROOT / "tests" / name).is_file()]
    assert len(MUTANTS) >= 100
