"""`naysay data`: the known sets, what they are and where they lie; and files that a user has already, put there."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from naysay.cli import options as o
from naysay.cli.output import console, say_json
from naysay.errors import InputError, unknown
from naysay.files import replacing

if TYPE_CHECKING:
    from naysay.datasets import Entry

HELP = "The known sets: list them, get them, or import files you already have."
app = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode="rich")

TITLES = ("name", "what", "training", "test", "instance", "classes", "here")
FILES = "An .npz in the data folder's layout, or published files of the set."
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
    rows = [_about(name, entry, place) for name, entry in datasets.CATALOG.items()]
    if json:
        say_json({"folder": str(place), "sets": rows})
        return
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, caption=f"The data folder is {place} (change it with --data or $NAYSAY_DATA)")
    for title in TITLES:
        number = title in ("training", "test", "classes")
        table.add_column(title, justify="right" if number else "left", no_wrap=title == "name")
    for row in rows:
        table.add_row(*(f"{row[title]:,}" if isinstance(row[title], int) else str(row[title]) for title in TITLES))
    console().print(table)


def _about(name: str, entry: "Entry", place: Path) -> dict[str, str | int]:
    here = "no" if entry.decode else "import only"
    if entry.embedded or (place / f"{name}.npz").exists():
        here = "embedded" if entry.embedded else "yes"
    one, classes = "x".join(map(str, entry.shape)), len(entry.classes)
    sizes: dict[str, str | int] = {"training": entry.n_train, "test": entry.n_test, "instance": one, "classes": classes}
    return {"name": name, "what": entry.title, **sizes, "here": here, "licence": entry.licence}


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
        rows = {"training": len(data.x_train), "test": len(data.x_test)}
        say_json({"name": name, "path": where, **rows, "hash": data.fingerprint})
    else:
        print(f"{data}\n{where}\n{datasets.CATALOG[name].citation} (licence: {datasets.CATALOG[name].licence})")


@app.command("import")
def import_files(
    name: Name,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help=FILES)],
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
    from naysay.datasets import CATALOG, data_folder

    if name not in CATALOG:
        raise unknown("dataset", name, CATALOG)
    entry, path = CATALOG[name], data_folder(folder) / f"{name}.npz"
    if path.exists() and not force:
        raise InputError(f"{path} exists already. Pass --force to replace it.")
    ready = len(files) == 1 and files[0].suffix.lower() == ".npz"
    print(_import_npz(entry, files[0], path) if ready else _import_originals(entry, files, path))


def _import_npz(entry: "Entry", file: Path, path: Path) -> str:
    """Check an .npz in the data folder's layout and store it at `path`; what to tell the user."""
    from naysay.datasets import store
    from naysay.datasets.dataset import KEYS

    if entry.embedded:
        raise InputError(f"{path.stem} is embedded and needs no file.")
    if not file.is_file():
        raise InputError(f"{file} is not a file. Give the path of an .npz.")
    data = store.read(file, path.stem, entry.shape)
    store.write(path, {key: array for key in KEYS if (array := getattr(data, key)) is not None})
    return f"{data}\n{path}"


def _import_originals(entry: "Entry", files: Sequence[Path], path: Path) -> str:
    """Copy published files of a set into originals/ and decode it once all are there; what to tell the user."""
    from naysay.datasets import load
    from naysay.datasets.download import sha256

    name, originals = path.stem, path.parent / "originals"
    sources = {Path(source.file).name: source for source in entry.sources}
    for file in files:
        if file.name not in sources:
            known = ", ".join(sources) or "none, it is embedded or made elsewhere"
            why = f"is not a published file of {name}; those are {known}"
            raise InputError(f"{file.name} {why}. An .npz is imported alone.")
        if not file.is_file():
            raise InputError(f"{file} is not a file. Give the path of the published {file.name}.")
        total = sources[file.name].sha256
        if total and sha256(file) != total:
            raise InputError(f"{file} is not the published {file.name}: its SHA-256 is not {total}. Get it again.")
    for file in files:
        with replacing(originals / sources[file.name].file, "Choose another data folder with --data.") as unfinished:
            shutil.copyfile(file, unfinished)
    missing = ", ".join(source.file for source in sources.values() if not (originals / source.file).exists())
    if missing:
        return f"stored in {originals}; {name} still needs {missing}: import them too, or run naysay data get {name}"
    path.unlink(missing_ok=True)
    return f"{load(name, path.parent)}\n{path}"
