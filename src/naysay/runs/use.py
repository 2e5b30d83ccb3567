"""A finished run in Python: what `naysay predict` does, on arrays, tables or files.

run = naysay.load_run("RUN")
run.predict("more.csv"), run.predict_proba(table), run.classes, run.about
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import labels
from naysay.errors import InputError
from naysay.runs.folder import Run
from naysay.runs.rows import blocks
from naysay.words import few

Place = str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Trained:
    """A run that predicts. X is an array of rows as they were given for training, a table (a DataFrame, a pyarrow
    Table, a dict of lists), whose columns are found by name, or the path of data like that of fit.
    """

    run: Run

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of `predict_proba`'s columns."""
        return self.run.classes

    @property
    def about(self) -> dict[str, Any]:
        """What the run was made from, how, and what came out: its run.json."""
        return self.run.about

    def predict(self, X: Any) -> NDArray[np.str_]:
        """The class (n,) of each row, by name."""
        numbers = [self.run.predict(x, ids)[0].numpy() for ids, x in self._blocks(X)]
        named: NDArray[np.str_] = np.array(self.classes)[np.concatenate(numbers)]
        return named

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """The probability (n, K) of each class."""
        return np.concatenate([self.run.predict(x, ids)[1].numpy() for ids, x in self._blocks(X)])

    def ids(self, source: Place) -> list[str]:
        """What the rows of a file are called, in the order of what is predicted for it."""
        return [name for names, _ in self._blocks(source) for name in names]

    def _blocks(self, X: Any) -> Iterator[tuple[list[str], Any]]:
        if isinstance(X, str | PathLike):
            yield from blocks(self.run, str(X), None, None, lambda text: None)
            return
        named = isinstance(X, Mapping) or hasattr(X, "columns") or hasattr(X, "column_names")
        x = self._of_table(X) if named else np.asarray(X)
        wanted = tuple(self.about["input"]["shape"])
        if x.shape[1:] != wanted or not len(x):
            raise InputError(f"X must hold rows of shape {wanted}, as the model was trained on; got shape {x.shape}.")
        yield [], x

    def _of_table(self, table: Any) -> Any:
        wanted = self.about["input"]["columns"]
        if not wanted:
            raise InputError("the run was made from arrays or images, whose columns have no names: give an array.")
        missing = [name for name in wanted if name not in labels.column_names(table)]
        if missing:
            raise InputError(f"X lacks the columns {few(map(repr, missing), 5)}, which the model was trained on.")
        columns = {name: labels.column(table, name) for name in wanted}
        if self.run.columns is not None:
            return self.run.columns.apply(columns)
        return np.stack([np.asarray(column, np.float32) for column in columns.values()], 1)


def load_run(folder: Place) -> Trained:
    """The run in a folder that `naysay fit` or `naysay.runs.write` made, ready to predict."""
    return Trained(Run.load(Path(folder)))
