"""The recipes as a table. To add one: a file with its `Learner` in this folder, and its row here.

config = recipes.configure("fastsiam", epochs=50, views=2)   # as published, but for what is said
"""

import dataclasses
from typing import Any

from naysay.errors import InputError, unknown
from naysay.learning.config import Config
from naysay.learning.recipe import Learner, Recipe, Task
from naysay.learning.recipes import consistent, emp, fastsiam, plain, pocr, simsiam, taught

RECIPES: dict[str, Recipe] = {
    row.name: row for row in (plain.ROW, consistent.ROW, taught.ROW, pocr.ROW, simsiam.ROW, fastsiam.ROW, emp.ROW)
}


def get(name: str) -> Recipe:
    """The row of the table, or an error that names the nearest ones."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]


def build(task: Task) -> Learner:
    """The learner of the task's recipe."""
    row, given = get(task.config.recipe), task.comp is not None
    if row.needs_labels != given:
        of_kind = ", ".join(name for name, other in RECIPES.items() if other.needs_labels == given)
        learns = "a classifier from labels" if row.needs_labels else "an encoder from images alone"
        raise InputError(f"the recipe {row.name} learns {learns}; the recipes that can be used here: {of_kind}.")
    refuse_unfit(task.config, task.x)
    return row.build(task)


def refuse_unfit(config: Config, x: Any) -> None:
    """Raise InputError where the config's recipe learns images and x (n, ...) are rows, or the other way round."""
    row, got = get(config.recipe), "rows" if x.ndim == 2 else "images"
    if row.takes in ("", got):
        return
    fit = [
        name for name, other in RECIPES.items() if other.needs_labels == row.needs_labels and other.takes in ("", got)
    ]
    way_out = f" Use {' or '.join(fit)}." if fit else ""
    raise InputError(f"the recipe {row.name} is for {row.takes}; got {got} of shape {tuple(x.shape)}.{way_out}")


def configure(recipe: str, **changes: Any) -> Config:
    """The settings of a recipe as its source has them, with `changes`: settings of `Config`, or the recipe's own."""
    row = get(recipe)
    settings = {f.name for f in dataclasses.fields(Config)}
    if clash := settings.intersection(row.option_names):
        raise InputError(f"the recipe {recipe} must name its settings otherwise: Config has {', '.join(clash)} too.")
    for name in changes:
        if name not in settings and name not in row.option_names:
            raise unknown(f"setting of the recipe {recipe}", name, [*settings, *row.option_names])
    options = {**changes.get("options", {}), **{name: changes[name] for name in changes if name not in settings}}
    given = {name: value for name, value in changes.items() if name in settings}
    return Config(**{**row.published, **given, "recipe": recipe, "options": options})
