"""A user's images: a folder with a subfolder per class, or images side by side with their labels in a table.

All come out as uint8 of one size, grey if every one is grey, else RGB; the id of an image is its path in the folder.
Whatever its name says, a file is only opened in the formats that are meant here: Pillow knows others that start
programs. Hidden files and folders (`.thumbnails`) are no images of the user's.
"""

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from naysay import cores, memory
from naysay.datasets.columns import flat, pad, read_columns
from naysay.datasets.dataset import Items, Texts, checked_texts
from naysay.datasets.store import UNREADABLE
from naysay.errors import InputError

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM", "TIFF")
SIDE = 64  # pixels: what images are brought to that are larger, or of different sizes
GREY = {"1", "L", "I", "I;16", "I;16L", "I;16B", "I;16N"}
COPIES = 3  # of an image's pixels, while it is set upright and its colours converted
LARGEST = 89_000_000  # pixels of one image: cameras have 24 to 60 million, and beyond it Pillow suspects a bomb
PER_SECOND = 20_000_000  # pixels that a core reads, of JPEG and PNG
WORTH_TELLING = 10  # seconds
SMALLER = "Make them smaller, or give fewer."
# what Pillow raises on files that are cut short or altered, in whichever format
BROKEN = (*UNREADABLE, SyntaxError, LookupError, ArithmeticError, AttributeError)
AGAIN = "Mend it or take it out of the folder."


def from_folder(
    path: str | PathLike[str],
    *,
    labels: str | PathLike[str] | None = None,
    id: str = "id",
    label: str | Sequence[str] = "label",
    size: tuple[int, int] | None = None,
) -> Items:
    """The images under `path`; with subfolders, their names are the ordinary labels, y_true.

    `labels` is a CSV or Parquet file of complementary labels: its column `id` names images (with or without the
    ending), one row or several for each, its column or columns `label` what they are not; images that it leaves out are
    unlabelled. `size` is (height, width); None keeps a size that all images share if it is at most 64 x 64, and else
    makes them 64 x 64.
    """
    root = Path(path)
    if not root.is_dir():
        raise InputError(f"{root} is not a folder. Give a folder of images.")
    files = sorted(file for file in _walk(root) if file.suffix.lower() in ENDINGS)
    if not files:
        raise InputError(f"{root} holds no images. The endings looked for are {', '.join(ENDINGS)}.")
    folders = {file.parent == root for file in files}
    if len(folders) > 1:
        what = "images both beside and inside its subfolders"
        raise InputError(f"{root} holds {what}. Put all into class folders, or none.")
    ids = checked_texts(np.array([file.relative_to(root).as_posix() for file in files], object), root)
    y_true: Texts | None = None if folders == {True} else np.array([name.partition("/")[0] for name in ids], object)
    x, columns = _read(files, size), [label] if isinstance(label, str) else label
    return Items(ids, x, None if labels is None else _join(ids, Path(labels), id, columns), y_true)


def _walk(root: Path) -> Iterator[Path]:
    """The files of a folder and its subfolders, linked ones too, none of them hidden."""
    seen: set[str] = set()

    def refuse(error: OSError) -> None:  # a class would be missing without a word
        way_out = "Make it readable, or take it out."
        raise InputError(f"the folder {error.filename} cannot be read ({error.strerror}). {way_out}") from error

    for place, folders, names in os.walk(root, onerror=refuse, followlinks=True):
        if (real := os.path.realpath(place)) in seen:
            raise InputError(f"the folder {place} is a link to one that is read already. Take it out.")
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _join(ids: Texts, path: Path, id: str, columns: Sequence[str]) -> Texts:
    """The labels (n, m) that the table `path` gives to the images."""
    table = read_columns(path, [id, *columns])
    whole, place = whole_names(ids), {name: i for i, name in enumerate(ids)}
    rows: list[list[str | None]] = [[] for _ in ids]
    for name, *cells in zip(table[id], *(table[column] for column in columns), strict=True):
        if name not in whole:
            which = "which is not one image of the folder"
            raise InputError(f"{path} labels {name!r}, {which}. Its column {id!r} must name images.")
        rows[place[whole[name]]] += [text for text in flat(cells) if text is not None]
    return pad(rows)


