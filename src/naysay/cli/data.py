"""`naysay data`: the known sets, what they are and where they lie."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from naysay.cli import options as o
from naysay.cli.output import console, say_json

if TYPE_CHECKING:
    from naysay.datasets import Entry

app = typer.Typer(
    help="The known sets: list them, get them, or import files you already have.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

TITLES = ("name", "what", "training", "test", "instance", "classes", "here")
Name = Annotated[str, typer.Argument(metavar="NAME", help="A known set (naysay data list).")]


@app.command("list")
def list_sets(folder: o.Folder = None, json: o.Json = False) -> None:
    """List the known sets, and which of them are here.

    [bold]Examples[/bold]

      naysay data list
      naysay data list --json
    """
    from naysay import datasets

    place = datasets.data_folder(folder)
    rows = [
        {
            "name": name,
            "what": entry.title,
            "training": entry.n_train,
            "test": entry.n_test,
            "instance": "x".join(map(str, entry.shape)),
            "classes": len(entry.classes),
            "here": _here(name, entry, place),
            "licence": entry.licence,
        }
        for name, entry in datasets.CATALOG.items()
    ]
    if json:
        say_json({"folder": str(place), "sets": rows})
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption=f"The data folder is {place} (change it with --data or $NAYSAY_DATA)")
    for title in TITLES:
        table.add_column(
            title, justify="right" if title in ("training", "test", "classes") else "left", no_wrap=title == "name"
        )
    for row in rows:
        table.add_row(*(f"{row[title]:,}" if isinstance(row[title], int) else str(row[title]) for title in TITLES))
    console().print(table)


def _here(name: str, entry: "Entry", place: Path) -> str:
    if entry.decode and not entry.sources:
        return "embedded"
    if (place / f"{name}.npz").exists():
        return "yes"
    return "no" if entry.decode else "import only"


@app.command("get")
def get(name: Name, folder: o.Folder = None, json: o.Json = False) -> None:
    """Bring a known set into the data folder: downloaded from its home, checked,
    decoded; what is there already is kept.

    [bold]Examples[/bold]

      naysay data get mnist
      NAYSAY_DATA=/big/disk naysay data get cifar10
    """
    from naysay import datasets

    data = datasets.load(name, folder)
    path = datasets.data_folder(folder) / f"{name}.npz"
    where = str(path) if path.exists() else "embedded"
    if json:
        say_json(
            {
                "name": name,
                "path": where,
                "training": len(data.x_train),
                "test": len(data.x_test),
                "hash": data.fingerprint,
            }
        )
    else:
        print(f"{data}\n{where}\n{datasets.CATALOG[name].citation} (licence: {datasets.CATALOG[name].licence})")


@app.command("import")
def import_files(
    name: Name,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="An .npz in the data folder's layout, or published files of the set."),
    ],
    folder: o.Folder = None,
    force: o.Force = False,
) -> None:
    """Put files you already have into the data folder, after checking them.

    An .npz must hold x_train, y_train, x_test, y_test, classes, and perhaps
    comp_train. Published files are known by their names and checksums.

    [bold]Examples[/bold]

      naysay data import mnist mnist.npz
      naysay data import clcifar10 clcifar10.pkl cifar-10-python.tar.gz
    """
    from naysay.cli.imports import import_npz, import_originals
    from naysay.datasets import CATALOG
    from naysay.errors import unknown

    if name not in CATALOG:
        raise unknown("dataset", name, CATALOG)
    if len(files) == 1 and files[0].suffix.lower() == ".npz":
        print(import_npz(name, files[0], folder, force))
    else:
        print(import_originals(name, files, folder, force))
