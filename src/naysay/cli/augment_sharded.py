"""`naysay augment SHARDS --engine ray`: labels shared between the rows of many files, on a Ray cluster."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

import typer

from naysay.cli import options as o
from naysay.cli.output import note, say_json

CLUSTER = "Cluster"
METRIC = {"auto": "cosine", "cosine": "cosine", "raw": "euclidean"}
ONE_MACHINE = ("ignore", "truth", "item", "annotator", "options", "transition", "n_labels", "encoder", "folder")

Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="local|ray",
        rich_help_panel=CLUSTER,
        help="ray: DATA is a folder or pattern of shards, --out a folder.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        "--address", metavar="HOST:PORT", rich_help_panel=CLUSTER, help="The Ray cluster to join; else one is started."
    ),
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, rich_help_panel=CLUSTER, help="Workers; else as many as have CPUs.")
]
Threads = Annotated[
    int | None, typer.Option("--threads", min=1, rich_help_panel=CLUSTER, help="CPUs of each worker (1).")
]
Method = Annotated[
    str | None,
    typer.Option(
        "--method", metavar="auto|exact|approximate", rich_help_panel=CLUSTER, help="How neighbours are found (auto)."
    ),
]
Lists = Annotated[
    int | None,
    typer.Option("--lists", min=1, rich_help_panel=CLUSTER, help="Lists of the approximate search; else by rule."),
]
Probes = Annotated[
    int | None,
    typer.Option(
        "--probes",
        min=1,
        rich_help_panel=CLUSTER,
        help="Lists that a row looks into; else so many that recall is 0.98.",
    ),
]
BlockRows = Annotated[
    int | None,
    typer.Option("--block-rows", min=1, rich_help_panel=CLUSTER, help="Rows searched at a time; else 64 MiB."),
]
CheckpointEvery = Annotated[
    int | None,
    typer.Option("--checkpoint-every", min=1, rich_help_panel=CLUSTER, help="Rounds between two checkpoints (10)."),
]
OURS = ("address", "workers", "threads", "method", "lists", "probes", "block_rows", "checkpoint_every")


def is_sharded(asked: Mapping[str, Any]) -> bool:
    """Whether the command's arguments ask for Ray; options that belong to the other engine are refused."""
    from naysay.engine import NAMES
    from naysay.errors import InputError, unknown

    engine = asked["engine"]
    if engine not in NAMES:
        raise unknown("engine", engine, NAMES)
    foreign = ONE_MACHINE if engine == "ray" else OURS
    given = next((name for name in foreign if asked[name] not in (None, [], ())), None)
    if given is not None:
        option = {"folder": "data"}.get(given, given).replace("_", "-")
        raise InputError(f"--{option} is not for --engine {engine}. Leave it out, or choose the other engine.")
    return bool(engine == "ray")


def augment_sharded(asked: Mapping[str, Any]) -> None:
    """Do what the arguments of `naysay augment --engine ray` ask for."""
    from naysay.augmentation import Sharing
    from naysay.cluster import augment_shards
    from naysay.errors import unknown
    from naysay.reading import find_classes, only_one

    classes = o.class_names(asked["classes"])
    if asked["space"] not in METRIC:
        raise unknown("space of shards", asked["space"], METRIC)
    sharing = Sharing(
        asked["scheme"],
        asked["neighbors"],
        asked["alpha"],
        o.number_or_auto(asked["gamma"]),
        asked["rounds"],
        METRIC[asked["space"]],
        asked["method"] or "auto",
    )
    account = augment_shards(
        asked["data"],
        asked["out"],
        sharing,
        features=only_one("features", asked["features"] or ()),
        label=asked["label"] or (),
        classes=classes,
        name_texts=partial(find_classes, wanted=classes, merge_spelling=asked["merge_spelling"]),
        nlist=asked["lists"],
        nprobe=asked["probes"],
        checkpoint_every=asked["checkpoint_every"] or 10,
        threads=asked["threads"] or 1,
        **{
            name: asked[name]
            for name in ("labels", "id", "contradictions", "block_rows", "address", "workers", "force")
        },
    )
    if asked["json"]:
        say_json({"folder": str(asked["out"]), **account.as_dict()})
    elif not asked["quiet"]:
        method, recall = account.search["method"], account.search["recall"]
        found = "" if recall is None else f"{method} neighbours, recall {recall:.3f}; "
        note(f"{found}{account.workers} workers, {sum(account.seconds.values()):.0f} s\n{account.report}")
        print(asked["out"])
