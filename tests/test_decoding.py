"""Decoding the neighbours' labels: the local distribution, its least likely label, and k chosen without truth."""

import numpy as np
import pytest
import torch

from naysay import datasets, labels, metrics, selection, transition
from naysay.decoding import choose_k, decode, local_distribution
from naysay.errors import InputError

K = 4


def test_the_local_distribution_is_the_mean_of_the_labelled_neighbours():
    comp = labels.from_indices([[0, 1], [2, 2], [-1, -1], [3, 3]], K)
    near = torch.tensor([[0, 1], [1, 2], [2, 2], [3, 0]], dtype=torch.int32)
    expected = torch.tensor([[0.25, 0.25, 0.5, 0], [0, 0, 1, 0], [0.25] * 4, [0.25, 0.25, 0, 0.5]])
    assert torch.allclose(local_distribution(comp, near), expected)


def test_the_least_likely_label_is_predicted_and_with_T_the_nearest_row():
    distribution = torch.tensor([[0.3, 0.3, 0.3, 0.1], [0.1, 0.3, 0.3, 0.3]])
    assert decode(distribution).tolist() == [3, 0]
    assert decode(distribution, transition.uniform(K)).tolist() == [3, 0]
    # class 1 is hardly ever named, whatever the truth: only T can tell that it is not the answer
    T = torch.tensor([[0.0, 0.1, 0.45, 0.45], [0.33, 0.01, 0.33, 0.33], [0.45, 0.1, 0.0, 0.45], [0.45, 0.1, 0.45, 0.0]])
    assert decode(torch.tensor([[0.4, 0.05, 0.1, 0.45]]), T).tolist() == [2]
    assert decode(torch.tensor([[0.4, 0.05, 0.1, 0.45]])).tolist() == [1]


def test_k_is_chosen_by_complementary_labels_and_decodes_digits():
    digits = datasets.load("digits")
    x, x_test = (part.reshape(len(part), -1).astype(np.float32) for part in (digits.x_train, digits.x_test))
    comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
    decoder, estimates = choose_k(x, comp)
    assert sorted(estimates) == [4, 8, 16, 32, 64, 128, 256, 512, 1024]
    assert decoder.k == max(estimates, key=lambda k: estimates[k].value)
    assert 16 <= decoder.k <= 256
    assert metrics.oracle_accuracy(decoder.predict(x_test), digits.y_test) > 0.7
    assert selection.compare(estimates[decoder.k], estimates[1024]).z > 2  # 1024 of 1442 digits are nobody's neighbours
    distribution = decoder.distribution(x_test)
    through_T = decode(distribution, transition.uniform(10))
    # for a uniform T the nearest row is that of a least likely label, whichever of equals
    assert torch.allclose(distribution.gather(1, through_T[:, None])[:, 0], distribution.amin(1), atol=1e-6)


def test_candidates_beyond_the_rows_are_left_out_and_none_left_is_an_error():
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(40, 3, generator=generator)
    comp = labels.from_indices(torch.randint(0, K, (40,), generator=generator), K)
    assert sorted(choose_k(features, comp)[1]) == [4, 8, 16, 32]
    with pytest.raises(InputError, match="no k of the candidates is within the 36 training rows"):
        choose_k(features, comp, ks=[64])
