"""The compiled inner loops of the CPU search: encode rows, filter a tile of products, keep each row's k smallest keys.

A key is one int64: the float32 bits of the squared distance above, the row's number below. Distances are not negative,
so keys sort as (distance, index), which is the tie rule. `distance` is the one formula of the stage: differences and
their squares in float64, their sum rounded once to float32. A key therefore does not depend on blocks, threads, or
which of the two rows asks.

This module imports numba and is itself imported where it is first used. Slices are passed to the innermost loops
because numba vectorises those, and does not vectorise offsets into a larger array.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit

EMPTY = np.int64(0x7F800000_7FFFFFFF)  # infinitely far, the last index: any real key is smaller
CHUNK = 32  # columns tested at once
APART, TOGETHER, ITSELF = 0, 1, 2  # rows look among columns; both look among each other; a block looks within itself
GROWTH = np.float32(1 + 2.0**-20)  # covers the roundings of a square root, two sums and a square
FLOOR = np.float32(1e-36)  # a hundred of the smallest normal float32, for processors that flush what is smaller to zero
TINY = np.float32(2.0**-72)  # two rows whose float32 squared distance is 0 are no further apart than this
NOBODY = np.int32(2**31 - 1)
Array = Any  # numpy's, of the kinds that `Side` says


class Side(NamedTuple):
    """What the kernels know of one set of rows, one entry per row; `proposals` explains the letters."""

    rows: Array  # (n, d) float32
    ids: Array  # (n,) int32, the row's number in the caller's order
    scale: Array  # (n,) float32, s
    half: Array  # (n,) float32, (1 - margin) h
    residual: Array  # (n,) float32, rho
    bound: Array  # (n,) float32, t: a proven upper bound of the distance (not squared) to the k-th neighbour
    heaps: Array  # (n, k) int64 keys, the largest first


# sums side by side, in the one order that this compiled loop has
@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def distance(a: Array, b: Array) -> Any:
    """The squared distance of two float32 rows: summed in float64, rounded once."""
    total = 0.0
    for p in range(a.shape[0]):
        difference = np.float64(a[p]) - np.float64(b[p])
        total += difference * difference
    return np.float32(total)


@njit(nogil=True, cache=True)
def make_key(squared: Any, index: Any) -> Any:
    return (np.int64(np.float32(squared).view(np.int32)) << 32) | np.int64(index)


@njit(nogil=True, cache=True)
def squared_of(key: Any) -> Any:
    return np.int32(key >> 32).view(np.float32)


@njit(nogil=True, cache=True)
def replace_largest(heap: Array, key: Any) -> None:
    """Put `key` in the place of the heap's first and largest."""
    k, hole, child = heap.shape[0], 0, 1
    while child < k:
        if child + 1 < k and heap[child + 1] > heap[child]:
            child += 1
        if heap[child] <= key:
            break
        heap[hole] = heap[child]
        hole, child = child, 2 * child + 1
    heap[hole] = key


@njit(nogil=True, cache=True)
def encode_int8(rows: Array, c: Array, margin: float, codes: Array, scale: Array, half: Array, rho: Array) -> None:
    """q, s, h and rho of each row: x - c is s q and an error of length at most rho."""
    for i in range(rows.shape[0]):
        largest = 0.0
        for p in range(rows.shape[1]):
            largest = max(largest, abs(np.float64(rows[i, p]) - np.float64(c[p])))
        s = np.float64(np.float32(largest / 127.0))
        inverse = 1.0 / s if s > 0 else 0.0
        error, length, offset = 0.0, 0.0, 0.0
        for p in range(rows.shape[1]):
            value = np.float64(rows[i, p]) - np.float64(c[p])
            code = min(max(np.rint(value * inverse), -127.0), 127.0)
            codes[i, p] = np.int8(code)
            error += (value - s * code) ** 2
            length += code * code
            offset += value * value + np.float64(c[p]) ** 2
        scale[i] = s
        half[i] = s * s * length / 2 * (1 - margin)
        # the second term: subtracting c rounds in float64 too, which a residual of zero has to cover
        rho[i] = np.sqrt(error) * (1 + 1e-6) + 2.0**-44 * np.sqrt(offset)


@njit(nogil=True, cache=True)
def encode_float32(rows: Array, c: Array, margin: float, codes: Array, scale: Array, half: Array, rho: Array) -> None:
    """The same with q = x - c rounded to float32, and s = 1."""
    for i in range(rows.shape[0]):
        error, length, offset = 0.0, 0.0, 0.0
        for p in range(rows.shape[1]):
            value = np.float64(rows[i, p]) - np.float64(c[p])
            code = np.float32(value)
            codes[i, p] = code
            error += (value - np.float64(code)) ** 2
            length += np.float64(code) ** 2
            offset += value * value + np.float64(c[p]) ** 2
        scale[i] = 1
        half[i] = length / 2 * (1 - margin)
        rho[i] = np.sqrt(error) * (1 + 1e-6) + 2.0**-44 * np.sqrt(offset)


