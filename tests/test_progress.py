"""A bar shows on a terminal and nowhere else."""

import io
import sys

import pytest

from naysay import progress


class Terminal(io.StringIO):
    """A place to write that says it is a terminal."""

    def isatty(self):
        return True


def test_a_bar_appears_on_a_terminal_after_a_while_and_nowhere_else(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    for stream, expected in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(progress.track(range(3), 3, "finding neighbours")) == [0, 1, 2]
        assert ("finding neighbours" in stream.getvalue()) == expected
    monkeypatch.setattr(progress, "PATIENCE", 1000.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.track(range(3), 3, "finding neighbours")) == [0, 1, 2]
    assert "finding neighbours" not in sys.stderr.getvalue()


@pytest.mark.parametrize(("enabled", "expected"), [(None, True), (True, True), (False, False)])
def test_a_caller_may_say_whether_to_draw(monkeypatch, enabled, expected):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert progress.wanted(enabled) is expected
