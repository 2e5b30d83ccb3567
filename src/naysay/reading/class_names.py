"""Names of class numbers in Parquet of Hugging Face's datasets: a ClassLabel in the metadata of the schema.

    {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}

under the key huggingface. Of a list of classes the ClassLabel stands in the list's feature.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from naysay.datasets.dataset import Texts
from naysay.datasets.opening import PARQUET


def class_label_names(metadata: Mapping[bytes, bytes] | None, column: str) -> tuple[str, ...] | None:
    """The names of a column's class numbers, in order, from the metadata of its file; None where it has none."""
    try:
        feature = json.loads((metadata or {})[b"huggingface"])["info"]["features"][column]
        while isinstance(feature, dict | list) and not (isinstance(feature, dict) and "names" in feature):
            feature = feature[0] if isinstance(feature, list) else feature["feature"]
        names = feature["names"]
    except (LookupError, TypeError, ValueError, RecursionError):  # of another kind, or nobody's we know
        return None
    whole = isinstance(names, list) and all(isinstance(name, str) and name.strip() for name in names)
    return tuple(name.strip() for name in names) if whole and len(set(names)) == len(names) else None


def names_in(path: Path, columns: Any) -> tuple[str, ...] | None:
    """The names of the class numbers in the columns of a file, where all of them have the same ones."""
    if path.suffix.lower() not in PARQUET or not columns:
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata
    except (pa.ArrowException, OSError, ValueError):  # which the reader of the table says better
        return None
    found = {class_label_names(metadata, column) for column in columns}
    return found.pop() if len(found) == 1 else None


def spell(texts: Texts, names: tuple[str, ...]) -> Texts:
    """Texts with the names of class numbers in the place of the numbers, of which -1 is no class."""
    number = {"-1": None, **{str(k): name for k, name in enumerate(names)}}
    flat = [number.get(text, text) if isinstance(text, str) else text for text in texts.reshape(-1).tolist()]
    return np.array(flat, object).reshape(texts.shape)
