"""`naysay augment`: labels shared between neighbours, as a file."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from naysay.cli import augment_sharded as a
from naysay.cli import options as o
from naysay.cli.output import TABLES, TableWriter, new_file, note, say_json

BLOCK = 65_536  # rows written at a time


def augment(
    data: o.Data,
    *,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="FILE",
            rich_help_panel=o.OUTPUT,
            help="A .csv, .parquet or .npz file to write; with --engine ray, a folder.",
        ),
    ],
    id: o.Id = None,
    label: o.Label = None,
    features: o.Features = None,
    ignore: o.Ignore = None,
    truth: o.Truth = None,
    labels: o.Labels = None,
    item: o.Item = None,
    annotator: o.Annotator = None,
    options: o.Options = None,
    classes: o.Classes = None,
    merge_spelling: o.MergeSpelling = False,
    contradictions: o.ContradictionsOption = "raise",
    transition: o.Transition = None,
    n_labels: o.NLabels = None,
    scheme: o.Scheme = "dms",
    neighbors: o.Neighbors = None,
    alpha: o.Alpha = 0.1,
    gamma: o.Gamma = "auto",
    rounds: Annotated[
        int | None,
        typer.Option("--rounds", rich_help_panel=o.SHARING, help="Rounds of sharing; else the scheme's own."),
    ] = None,
    space: o.Space = "auto",
    encoder: o.Encoder = None,
    engine: a.Engine = "local",
    address: a.Address = None,
    workers: a.Workers = None,
    threads: a.Threads = None,
    method: a.Method = None,
    lists: a.Lists = None,
    probes: a.Probes = None,
    block_rows: a.BlockRows = None,
    checkpoint_every: a.CheckpointEvery = None,
    seed: o.Seed = 0,
    folder: o.Folder = None,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    r"""Share each item's labels with its neighbours, and write the labels that
    every item then has.

    The output has a row per item: its id and, for every class, not_CLASS, the
    share of its label mass that says "not this class". The class with the least
    is the best guess. An .npz holds ids, labels (n, K) and classes. All items
    share, none is held out: to train and judge a model use naysay fit, which
    keeps apart what must be kept apart.

    With --engine ray the items come in shards, .npy files or Parquet files with
    a column of embeddings, which no machine need hold at once; --labels is then
    a folder of .npy files of class numbers, named as the shards are. A run that
    was interrupted goes on when it is started again.

    [bold]Examples[/bold]

      naysay augment data.csv --id id --label not_label --out shared.csv
      naysay augment embeddings.npy --labels votes.csv --scheme rms \
          --out shared.npz
      naysay augment embeddings/ --labels labels/ --engine ray \
          --address auto --out shared/
    """
    asked = locals()
    if a.is_sharded(asked):
        a.augment_sharded(asked)
        return
    import numpy as np

    from naysay.augmentation import Sharing, share
    from naysay.features import find_space
    from naysay.reading import read

    sharing = Sharing(scheme, neighbors, alpha, o.number_or_auto(gamma), rounds)
    with new_file(out, force, (*TABLES, ".npz")) as unfinished:
        given = read(**o.reading(asked))
        near = find_space(given.items.x, space, encoder, columns=given.items.features)
        sharing = replace(sharing.within(*given.comp.shape), metric=near.metric)
        shared, report = share(near.features, given.comp.numpy(), sharing)
        ids = given.items.ids
        if out.suffix.lower() == ".npz":
            with unfinished.open("wb") as file:
                np.savez(
                    file, allow_pickle=False, ids=ids.astype(np.str_), labels=shared, classes=np.array(given.classes)
                )
        else:
            with TableWriter(unfinished, out) as table:
                for start in range(0, len(ids), BLOCK):
                    part = shared[start : start + BLOCK]
                    columns = {f"not_{name}": part[:, j] for j, name in enumerate(given.classes)}
                    table.write({"id": ids[start : start + BLOCK].tolist(), **columns})
    if json:
        say_json({"labels": str(out), "classes": list(given.classes), "space": near.about, **report.as_dict()})
    elif not quiet:
        note(f"neighbours by {near.about}\n{report}")
        print(out)
