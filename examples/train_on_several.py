"""One training on as many processes as there are: as it stands on one; on two, of this machine or a Ray cluster, by

    torchrun --standalone --nproc-per-node 2 examples/train_on_several.py
    python examples/train_on_several.py --ray

All print the same: the processes share every batch and take the steps of one.
"""

import sys

import torch

from naysay import datasets, labels, transition
from naysay.cluster import train_on_ray
from naysay.holdout import prepare
from naysay.learning import Config, train
from naysay.processes import join

digits = datasets.load("digits")
comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
pixels = digits.x_train.reshape(len(comp), -1).astype("float32")
ready = prepare(digits.x_train, comp, features=pixels, scheme="rms", n_neighbors=8)
config = Config(epochs=10)

if "--ray" in sys.argv:
    trained = train_on_ray(config, ready.x, ready.comp, held_out=ready.held_out, workers=2)
else:
    # every process comes here with the same data
    trained = train(config, ready.x, ready.comp, held_out=ready.held_out, processes=join())

if join().first:  # and one of them speaks
    right = (trained.predictor.predict(digits.x_test) == torch.from_numpy(digits.y_test)).float().mean()
    print(f"loss {trained.last_figures['loss']:.4f}, test accuracy {right:.1%}")
