"""The library's flow on digits: labels drawn, a part held out, the rest shared, two models compared without truth."""

from naysay import datasets, labels, selection, transition
from naysay.holdout import prepare
from naysay.learning import Config, train

digits = datasets.load("digits")
comp = labels.from_indices(transition.sample(digits.y_train, transition.uniform(10), seed=0), 10)
pixels = digits.x_train.reshape(len(comp), -1).astype("float32")

judged = {}
for scheme in ("none", "rms"):
    ready = prepare(digits.x_train, comp, features=pixels, scheme=scheme, n_neighbors=8, held_out=0.25)
    model = train(Config(epochs=30), ready.x, ready.comp, held_out=ready.held_out).predictor
    estimate = selection.ure_accuracy(model.logits(ready.held_out.x), ready.held_out.comp)
    right = float((model.predict(digits.x_test).numpy() == digits.y_test).mean())
    print(f"{scheme:5} estimated {estimate}, true test accuracy {right:.3f}")
    judged[scheme] = estimate

difference = selection.compare(judged["rms"], judged["none"])
print(f"rms - none: {difference.difference:+.3f} ± {difference.standard_error:.3f} on the same held-out labels")
