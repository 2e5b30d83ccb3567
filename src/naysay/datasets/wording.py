"""Free text as numbers: how often words occur, against how rare they are (TF-IDF), in at most a hundred directions.

A word is a run of two or more letters or digits, in lower case; those of at least two texts are kept, the commonest
10,000 of them. A text's words weigh 1 + log of their number times 1 + log((1 + n) / (1 + texts with it)), its vector
has length 1, and the directions are those in which a sample of the texts differs most (a truncated singular value
decomposition, as latent semantic analysis has it: Deerwester et al. 1990). A text without a known word is 0.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from naysay.errors import InputError

MOST_WORDS, FEWEST_TEXTS = 10_000, 2
COMPONENTS = 100
SAMPLE = 20_000  # texts that the directions are found from
PART = 65_536  # texts turned into numbers at a time

Counted = tuple[NDArray[np.int64], Any]  # of each word its text, and the word


@dataclass(frozen=True, eq=False)
class Wording:
    """The words (V,) that are known, how much each weighs (V,) and the directions (c, V)."""

    words: tuple[str, ...]
    idf: NDArray[np.float32]
    components: NDArray[np.float32]

    @classmethod
    def find(cls, texts: Any, counts: NDArray[np.int64]) -> Self | None:
        """The wording of different texts (an Arrow array), each of which occurs so often; None where no word recurs."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from sklearn.utils.extmath import randomized_svd

        of, word = _words_of(texts)
        encoded = pc.dictionary_encode(word)
        if not len(encoded.dictionary):
            return None
        places = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        pairs = np.sort(of * len(encoded.dictionary) + places)
        rows, columns = np.divmod(pairs[np.diff(pairs, prepend=-1) > 0], len(encoded.dictionary))
        n, frequent = int(counts.sum()), np.bincount(columns, counts[rows], len(encoded.dictionary))
        kept = np.flatnonzero(frequent >= FEWEST_TEXTS)
        if len(kept) < 2:
            return None
        named = np.array(encoded.dictionary.take(pa.array(kept)).to_pylist(), object)
        order = np.lexsort((named, -frequent[kept]))[:MOST_WORDS]
        idf = (1 + np.log((1 + n) / (1 + frequent[kept][order]))).astype(np.float32)
        bare = cls(tuple(named[order].tolist()), idf, np.empty((0, len(order)), np.float32))
        sample = bare._weigh(texts.take(pa.array(np.arange(0, len(texts), max(1, -(-len(texts) // SAMPLE))))))
        c = min(COMPONENTS, sample.shape[0], sample.shape[1])
        components = randomized_svd(sample, c, n_iter=5, random_state=0)[2]
        return cls(bare.words, idf, components.astype(np.float32))

    @classmethod
    def from_arrays(cls, words: Any, idf: Any, components: Any) -> Self:
        """The wording of the arrays that `arrays` gave; others are refused."""
        named = tuple(bytes(words).decode("utf-8").split("\n")) if words.dtype == np.uint8 else ()
        floats = idf.dtype == components.dtype == np.float32 and idf.ndim == 1 and components.ndim == 2
        right = floats and len(named) == len(set(named)) == len(idf) == components.shape[1] and len(components)
        if not right or not (np.isfinite(idf).all() and np.isfinite(components).all()):
            raise InputError("the words, weights and directions of a text column do not fit together.")
        return cls(named, idf, components)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Words (UTF-8, a line each), weights and directions as plain arrays."""
        lines = np.frombuffer("\n".join(self.words).encode("utf-8"), np.uint8).copy()
        return {"words": lines, "idf": self.idf, "components": self.components}

    def apply(self, texts: Any) -> NDArray[np.float32]:
        """The numbers (m, c) of texts (an Arrow array)."""
        out = np.empty((len(texts), len(self.components)), np.float32)
        for start in range(0, len(texts), PART):
            part = texts.slice(start, PART)
            out[start : start + len(part)] = self._weigh(part) @ self.components.T
        return out

    def _weigh(self, texts: Any) -> Any:
        """A sparse matrix (m, V) float32 of the texts' words, each row of length 1 or 0."""
        import pyarrow as pa
        import pyarrow.compute as pc
        from scipy import sparse

        of, word = _words_of(texts)
        found = pc.fill_null(pc.index_in(word, pa.array(self.words, word.type)), -1).to_numpy(zero_copy_only=False)
        known, shape = found >= 0, (len(texts), len(self.words))
        ones = np.ones(int(known.sum()), np.float32)
        matrix = sparse.coo_matrix((ones, (of[known], found[known])), shape).tocsr()  # which adds up
        matrix.sort_indices()
        matrix.data = (1 + np.log(matrix.data)) * self.idf[matrix.indices]
        lengths = np.sqrt(np.asarray(matrix.multiply(matrix).sum(1)).ravel())
        matrix.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(matrix.indptr)).astype(np.float32)
        return matrix


def _words_of(texts: Any) -> Counted:
    import pyarrow.compute as pc

    lists = pc.split_pattern(pc.replace_substring_regex(pc.utf8_lower(texts), r"[^\p{L}\p{N}]+", " "), " ")
    of, word = pc.list_parent_indices(lists), pc.list_flatten(lists)
    long = pc.greater_equal(pc.utf8_length(word), 2)
    return of.filter(long).to_numpy(zero_copy_only=False).astype(np.int64), word.filter(long)
