"""The embedded set: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels, always there, the default everywhere.

Pixels come as 0 to 16 and are stretched to 0 to 255, like every other image here (17 levels, so nothing is lost). The
split is fixed and stratified: every fifth digit of each class is a test digit, which makes 1,442 for training and 355
for testing.
Source: Alpaydin and Kaynak, "Optical Recognition of Handwritten Digits", UCI, 1998 (its test part).
"""

import numpy as np

from naysay.datasets.dataset import Array


def decode() -> dict[str, Array]:
    """The digits as arrays: images uint8 (n, 8, 8)."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    x, y = np.rint(bunch.images * (255 / 16)).astype(np.uint8), bunch.target
    test = np.zeros(len(y), bool)
    for k in range(10):
        test[np.flatnonzero(y == k)[4::5]] = True
    return {"x_train": x[~test], "y_train": y[~test], "x_test": x[test], "y_test": y[test]}
