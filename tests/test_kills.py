"""A sample of `make kills`: jobs that are killed at random moments lose nothing, and the next call ends alike."""

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
