"""Runs: from instances with complementary labels to a folder that predicts, explains itself and needs nothing else.

    data = naysay.read("data.csv", label="not_label")       # items, their labels (n, K), what the classes are called
    fitted = fit(data, Settings())                          # audit, hold out, share labels, train, judge, choose
    write(fitted, data, "RUN")                              # model.safetensors, run.json, records.jsonl, report.* ...
    run = Run.load("RUN"); run.predict(x)                   # classes and probabilities of new rows

The truth has one way in, the `oracle` of `fit` and `write` (`data.oracle`): it gives figures for the records, and at
the end the true classes of the rows that the report shows. Nothing is trained or chosen by it.
"""

from naysay.reading import Labelled, Oracle
from naysay.runs.attempt import Attempt, Model
from naysay.runs.fit import Fitted, fit
from naysay.runs.folder import Run, is_run, room, write
from naysay.runs.questions import Questions, information
from naysay.runs.questions import choose as choose_questions
from naysay.runs.settings import AUTO, Settings, epochs_within_budget
from naysay.runs.use import Trained, load_run

__all__ = [
    "AUTO",
    "Attempt",
    "Fitted",
    "Labelled",
    "Model",
    "Oracle",
    "Questions",
    "Run",
    "Settings",
    "Trained",
    "choose_questions",
    "epochs_within_budget",
    "fit",
    "information",
    "is_run",
    "load_run",
    "room",
    "write",
]
