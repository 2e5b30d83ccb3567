"""`naysay augment`: labels shared between neighbours, as a file; or between the rows of many files, on Ray."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import TABLES, new_file, note, refuse_non_text, say_json, write_table
from naysay.errors import InputError, unknown
from naysay.files import probe

BLOCK = 65_536  # rows written at a time
METRIC = {"auto": "cosine", "cosine": "cosine", "raw": "euclidean"}  # of the spaces that shards can be compared in
ONE_MACHINE = (
    *("ignore", "truth", "item", "annotator", "options", "transition", "n_labels", "encoder", "folder"),
    *("format", "labels_say", "without", "weigh_annotators", "whiten"),
)
CLUSTER = ("address", "workers", "threads", "method", "lists", "probes", "block_rows", "checkpoint_every")
OUT = "A .csv, .parquet or .npz file to write; with --engine ray, a folder."
WHITEN = "Whiten features by 0 (centred) to 1, and compare them by angle; auto: chosen by hidden labels."
ENGINE = "ray: DATA is a folder or pattern of shards, --out a folder."

on_cluster = partial(o.option, "Cluster")
Engine = Annotated[str, on_cluster("--engine", "local|ray", ENGINE)]
Address = Annotated[str | None, on_cluster("--address", "HOST:PORT", "The Ray cluster to join; else one is started.")]
Workers = Annotated[int | None, on_cluster("--workers", None, "Workers; else as many as have CPUs.", min=1)]
Threads = Annotated[int | None, on_cluster("--threads", None, "CPUs of each worker (1).", min=1)]
Method = Annotated[str | None, on_cluster("--method", "auto|exact|approximate", "How neighbours are found (auto).")]
Lists = Annotated[int | None, on_cluster("--lists", None, "Lists of the approximate search; else by rule.", min=1)]
Probes = Annotated[
    int | None, on_cluster("--probes", None, "Lists a row looks into; else for a recall of 0.98.", min=1)
]
BlockRows = Annotated[int | None, on_cluster("--block-rows", None, "Rows searched at a time; else 64 MiB.", min=1)]
Every = Annotated[int | None, on_cluster("--checkpoint-every", None, "Rounds between two checkpoints (10).", min=1)]


def augment(
    data: o.Data,
    *,
    out: Annotated[Path, o.output("--out", "FILE", OUT)],
    id: o.Id = None,
    label: o.Label = None,
    features: o.Features = None,
    ignore: o.Ignore = None,
    truth: o.Truth = None,
    labels: o.Labels = None,
    item: o.Item = None,
    annotator: o.Annotator = None,
    options: o.Options = None,
    format: o.Format = None,
    labels_say: o.LabelsSay = None,
    without: o.Without = None,
    weigh_annotators: o.WeighAnnotators = False,
    classes: o.Classes = None,
    merge_spelling: o.MergeSpelling = False,
    contradictions: o.ContradictionsOption = "raise",
    transition: o.Transition = None,
    n_labels: o.NLabels = None,
    scheme: o.Scheme = "dms",
    neighbors: o.Neighbors = None,
    alpha: o.Alpha = "0.1",
    gamma: o.Gamma = None,
    rounds: Annotated[int | None, o.sharing("--rounds", None, "Rounds of sharing; else the scheme's own.")] = None,
    class_shares: o.ClassShares = "unknown",
    whiten: Annotated[str | None, o.sharing("--whiten", "NUMBER|auto", WHITEN)] = None,
    space: o.Space = "auto",
    encoder: o.Encoder = None,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
    threads: Threads = None,
    method: Method = None,
    lists: Lists = None,
    probes: Probes = None,
    block_rows: BlockRows = None,
    checkpoint_every: Every = None,
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

    Settings that are auto are chosen without a single ordinary label: by how
    well neighbours foresee labels that are hidden from them.

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
    foreign = _foreign(asked)
    if foreign is not None:
        raise InputError(f"--{foreign} is not for --engine {engine}. Leave it out, or choose the other engine.")
    if engine == "ray":
        _augment_shards(asked)
        return
    import numpy as np

    from naysay.augmentation import Sharing, share
    from naysay.features import find_space
    from naysay.reading import read

    sharing = Sharing(scheme, rounds=rounds, **o.how_shared(asked))
    o.check_class_shares(class_shares)
    with new_file(out, force, (*TABLES, ".npz")) as unfinished:
        given = read(**o.reading(asked))
        refuse_non_text(given.items.ids)
        probe(out, len(given.comp) * (20 * len(given.classes) + 40))  # digits of a number, letters of an id
        near = find_space(given.items.x, space, encoder, columns=given.items.features)
        known = o.class_shares(class_shares, given.classes)
        sharing = replace(sharing, metric=near.metric, class_shares=known).within(*given.comp.shape)
        shared, report = share(near.features, given.comp.numpy(), sharing)
        ids, names = given.items.ids, np.array(given.classes)
        if out.suffix.lower() == ".npz":
            with unfinished.open("wb") as file:
                np.savez(file, allow_pickle=False, ids=ids.astype(np.str_), labels=shared, classes=names)
        else:
            write_table(unfinished, out, _blocks(ids, shared, given.classes))
    if json:
        say_json({"labels": str(out), "classes": list(given.classes), "space": near.about, **report.as_dict()})
    elif not quiet:
        note(f"neighbours by {near.about}\n{report}")
        print(out)


def _blocks(ids: Any, shared: Any, classes: Sequence[str]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(ids), BLOCK):
        part = shared[start : start + BLOCK]
        columns = {f"not_{name}": part[:, j] for j, name in enumerate(classes)}
        yield {"id": ids[start : start + BLOCK].tolist(), **columns}


def _foreign(asked: Mapping[str, Any]) -> str | None:
    """The option that was given and belongs to the other engine, if there is one."""
    from naysay.engine import NAMES

    if asked["engine"] not in NAMES:
        raise unknown("engine", asked["engine"], NAMES)
    others = ONE_MACHINE if asked["engine"] == "ray" else CLUSTER
    given = next((name for name in others if asked[name] not in (None, False, [], ())), None)
    return "data" if given == "folder" else given and given.replace("_", "-")


def _augment_shards(asked: Mapping[str, Any]) -> None:
    """Do what the arguments of `naysay augment --engine ray` ask for."""
    from naysay.augmentation import Sharing
    from naysay.cluster import augment_shards
    from naysay.reading import find_classes, only_one, refuse_shared

    refuse_shared(id=asked["id"], label=asked["label"])
    classes, space = o.class_names(asked["classes"]), asked["space"]
    if space not in METRIC:
        raise unknown("space of shards", space, METRIC)
    how, shares = o.how_shared(asked), asked["class_shares"]
    if shares not in ("even", "unknown") and classes is None:
        raise InputError("--class-shares FILE with --engine ray needs --classes A,B,C: they are not known beforehand.")
    o.check_class_shares(shares)
    as_given = ("labels", "id", "contradictions", "block_rows", "address", "workers", "force")
    account = augment_shards(
        asked["data"],
        asked["out"],
        Sharing(
            asked["scheme"],
            rounds=asked["rounds"],
            metric=METRIC[space],
            method=asked["method"] or "auto",
            class_shares=o.class_shares(shares, classes or ()),
            **how,
        ),
        features=only_one("features", asked["features"] or ()),
        label=asked["label"] or (),
        classes=classes,
        name_texts=partial(find_classes, wanted=classes, merge_spelling=asked["merge_spelling"]),
        nlist=asked["lists"],
        nprobe=asked["probes"],
        checkpoint_every=asked["checkpoint_every"] or 10,
        threads=asked["threads"] or 1,
        **{name: asked[name] for name in as_given},
    )
    if asked["json"]:
        say_json({"folder": str(asked["out"]), **account.as_dict()})
    elif not asked["quiet"]:
        method, recall = account.search["method"], account.search["recall"]
        found = "" if recall is None else f"{method} neighbours, recall {recall:.3f}; "
        note(f"{found}{account.workers} workers, {sum(account.seconds.values()):.0f} s\n{account.report}")
        print(asked["out"])
