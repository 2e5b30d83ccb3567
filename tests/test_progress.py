"""A bar shows on a terminal and nowhere else, keeps what matters where that is narrow; threads suit a busy machine."""

import io
import os
import re
import signal
import sys
import warnings

import numpy as np
import pytest
import torch

from naysay import cores, progress
from naysay.learning import Config, records, train


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


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_bar_of_a_training_keeps_bar_epoch_and_time_left_in_a_narrow_terminal(monkeypatch, width):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    figures = {"loss": 0.123456, "confidence_seen": 0.0123, "confidence_augmented": 0.25, "sharing_efficiency": 0.9}
    with records.progress(100, 41) as show:
        show({"epoch": 42, **figures, "held_out": 3.79, "held_out_error": 1.2})
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.getvalue()).replace("\r", "\n").strip().splitlines()[-1]
    assert re.match(r"training [━╸╺ ]{20} +42/100 +(\d+:\d\d:\d\d|-:--:--) loss", last), last
    assert len(last) <= width
    assert ("sharing_efficiency" in last) == (width == 160)
    assert "held_out" not in last  # 379 % is no accuracy


def test_cores_are_those_that_a_container_may_use(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert cores.usable(tmp_path) == 8
    new, old = tmp_path / "new", tmp_path / "old"
    (old / "cpu").mkdir(parents=True)
    new.mkdir()
    for text, expected in (("max 100000", 8), ("150000 100000", 2), ("1600000 100000", 8), ("50000 100000", 1)):
        (new / "cpu.max").write_text(text)
        assert cores.usable(new) == expected
    for quota, expected in (("-1", 8), ("300000", 3)):
        (old / "cpu" / "cpu.cfs_quota_us").write_text(quota)
        (old / "cpu" / "cpu.cfs_period_us").write_text("100000")
        assert cores.usable(old) == expected
    assert cores.held(old) == "training uses 3 of 16 cores: this process may not use more"


def test_training_leaves_busy_cores_to_others_unless_threads_sleep_while_they_wait(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(4)))
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    for load, expected in ((0.3, 4), (1.2, 4), (3.0, 2), (9.0, 1)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, load, load))
        assert cores.free(tmp_path) == expected
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(4)
        x, comp = np.zeros((8, 28, 28), np.uint8), torch.nn.functional.one_hot(torch.arange(8) % 3, 3).float()
        seen = train(
            Config(model="lenet", epochs=1), x, comp, observers=[lambda snapshot: {"n": float(torch.get_num_threads())}]
        ).history[-1]["n"]
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)
    assert seen == 1
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    assert cores.free(tmp_path) == 4


@pytest.mark.parametrize(("given", "expected"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_the_command_lets_threads_sleep_while_they_wait_unless_told_otherwise(monkeypatch, given, expected):
    from naysay import cli

    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if given:
        monkeypatch.setenv("OMP_WAIT_POLICY", given)
    shown, signals = warnings.showwarning, signal.getsignal(signal.SIGTERM)
    try:
        cli.main(lambda: None)
    finally:
        warnings.showwarning = shown
        signal.signal(signal.SIGTERM, signals)
    assert os.environ["OMP_WAIT_POLICY"] == expected