@njit(nogil=True, cache=True)
def any_reaches(line: Array, scales: Array, halves: Array, leasts: Array, scale: Any, half: Any, least: Any) -> bool:
    """Whether any column of a chunk may be among the row's nearest, or the row among that column's nearest."""
    hit = np.int32(0)
    for u in range(CHUNK):
        value = np.float32(line[u]) * scale * scales[u]
        hit |= np.int32(value - halves[u] >= least) | np.int32(value - leasts[u] >= half)
    return bool(hit != 0)


@njit(nogil=True, cache=True)
def count_reaching(values: Array, least: Any) -> int:
    count = np.int32(0)
    for u in range(values.shape[0]):
        count += np.int32(values[u] >= least)
    return int(count)


@njit(nogil=True, cache=True)
def first_bound(
    products: Array, side: Side, i: int, scales: Array, halves: Array, others: Any, needed: int, margin: float
) -> Any:
    """A bound above row i's distance to its `needed`-th nearest column, from the products alone, by bisection."""
    # the halves are lowered by the margin; an upper bound needs them above by as much
    raised = np.float32(1 + 3 * margin)
    values = np.empty(products.shape[0], np.float32)
    for u in range(products.shape[0]):
        values[u] = np.float32(products[u]) * side.scale[i] * scales[u] - halves[u] * raised
    low, high = values.min(), values.max()
    for _ in range(12):
        middle = np.float32(0.5) * low + np.float32(0.5) * high
        if count_reaching(values, middle) >= needed:
            low = middle
        else:
            high = middle
    between = np.sqrt(max(np.float32(0), np.float32(2) * (side.half[i] * raised - low + FLOOR)))
    return (between + side.residual[i] + others) * GROWTH


@njit(nogil=True, cache=True)
def least_needed(side: Side, i: int, others: Any, first: Any) -> Any:
    """The right side of (2): what row j, of a residual of at most `others`, must reach to be among row i's nearest.

    first: the least number that row j may have; among many equal rows a later one is no help even at distance 0.
    """
    if make_key(0, first) >= side.heaps[i, 0]:
        return np.float32(np.inf)
    reach = side.bound[i] + side.residual[i] + others
    return side.half[i] - reach * reach * np.float32(0.5) * GROWTH - FLOOR


@njit(nogil=True, cache=True)
def keep(side: Side, i: int, key: Any) -> None:
    """Put `key` among row i's k smallest if it belongs there, which may lower the row's bound."""
    if key < side.heaps[i, 0]:
        replace_largest(side.heaps[i], key)
        side.bound[i] = min(side.bound[i], np.sqrt(squared_of(side.heaps[i, 0])) * GROWTH + TINY)


@njit(nogil=True, cache=True)
def compare(a: Side, i: int, b: Side, j: int, product: Any, together: bool) -> int:
    """Measure the pair if (2) holds for row i, or if `together` for row j, and let these keep it; 1 if measured."""
    for_i = product - b.half[j] >= least_needed(a, i, b.residual[j], b.ids[j])
    for_j = together and product - a.half[i] >= least_needed(b, j, a.residual[i], a.ids[i])
    if not (for_i or for_j):
        return 0
    squared = distance(a.rows[i], b.rows[j])
    if for_i:
        keep(a, i, make_key(squared, b.ids[j]))
    if for_j:
        keep(b, j, make_key(squared, a.ids[i]))
    return 1


@njit(nogil=True, cache=True)
def filter_tile(products: Array, a: Side, lines: Array, b: Side, j0: int, margin: float, mode: int) -> int:
    """Let every row of the tile (and, where mode is TOGETHER, every column) take what may be among its k nearest.

    products: (h, w), of the codes of a's rows `lines` (h,) and of b's rows from j0. Gives how many were measured.
    """
    measured, (height, width), k = 0, products.shape, a.heaps.shape[1]
    scales, halves = b.scale[j0 : j0 + width], b.half[j0 : j0 + width]
    furthest_line, furthest = a.residual[lines].max(), b.residual[j0 : j0 + width].max()
    first_line, first = a.ids[lines].min(), b.ids[j0 : j0 + width].min()
    leasts = np.full(width, np.float32(np.inf))
    if mode == TOGETHER:
        for u in range(width):
            leasts[u] = least_needed(b, j0 + u, furthest_line, first_line)
    for r in range(height):
        i, line = lines[r], products[r]
        scale, half = a.scale[i], a.half[i]
        if a.bound[i] == np.inf and width > k:
            needed = k + 1 if mode == ITSELF else k
            a.bound[i] = first_bound(line, a, i, scales, halves, furthest, needed, margin)
        least = least_needed(a, i, furthest, first)
        for c in range(0, width, CHUNK):
            end = min(c + CHUNK, width)
            full = end - c == CHUNK
            if full and not any_reaches(line[c:end], scales[c:end], halves[c:end], leasts[c:end], scale, half, least):
                continue
            for u in range(c, end):
                value = np.float32(line[u]) * scale * scales[u]
                if (value - halves[u] >= least or value - leasts[u] >= half) and not (mode == ITSELF and i == j0 + u):
                    measured += compare(a, i, b, j0 + u, value, mode == TOGETHER)
                    least = least_needed(a, i, furthest, first)
                    if mode == TOGETHER:
                        leasts[u] = least_needed(b, j0 + u, furthest_line, first_line)
    return measured


