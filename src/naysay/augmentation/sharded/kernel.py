"""The compiled loop that measures what the lists propose. Import this module only where it is used: it imports numba."""

from typing import Any

from numba import njit

from naysay.neighbors.kernels import EMPTY, distance, make_key

Array = Any


@njit(nogil=True, cache=True)
def measure(rows: Array, own: Array, proposed: Array, columns: Array, first: int, keys: Array) -> None:
    """Write to keys (m, w) the key of each proposed row number (m, w) that lies in `columns` (b, d), whose numbers
    begin at `first`.

    A row's own number `own` (m,) gets no key: it is no neighbour of itself.
    """
    for i in range(rows.shape[0]):
        for j in range(proposed.shape[1]):
            number = proposed[i, j]
            if first <= number < first + columns.shape[0]:
                keys[i, j] = EMPTY if number == own[i] else make_key(distance(rows[i], columns[number - first]), number)
