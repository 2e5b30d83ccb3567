"""A CSV with a column that says what each row is not becomes a classifier, in three calls of the command."""

import csv
import random

from naysay.cli import app

KINDS = {"apple": (7.4, 160), "lemon": (8.4, 110), "orange": (7.8, 150), "plum": (5.0, 70)}


def naysay(line: str) -> None:
    """What `naysay ...` does in a terminal."""
    if code := app(line.split(), standalone_mode=False):
        raise SystemExit(code)


draw = random.Random(0)
with open("fruit.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["id", "length", "weight", "not_label"])
    for i in range(400):
        kind = draw.choice(list(KINDS))
        length, weight = KINDS[kind]
        wrong = draw.choice([other for other in KINDS if other != kind])
        table.writerow([f"f{i}", round(draw.gauss(length, 0.5), 2), round(draw.gauss(weight, 12), 1), wrong])

naysay("audit fruit.csv --id id --label not_label")
naysay("fit fruit.csv --id id --label not_label --out RUN --scheme dms --epochs 20 --quiet")
naysay("predict RUN fruit.csv --out predictions.csv --quiet")

with open("predictions.csv", newline="") as file:
    for row in list(csv.DictReader(file))[:3]:
        print(row)
