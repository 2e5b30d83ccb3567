"""Which tests one worker does one after another: those that open ports, and those of a file whose fixture they share.

A port that one test has found free must not be another's, and a fixture of a module is then made once, not once for
each worker. pytest-xdist's own groups (`--dist loadgroup`) do nothing since pytest 9.2: they are told by the ids of
tests, which cannot be changed any more. So the files themselves are asked: for OPENS_PORTS, and for such fixtures.
"""

from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@cache
def together(file):
    """What the tests of a file are done together with: those of all files with ports, those of the file, or nothing."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return "ports" if "OPENS_PORTS = True" in text else file if 'scope="module"' in text else None


@pytest.hookimpl(optionalhook=True)  # there is none without pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return together(nodeid.partition("::")[0]) or nodeid

    return Together(config, log)
