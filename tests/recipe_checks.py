"""What every recipe promises, for the tests of each: a run may be interrupted, and a batch shared between processes."""

import pytest
import torch

from naysay.learning import Predictor, train
from naysay.processes import ALONE, Processes


class Stop(Exception):
    """Raised by an observer in the middle of a run."""


def continues(config, x, comp, folder, after, rows):
    """A run stopped after an epoch and continued is the run that was not interrupted, bit for bit; so is its file."""
    whole = train(config, x, comp, progress=False, device="cpu")

    def stop(snapshot):
        if snapshot.epoch == after:
            raise Stop
        return {}

    with pytest.raises(Stop):
        train(config, x, comp, folder=folder, observers=[stop], progress=False, device="cpu")
    again = train(config, x, comp, folder=folder, progress=False, device="cpu")
    assert [epoch["loss"] for epoch in again.history] == [epoch["loss"] for epoch in whole.history]
    assert torch.equal(again.predictor.logits(rows), whole.predictor.logits(rows))
    kept = Predictor.load(folder / "checkpoint.safetensors")  # of recipes with a teacher, the teacher
    assert torch.equal(kept.logits(rows), whole.predictor.logits(rows))


def halves_make_the_whole(learner, epoch):
    """The mean of the losses that two processes have of their halves of a batch is the loss of one process."""
    order = torch.arange(10)
    draws = learner.draw(epoch, order)

    def loss(processes):
        learner.processes = processes
        return learner(order, processes.part(draws))[0]

    halves = [loss(Processes(rank, 2, rank, 2)) for rank in range(2)]
    torch.testing.assert_close(sum(halves) / 2, loss(ALONE))
