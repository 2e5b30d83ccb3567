"""What the commands share: from what was named on the command line to items, labels and classes."""

from pathlib import Path

from naysay.cli import labelling
from naysay.cli.items import dataset_of, own_items
from naysay.cli.reading import Input, Reading
from naysay.errors import InputError

__all__ = ["Input", "Reading", "dataset_of", "own_items", "read"]


def read(reading: Reading, *, strict: bool = True) -> Input:
    """Items, labels and truth; `strict` refuses labels that were not among the options shown (an audit counts them
    instead).
    """
    known = dataset_of(reading)
    if known is not None:
        return labelling.of_known(reading, known, strict)
    items, origin = own_items(reading)
    if reading.labels is not None:
        return labelling.with_truth(reading, labelling.in_long_rows(reading, items, origin, strict))
    if reading.transition is not None:
        return labelling.drawn(reading, items, origin)
    if items.labels is None:
        from naysay.datasets.columns import header

        columns = f" Its columns are {', '.join(header(Path(reading.data))[:20])}." if "columns" in origin else ""
        raise InputError(
            f"no labels were named for {reading.data}: pass --label COLUMN, or --labels FILE with long rows.{columns}"
        )
    return labelling.with_truth(reading, labelling.in_columns(reading, items, origin))
