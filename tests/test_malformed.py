"""A sample of `make fuzz`: whatever is wrong with a file, its reader gives a result or one sentence."""

import malformed
import pytest

# what run folders and models hold is checked by tests of their own; the whole run has them too
SAMPLED = list(malformed.READERS)


@pytest.mark.parametrize("reader", SAMPLED)
def test_files_that_are_almost_right_give_a_result_or_one_sentence(tmp_path, reader):
    outcomes = []
    for seed in range(16):
        folder = tmp_path / str(seed)
        folder.mkdir()
        outcomes.append(malformed.outcome(reader, seed, folder))
        assert outcomes[-1] in malformed.FINE, f"again with: python tests/malformed.py {seed + 1} {reader}"
    assert "refused" in outcomes, "nothing was spoilt"
    assert "taken" in outcomes or reader == "cards", "nothing could be read, whatever was done to it"
