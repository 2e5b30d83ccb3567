"""A sample of `make kills`: jobs that are killed at random moments lose nothing, and the next call ends alike.

And pretraining, killed at every step of its first checkpoint.
"""

import json
import subprocess
import sys
from pathlib import Path


def test_jobs_that_are_killed_lose_nothing_and_end_with_the_same_bits():
    program = Path(__file__).parent / "kills.py"
    call = [sys.executable, program, "--kills", "8", "--seed", "3", "--jobs", "train,get,keep,ledger"]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [told[job] for job in ("train", "get", "keep", "ledger")] == [2, 2, 2, 2]
    assert told["ended by it"] >= 3  # the kills did hit jobs on their way


def test_pretraining_that_is_killed_at_any_step_of_its_first_checkpoint_ends_with_the_same_bits(tmp_path):
    call = [sys.executable, Path(__file__).parent / "first_checkpoint.py", tmp_path]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    steps = [row["step"] for row in told]
    renamed = steps.index("os.rename new.safetensors checkpoint.safetensors")
    # before there is a file to fill, while it is empty, when it is whole, when it has its name, and what is done after
    assert steps[:renamed].count("open new.safetensors") == 3
    assert len(steps[renamed + 1 :]) >= 4
    for number, row in enumerate(told):
        assert row["found"] == row["continued"] == (number > renamed), row  # anew before, and then never again
        assert row["left"] >= 1, row  # the kill left something to sweep
        assert (row["same"], row["litter"], row["epochs"]) == (True, 0, [1, 2]), row