def whole_names(ids: Texts) -> dict[str, str]:
    """The images by their names, and by their names without an ending where only one is called so."""
    stems = Counter(name.rpartition(".")[0] for name in ids)
    return {stem: name for name in ids if stems[stem := name.rpartition(".")[0]] == 1} | {name: name for name in ids}


def _read(files: list[Path], size: tuple[int, int] | None) -> NDArray[np.uint8]:
    kinds = _kinds(files)
    shapes, modes = (set(found) for found in zip(*kinds, strict=True))
    pixels = sum(height * width for (height, width), _ in kinds)
    if (seconds := pixels / (PER_SECOND * cores.usable())) > WORTH_TELLING:
        what = f"{len(files):,} images of {pixels / 1e6:,.0f} megapixels in all"
        warnings.warn(f"reading {what} takes about {seconds:,.0f} s; smaller copies are read sooner", stacklevel=4)
    if size is None:
        common = next(iter(shapes))
        size = common if len(shapes) == 1 and max(common) <= SIDE else (SIDE, SIDE)
    mode = "L" if modes <= GREY else "RGB"
    shape = (len(files), *size, *((3,) if mode == "RGB" else ()))
    largest = COPIES * 4 * max(height * width for height, width in shapes)  # Pillow has 4 bytes a pixel
    memory.afford(math.prod(shape) + largest, f"reading {len(files):,} images one at a time", SMALLER)
    x = np.empty(shape, np.uint8)

    def fill(i: int) -> None:
        x[i] = _pixels(files[i], size, mode)

    at_once = min((os.cpu_count() or 1) + 4, 32, (memory.available() - x.nbytes) // max(1, largest))
    with ThreadPoolExecutor(max(1, at_once)) as pool:
        list(pool.map(fill, range(len(files))))
    return x


def _kinds(files: list[Path]) -> list[tuple[tuple[int, int], str]]:
    """The images' sizes and colour modes; what is too large is refused before any of them is decoded."""
    from PIL import Image

    with warnings.catch_warnings(), ThreadPoolExecutor() as pool:
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # which is said here, in one sentence
        found = list(pool.map(_kind, files))
    for file, ((height, width), _) in zip(files, found, strict=True):
        if height * width > LARGEST:
            got = f"got {width:,} x {height:,}"
            most = f"an image may have {LARGEST / 1e6:.0f} megapixels"
            raise InputError(f"{file} is too large: {most}; {got}. Make it smaller, or take it out of the folder.")
    return found


def _kind(file: Path) -> tuple[tuple[int, int], str]:
    """An image's (height, width) and colour mode, from its header."""
    from PIL import Image

    with _opened(file) as image:
        width, height = image.size
        exif = Image.Image.getexif(image)  # PNG's own would unpack the pixels to look behind them
        turned = exif.get(0x0112, 1) >= 5  # EXIF orientations 5 to 8 lie on their side
        return ((width, height) if turned else (height, width)), image.mode


def _pixels(file: Path, size: tuple[int, int], mode: str) -> NDArray[np.uint8]:
    """An image as uint8 (height, width[, 3]), upright, resized with its neighbours averaged."""
    from PIL import Image, ImageOps

    with _opened(file) as image:
        upright = ImageOps.exif_transpose(image)
        if upright.mode.startswith("I"):  # convert() would clip 16 bits at 255
            upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
        upright = upright.convert(mode)
        if upright.size != size[::-1]:
            upright = upright.resize(size[::-1], Image.Resampling.BILINEAR)
        return np.asarray(upright)


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """The open image, and one sentence for whatever Pillow finds wrong with it."""
    from PIL import Image

    try:
        if not file.is_file():  # a pipe would be waited on for ever
            raise ValueError("it is not a file")
        with Image.open(file, formats=FORMATS) as image:
            # Pillow has the 16 bits of a PGM in 32, as 0 to 65535 whatever its largest value is
            if image.mode == "F" or (image.mode == "I" and image.format != "PPM"):
                raise ValueError("it has 32 bits per pixel")
            yield image
    except (*BROKEN, Image.DecompressionBombError) as error:
        raise InputError(f"{file} cannot be read as an image ({error}). {AGAIN}") from error