@njit(nogil=True, cache=True, fastmath={"reassoc", "contract"})
def multiply(a: Array, b: Array) -> Any:
    """The product of two codes, int8 or float32, summed in float32."""
    total = np.float32(0)
    for p in range(a.shape[0]):
        total += np.float32(a[p]) * np.float32(b[p])
    return total


@njit(nogil=True, cache=True)
def offer(side: Side, codes: Array, i: int, j: int) -> None:
    """Let row i keep row j of the same set if it is among its k nearest; codes: (n, d)."""
    compare(side, i, side, j, multiply(codes[i], codes[j]) * side.scale[i] * side.scale[j], False)


@njit(nogil=True, cache=True)
def list_near(heaps: Array, places: Array, start: int, stop: int, before: Array, near: Array, seen: Array) -> None:
    """Write to near[start:stop] the places of each row's neighbours, nearest first; ~place if it was in `before`.

    before: (n, k) as `near`, or (n, 0). places: (n,) where the row of a number is. seen: (n,) scratch of the thread.
    """
    for i in range(start, stop):
        for known in before[i]:
            seen[max(known, ~known)] = i
        keys = np.sort(heaps[i])
        for u in range(keys.shape[0]):
            j = places[keys[u] & 0x7FFFFFFF]
            near[i, u] = ~j if seen[j] == i else j


@njit(nogil=True, cache=True)
def find_fans(near: Array, f: int) -> Array:
    """(n, f): up to f rows that have each row as a neighbour, by its rank among theirs; ~row if it was so before."""
    n, k = near.shape
    fans, count = np.full((n, f), NOBODY), np.zeros(n, np.int32)
    for u in range(k):
        for i in range(n):
            j = max(near[i, u], ~near[i, u])
            if count[j] < f:
                fans[j, count[j]] = i if near[i, u] >= 0 else ~i
                count[j] += 1
    return fans


@njit(nogil=True, cache=True)
def ask_around(
    side: Side, codes: Array, start: int, stop: int, near: Array, fans: Array, depth: int, seen: Array
) -> None:
    """Offer to each row of start..stop its fans, and the `depth` nearest of these and of its f nearest.

    A way of two steps that were both there before was gone before. near: from `list_near`; fans: (n, f) from
    `find_fans`; seen: (n,) scratch of the calling thread, in which none of start..stop is.
    """
    f = fans.shape[1]
    for i in range(start, stop):
        seen[i] = i
        for known in near[i]:
            seen[max(known, ~known)] = i
        for u in range(2 * f):
            step = fans[i, u] if u < f else near[i, u - f]
            if step == NOBODY:
                continue
            middle = max(step, ~step)
            if seen[middle] != i:
                seen[middle] = i
                offer(side, codes, i, middle)
            for v in range(depth):
                if step < 0 and near[middle, v] < 0:
                    continue
                j = max(near[middle, v], ~near[middle, v])
                if seen[j] != i:
                    seen[j] = i
                    offer(side, codes, i, j)


@njit(nogil=True, cache=True)
def read_heaps(heaps: Array, places: Array, indices: Array, squared: Array) -> None:
    """The neighbours of heap i, nearest first, into row places[i] of both outputs."""
    for i in range(heaps.shape[0]):
        keys = np.sort(heaps[i])
        for u in range(keys.shape[0]):
            indices[places[i], u] = np.int32(keys[u] & 0x7FFFFFFF)
            squared[places[i], u] = squared_of(keys[u])


@njit(nogil=True, cache=True)
def measure(rows: Array, own: Array, proposed: Array, columns: Array, first: int, keys: Array) -> None:
    """Write to keys (m, w) those of the proposed numbers (m, w) that lie in `columns` (b, d), numbered from `first`.

    A row's own number `own` (m,) gets no key: it is no neighbour of itself.
    """
    for i in range(rows.shape[0]):
        for j in range(proposed.shape[1]):
            number = proposed[i, j]
            if first <= number < first + columns.shape[0]:
                keys[i, j] = EMPTY if number == own[i] else make_key(distance(rows[i], columns[number - first]), number)
