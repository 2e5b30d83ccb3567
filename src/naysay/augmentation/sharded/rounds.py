"""Propagation by rounds: every worker holds a part of the graph, and the labels go from round to round through Ray's
object store.

In a round each part reads the blocks of labels of all rows, by reference and without a copy where they are on its
machine, and gives its own new block. When the next round is there nobody refers to the old blocks any more, and Ray
frees them: about two rounds of labels are in the store at a time. (If they don't fit, Ray writes the oldest to disk and
reads them again: slow, and right.) Every few rounds the blocks are written to the work folder; a run that was killed
goes on from there.
"""

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from naysay.augmentation.sharded.blocks import File
from naysay.augmentation.sharded.crew import Crew
from naysay.augmentation.sharded.part import Recipe, read_labels
from naysay.augmentation.sharded.work import Work
from naysay.files import replacing
from naysay.progress import track

STATE = "rounds.json"


@dataclass(frozen=True)
class Rounds:
    """The labels after the last round, in files; how many rounds there were, the largest change in the last, and the
    seconds of each.

    effective, nearest: of each row (n,), from the weights and the graph.
    """

    files: Sequence[File]
    done: int
    change: float
    seconds: list[float]
    effective: Any
    nearest: Any


def share_labels(
    ray: Any, crew: Crew, work: Work, whole: Recipe, *, rounds: int, tol: float | None, checkpoint_every: int
) -> Rounds:
    """Run the rounds over the rows of the recipe `whole`, divided among the crew, from the last that was kept."""
    team = crew.workers[: whole.n]
    spans = list(pairwise(np.linspace(0, whole.n, len(team) + 1).round().astype(int).tolist()))
    recipes = [ray.put(replace(whole, first=first, last=last)) for first, last in spans]
    duties = list(zip(team, recipes, strict=True))
    with crew.timed("loading the graph"):
        spreads = ray.get([worker.spread.remote(recipe) for worker, recipe in duties])
    state = work.read(STATE) or {"round": 0, "change": 0.0, "files": whole.comp}
    reading = partial(read_labels, state["files"])
    labels = [
        worker.do.options(num_returns=2).remote(reading, span)[0] for worker, span in zip(team, spans, strict=True)
    ]
    seconds = []
    with crew.timed("sharing labels"):
        left = range(0) if _settled(state, tol) else range(state["round"] + 1, rounds + 1)
        for done in track(left, len(left), "sharing labels"):
            start = time.perf_counter()
            news = [worker.step.options(num_returns=2).remote(recipe, *labels) for worker, recipe in duties]
            state |= {"round": done, "change": max(ray.get([change for _, change in news]))}
            labels = [block for block, _ in news]
            seconds.append(time.perf_counter() - start)
            if _settled(state, tol) or done == rounds or done % checkpoint_every == 0:
                paths = [str(work.labels(done, at)) for at in range(len(team))]
                keeping = zip(team, paths, labels, strict=True)
                for _, peak in ray.get(
                    [worker.do.remote(partial(keep, path), block) for worker, path, block in keeping]
                ):
                    crew.note(peak)
                state["files"] = [(path, first, last - first) for path, (first, last) in zip(paths, spans, strict=True)]
                work.write(STATE, state)
                _forget_other_rounds(work, done)
            if _settled(state, tol):
                break
    effective, nearest = (np.concatenate(parts) for parts in zip(*spreads, strict=True))
    files = [(path, first, rows) for path, first, rows in state["files"]]
    return Rounds(files, state["round"], state["change"], seconds, effective, nearest)


def keep(path: str, labels: Any) -> None:
    """Write labels to a file."""
    with replacing(Path(path)) as unfinished:
        np.save(unfinished, labels)


def _settled(state: dict[str, Any], tol: float | None) -> bool:
    return tol is not None and state["round"] > 0 and state["change"] <= tol


def _forget_other_rounds(work: Work, done: int) -> None:
    for folder in work.labels(done, 0).parents[1].iterdir():
        if folder.name != str(done):
            shutil.rmtree(folder)
