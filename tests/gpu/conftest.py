"""Tests that need a GPU: `make test-gpu`, on a machine whose Python has torch for CUDA. They skip elsewhere.

They import torch, numpy, scipy, scikit-learn, numba, safetensors and filelock, and nothing else.
`NAYSAY_TEST_DEVICE=cpu make test-gpu` rehearses them on a machine without a GPU.
"""

import os
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

NAME = os.environ.get("NAYSAY_TEST_DEVICE", "cuda")
HERE = Path(__file__).parent
STARTED = time.monotonic()
COMPILING = []


def pytest_collection_modifyitems(items):
    skip = pytest.mark.skip(reason="needs a CUDA device (NAYSAY_TEST_DEVICE=cpu rehearses on the CPU)")
    for item in items:
        if HERE not in item.path.parents:
            continue
        item.add_marker("gpu")
        if NAME == "cuda" and not torch.cuda.is_available():
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter):
    passed = terminalreporter.stats.get("passed", ())
    if any("gpu" in report.keywords for report in passed):
        compiling = sum(COMPILING)
        spent = time.monotonic() - STARTED - compiling
        terminalreporter.write_line(f"GPU tests on {NAME}: {spent:.0f} s, and {compiling:.0f} s of compiling")


@pytest.fixture(scope="session")
def device():
    return torch.device(NAME)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about settings that do not suit data this small
        yield


@pytest.fixture
def compiling():
    """Inside, the seconds count as compiling."""

    @contextmanager
    def timed():
        begun = time.monotonic()
        yield
        COMPILING.append(time.monotonic() - begun)

    return timed
