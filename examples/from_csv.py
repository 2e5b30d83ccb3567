"""A CSV with a column that says what each row is not becomes a classifier: read, audit, fit, predict, all in Python."""

import csv
import random

import naysay

KINDS = {"apple": (7.4, 160), "lemon": (8.4, 110), "orange": (7.8, 150), "plum": (5.0, 70)}

draw = random.Random(0)
with open("fruit.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["id", "length", "weight", "not_label"])
    for i in range(400):
        kind = draw.choice(list(KINDS))
        length, weight = KINDS[kind]
        wrong = draw.choice([other for other in KINDS if other != kind])
        table.writerow([f"f{i}", round(draw.gauss(length, 0.5), 2), round(draw.gauss(weight, 12), 1), wrong])

data = naysay.read("fruit.csv", id="id", label="not_label")
print(f"{len(data.comp)} items of {', '.join(data.classes)}, by {', '.join(data.items.features)}")

space = naysay.features.find_space(data.items.x)
found = naysay.audit.audit(data.comp, features=space.features, metric=space.metric, classes=data.classes)
for advice in found.advice:
    print(f"{advice.level}: {advice.text}")

X, y = data.items.x, data.comp
model = naysay.ComplementaryClassifier(classes=data.classes, epochs=20).fit(X[:300], y[:300])
for name, kind in zip(data.items.ids[300:303], model.predict(X[300:303]), strict=True):
    print(name, "is", kind)
print(f"accuracy on new items, estimated from labels that say no: {model.score(X[300:], y[300:]):.2f}")
