"""The losses as their papers write them: plain loops over instances and classes in Python floats, for hard labels.

Nothing here is shared with the product: an error would have to be made twice. `g` is one instance's list of scores.
"""

from math import exp, log

import numpy as np


def softmax(g):
    total = sum(exp(v - max(g)) for v in g)
    return [exp(v - max(g)) / total for v in g]


def pc(g, k, T):  # Ishida et al. 2017, eq. for the pairwise comparison with the sigmoid loss l(z) = 1 / (1 + e^z)
    return sum(1 / (1 + exp(g[j] - g[k])) for j in range(len(g)) if j != k)


def ure(g, k, T):  # Ishida et al. 2019, backward correction: the k-th entry of T^-1 applied to the ordinary losses
    ordinary = [-log(p) for p in softmax(g)]
    inverse = np.linalg.inv(np.array(T))
    return sum(inverse[k][j] * ordinary[j] for j in range(len(g)))


def scl_nl(g, k, T):  # Chou et al. 2020
    return -log(1 - softmax(g)[k])


def scl_exp(g, k, T):
    return exp(softmax(g)[k])


def fwd(g, k, T):  # Yu et al. 2018
    p = softmax(g)
    return -log(sum(T[j][k] * p[j] for j in range(len(g))))


def l_uw(g, k, T):  # Gao & Zhang 2021
    return -log(softmax([1 - p for p in softmax(g)])[k])


def l_w(g, k, T):
    return l_uw(g, k, T) + (1 - softmax(g)[k]) / (len(g) - 1) * l_uw(g, k, T)


def op(g, k, T):  # Liu et al. 2023
    return -log(softmax([-v for v in g])[k])


def op_w(g, k, T):
    turned = softmax([-v for v in g])
    weight = softmax(g)[k] * softmax([1 / q for q in turned])[k]
    return weight * op(g, k, T)


def cpe_i(g, k, T):  # Lin & Lin 2023
    return -log(softmax(g)[k])


SINGLE = {
    "pc": pc,
    "ure": ure,
    "scl-nl": scl_nl,
    "scl-exp": scl_exp,
    "fwd": fwd,
    "l-uw": l_uw,
    "l-w": l_w,
    "op": op,
    "op-w": op_w,
    "cpe-i": cpe_i,
    "cpe-f": fwd,
    "cpe-t": fwd,
}


def outside(g, label_set):
    p = softmax(g)
    return sum(p[j] for j in range(len(g)) if j not in label_set)


SETS = {  # Feng et al. 2020: losses of the probability outside the label set
    "mcl-mae": lambda g, s: (len(g) - 1) / len(s) * (1 - outside(g, s)),
    "mcl-exp": lambda g, s: (len(g) - 1) / len(s) * exp(-outside(g, s)),
    "mcl-log": lambda g, s: (len(g) - 1) / len(s) * -log(outside(g, s)),
}


def class_risks(scores, labels, T):
    """r_j of Ishida et al. 2019 for a batch of single labels: one risk per ORDINARY class."""
    inverse = np.linalg.inv(np.array(T))
    K = len(T)
    risks = [0.0] * K
    for g, k in zip(scores, labels, strict=True):
        p = softmax(g)
        for j in range(K):
            risks[j] += inverse[k][j] * -log(p[j]) / len(scores)
    return risks


def scarce(scores, labels, T):
    """Wang et al. 2024, for a batch of single labels: negatives and unlabelled instances of each class."""
    K, n = len(T), len(scores)
    total = 0.0
    for k in range(K):
        c = sum(T[y][k] for y in range(K) if y != k) / (K - 1)
        positive = sum(log(1 + exp(-g[k])) for g in scores) / n
        negatives = [g for g, label in zip(scores, labels, strict=True) if label == k]
        positive -= sum(log(1 + exp(-g[k])) for g in negatives) / n / c
        total += abs(positive) + sum(log(1 + exp(g[k])) for g in negatives) / n / c
    return total


BATCH = {
    "ure-nn": lambda risks: sum(max(0.0, r) for r in risks),
    "ure-ga": lambda risks: sum(max(0.0, -r) for r in risks) if min(risks) < 0 else sum(risks),
}
