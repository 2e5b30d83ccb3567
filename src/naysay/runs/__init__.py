"""Runs: from instances with complementary labels to a folder that predicts, explains itself and needs nothing else.

    data = Labelled(items, comp, classes)                   # instances, their labels (n, K), what the classes are called
    fitted = fit(data, Settings())                          # audit, hold out, share labels, train, judge
    write(fitted, data, "RUN")                              # model.safetensors, run.json, records.jsonl, audit.json, report.*
    run = Run.load("RUN"); run.predict(x)                   # classes and probabilities of new rows

Nothing here takes an ordinary label. Where the truth is known it stays with an `Oracle`, which a run may ask for
figures and cannot read.
"""

from naysay.runs.classes import Classes, settle
from naysay.runs.fit import Attempt, Fitted, Oracle, fit
from naysay.runs.folder import Run, is_run, write
from naysay.runs.labelled import Labelled
from naysay.runs.settings import AUTO, Settings, epochs_within_budget
from naysay.runs.space import SPACES, Space, find_space

__all__ = [
    "AUTO",
    "SPACES",
    "Attempt",
    "Classes",
    "Fitted",
    "Labelled",
    "Oracle",
    "Run",
    "Settings",
    "Space",
    "epochs_within_budget",
    "find_space",
    "fit",
    "is_run",
    "settle",
    "write",
]
