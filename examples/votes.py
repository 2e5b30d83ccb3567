"""Long rows from a crowd (item, worker, options shown, "not this"): audit them, drop who answers at random, and fit."""

import random

import numpy as np

from naysay import ComplementaryClassifier, labels
from naysay.audit import audit

draw = random.Random(0)
classes = ["bird", "cat", "dog", "fish"]
rng = np.random.default_rng(0)
truth = rng.integers(4, size=500)
features = (rng.normal(size=(4, 8))[truth] + rng.normal(size=(500, 8))).astype(np.float32)

rows = []
for i, kind in enumerate(truth):
    for worker in draw.sample(["ann", "bo", "cy"], 2):
        shown = draw.sample(classes, 3)
        wrong = [name for name in shown if name != classes[kind]]
        rows.append((f"item-{i}", worker, "|".join(shown), draw.choice(shown if worker == "cy" else wrong)))
table = dict(zip(("item", "annotator", "options", "label"), map(list, zip(*rows, strict=True)), strict=True))
items = [f"item-{i}" for i in range(500)]

found = audit(features=features, table=table, classes=classes, items=items)
for advice in found.advice:
    print(f"{advice.level}: {advice.text}")

kept = {
    name: [cell for cell, who in zip(column, table["annotator"], strict=True) if who != "cy"]
    for name, column in table.items()
}
comp = labels.from_table(kept, classes, items, annotator="annotator", options="options")
model = ComplementaryClassifier(classes=classes, epochs=20, n_neighbors=20).fit(features, comp.numpy())
print(f"right: {(model.predict(features) == np.array(classes)[truth]).mean():.1%}, without cy")
