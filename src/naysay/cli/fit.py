"""`naysay fit`: from data with complementary labels to a run folder."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from naysay.cli import options as o
from naysay.cli.output import command_line, console, new_folder, say_json, teller
from naysay.cores import held
from naysay.errors import InputError
from naysay.files import probe, told

if TYPE_CHECKING:
    from naysay.learning import Config

SCHEMES = "auto trains with none and with dms, and chooses; or none, rss, rms, dss, dms, several with commas."
ASSUME = (
    "How labels come about, for losses and estimates that need it; auto: as neighbours show, else wrong classes alike."
)
EPOCHS = "Else 3,000,000 rows' worth of them, at least 5 and at most 100."
CONFIG = "Training settings in TOML or JSON; options here win."
FOLDS = "Parts of the labels that are held out in turn; 1: a share alone. Else 5 where training takes seconds, or 1."
HELD_OUT = "The share of labels kept back for judging, where it is one part; else 0.1."
APART = (
    "Keep held-out items out of all that models take: a table's texts, categories and fills, the space and its scales "
    "are found among training items alone; with --encoder, judge by the images that it left out (naysay pretrain "
    "--leave-out). Trains one network, but with --model auto or --encoder."
)
NO_REFIT = "Keep the model that was judged, instead of training the scheme that is kept once more on all labels."
MODEL = (
    "auto tries several and mixes the best, of images with --encoder on what that makes of them; or linear, mlp, "
    "lenet, convnet, pooled-resnet, resnet18, small-resnet: one network. Else auto, or mlp where a setting of a "
    "network is given; where that begins with --encoder, the network that it holds."
)
ENCODER = (
    "An encoder (naysay pretrain): models learn what it makes of images, and RUN keeps it; one network begins with it "
    "(--recipe, --fine-tune) or has its neighbours from it. Or embeddings of your own, to compare items by: .npy, or "
    "file.parquet:column."
)
BUDGET = "Seconds that auto may take, about, beside an encoder's; else 75 for 2,000 rows, and more for more."
AS_PUBLISHED = "The paper's own way: a network trained with none and with dms, 64 neighbours, gamma 1."
RECIPE = (
    "consistent learns images from --encoder's weights with a teacher, stronger views and labels shared again; it is "
    "what an encoder, images and a GPU get unless --model or a setting of plain training is given. taught does the "
    "same for rows, as of embeddings, without views. pocr learns images from labels and from views that should be seen "
    "alike. plain: one network, by its loss alone."
)
FLIPS = "The model averages each image with its mirror image, from its judging on."
SEED = "All randomness comes from this number; else 0, or the config's."
ESTIMATED = (
    "Estimated accuracy, with its 95 % interval in [ ], and loss, ± one standard error, come from complementary labels "
    "alone{}."
)


def fit(
    data: o.Data,
    *,
    out: Annotated[Path, o.output("--out", "RUN", "The run folder to make.")],
    id: o.Id = None,
    label: o.Label = None,
    features: o.Features = None,
    ignore: o.Ignore = None,
    truth: o.Truth = None,
    labels: o.Labels = None,
    item: o.Item = None,
    annotator: o.Annotator = None,
    options: o.Options = None,
    format: o.Format = None,
    labels_say: o.LabelsSay = None,
    without: o.Without = None,
    weigh_annotators: o.WeighAnnotators = False,
    classes: o.Classes = None,
    merge_spelling: o.MergeSpelling = False,
    contradictions: o.ContradictionsOption = "raise",
    transition: o.Transition = None,
    n_labels: o.NLabels = None,
    scheme: Annotated[str, o.sharing("--scheme", "NAME", SCHEMES)] = "auto",
    neighbors: o.Neighbors = None,
    alpha: o.Alpha = "0.1",
    gamma: o.Gamma = None,
    class_shares: o.ClassShares = "unknown",
    space: o.Space = "auto",
    encoder: Annotated[Path | None, o.sharing("--encoder", "FILE", ENCODER)] = None,
    # these defaults are Config's own, said again because help does not wait for torch; a test compares them
    loss: Annotated[str | None, o.training("--loss", "NAME", "See docs/LOSSES.md; else scl-nl.")] = None,
    model: Annotated[str | None, o.training("--model", "NAME", MODEL)] = None,
    budget: Annotated[float | None, o.training("--budget", "SECONDS", BUDGET)] = None,
    as_published: Annotated[bool, o.training("--as-published", None, AS_PUBLISHED)] = False,
    learning_rate: Annotated[float | None, o.training("--learning-rate", None, "Else 0.003.")] = None,
    epochs: Annotated[int | None, o.training("--epochs", None, EPOCHS)] = None,
    assume: Annotated[str, o.training("--assume", "auto|uniform|popularity|estimated", ASSUME)] = "auto",
    held_out: Annotated[float | None, o.training("--held-out", None, HELD_OUT)] = None,
    folds: Annotated[int | None, o.training("--folds", None, FOLDS)] = None,
    no_refit: Annotated[bool, o.training("--no-refit", None, NO_REFIT)] = False,
    apart: Annotated[bool, o.training("--apart", None, APART)] = False,
    recipe: Annotated[str | None, o.training("--recipe", "NAME", RECIPE)] = None,
    flips: Annotated[bool, o.training("--flips", None, FLIPS)] = False,
    fine_tune: Annotated[bool, o.training("--fine-tune", None, "Start the model from --encoder's weights.")] = False,
    config: Annotated[Path | None, o.training("--config", "FILE", CONFIG)] = None,
    seed: Annotated[int | None, o.option(None, "--seed", None, SEED)] = None,
    folder: o.Folder = None,
    force: o.Force = False,
    json: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    r"""Train a classifier from labels that say what items are not.

    Several models are tried: linear ones, forests, boosting, networks and
    neighbours, on the labels as given and on labels shared between neighbouring
    items. Each is judged by labels that it did not see, and the mixture of them
    that makes those labels likeliest is trained once more on all of them. With
    --model, or any setting of a network, one network is trained instead, with
    labels as given and shared, and the better is kept; --as-published does that
    as the paper has it. Of images with a trained --encoder the models learn what
    it makes of them; with a GPU, a network is trained on from it (--recipe
    consistent). No ordinary label is needed; where you have some (--truth), they
    are only used to show how right the model is.

    [bold]Examples[/bold]

      naysay fit data.csv --id id --label not_label --out RUN
      naysay fit items.parquet --id id --features embedding \
          --labels votes.csv --item item --label not --annotator worker --out RUN
      naysay fit photos/ --labels votes.csv --classes cat,dog,bird \
          --model lenet --out RUN
      naysay fit photos/ --labels votes.csv --encoder weights.safetensors --out RUN
      naysay fit photos/ --labels votes.csv --encoder weights.safetensors \
          --recipe consistent --class-shares even --out RUN
      naysay fit embeddings.parquet --id id --features vector --label not \
          --recipe taught --class-shares even --out RUN
      naysay fit digits --transition biased-weak --as-published --out RUN

    RUN then holds the model, run.json, records.jsonl, audit.json and
    report.html. Next: naysay predict RUN data.csv --out predictions.csv
    """
    asked = {**locals(), "recipe": recipe or usual_recipe(locals())}
    from naysay import runs
    from naysay.augmentation import Sharing
    from naysay.learning import RECIPES
    from naysay.processes import join, one_voice
    from naysay.reading import read

    # made before anything is read, so that a misspelt setting shows at once; epochs then follow from the number of rows
    first = training_config(asked, 1)
    usual = ("none",) if RECIPES[first.recipe].as_given else runs.AUTO
    schemes = usual if scheme == "auto" else tuple(part.strip() for part in scheme.lower().split(","))
    if RECIPES[first.recipe].shares:
        for name in ("neighbors", "alpha", "gamma"):
            if asked[name] != NETWORK[name]:
                itself = f"the recipe {first.recipe} shares labels in its own way"
                raise InputError(f"--{name} is for schemes, and {itself}. Leave it out.")
        if config is not None and encoder is not None:
            begins = f"the recipe {first.recipe} in {config} begins with the encoder that the file names, as encoder"
            raise InputError(f"{begins}, and has no use for --encoder. Name it there.")
    auto = chooses_itself(asked)
    if as_published:
        paper = Sharing()
        neighbors, gamma = neighbors or str(paper.n_neighbors), gamma or str(paper.gamma)
    how = Sharing(**o.how_shared({"neighbors": neighbors, "alpha": alpha, "gamma": gamma}))
    o.check_class_shares(class_shares)
    weights = None if encoder is None else str(encoder)
    settings = runs.Settings(
        first,
        schemes,
        how,
        held_out=held_out,
        assume=assume,
        space=space,
        encoder=weights,
        folds=folds,
        refit=not no_refit,
        apart=apart,
        auto=auto,
        budget=budget,
        flips=flips,
    )
    with one_voice() as place, new_folder(out, force, runs.is_run) if place.first else nullcontext() as unfinished:
        given = read(**o.reading(asked))
        how = replace(how, class_shares=o.class_shares(class_shares, given.classes))
        settings = replace(settings, config=training_config(asked, len(given.comp)), sharing=how)
        if unfinished is not None:
            probe(unfinished / "model", runs.room(given, settings))
        silent = quiet or not place.first
        bar, tell = False if silent else None, teller(silent or json)

        def speak(line: str) -> None:
            tell(o.in_flags(line))

        if less := held():
            speak(less)
        if recipe is None and first.recipe != "plain" and config is None:
            others = "--model auto learns what the encoder makes of the images, --recipe plain trains plainly"
            speak(f"the recipe {first.recipe}, as there are an encoder and a GPU; {others}")
        if unlearned := left_to_neighbors(asked):
            speak(unlearned)
        fitted = runs.fit(given, settings, oracle=given.oracle, progress=bar, tell=speak, processes=join())
        if unfinished is None:  # the first process writes
            return
        with told(out):
            about = runs.write(fitted, given, unfinished, oracle=given.oracle, command=command_line(), words=o.in_flags)
    show(about, out, json)


# settings of one network, by which a run is one of a network, and what they are where nothing is said
NETWORK = {
    "scheme": "auto",
    "neighbors": None,
    "alpha": "0.1",
    "gamma": None,
    "encoder": None,
    "loss": None,
    "learning_rate": None,
    "epochs": None,
    "held_out": None,
    "folds": None,
    "no_refit": False,
    "apart": False,
    "fine_tune": False,
    "config": None,
    "as_published": False,
    "recipe": None,
    "flips": False,
}
LARGE = 10 << 20  # bytes that a ResNet-18 takes at least
# those that the recipe consistent has no use for, or that ask for another start
OF_PLAIN = ("scheme", "neighbors", "alpha", "gamma", "loss", "fine_tune", "config", "as_published")


def usual_recipe(asked: Mapping[str, Any], gpu: bool | None = None) -> str | None:
    """The recipe where none is named: the one that won with an encoder, where a GPU makes it a matter of minutes.

    gpu: whether there is one (None: look). None: no recipe, so that what else is asked decides.
    """
    encoder = asked["encoder"]
    if asked["model"] is not None or any(asked[name] != NETWORK[name] for name in OF_PLAIN):
        return None
    # features of one's own (.npy) are no network to begin with, and the small network is not what won
    if encoder is None or not _is_trained(encoder) or not _is_large(Path(encoder)):
        return None
    if gpu is None:
        import torch

        gpu = torch.cuda.is_available()
    return "consistent" if gpu else None


def _is_trained(encoder: Path | None) -> bool:
    """Whether --encoder names a trained one, and not features that are made already."""
    from naysay.features import is_encoder

    return is_encoder(encoder)


def _is_large(encoder: Path) -> bool:
    """Whether the file may hold a ResNet-18, with its 11 million numbers of two bytes."""
    return encoder.is_file() and encoder.stat().st_size > LARGE


def chooses_itself(asked: Mapping[str, Any]) -> bool:
    """Whether the run tries several models: where no network was named, and no setting of one was given.

    An encoder that was trained is no such setting: what it makes of images is what the models learn.
    """
    given = _of_a_network(asked)
    if asked["model"] == "auto" and given == ["encoder"]:
        ready = f"{asked['encoder']} holds features that are made already, by which one network has its neighbours"
        raise InputError(f"{ready}. For --model auto give an encoder (.safetensors), or them as the table to learn.")
    if asked["model"] == "auto" and given:
        several = "and --model auto tries several models"
        raise InputError(f"{_flag(given[0])} is for one network, {several}. Leave one of them out.")
    return asked["model"] == "auto" or (asked["model"] is None and not given)


def _of_a_network(asked: Mapping[str, Any]) -> list[str]:
    """The settings of one network that were given; apart is none where several are asked for, or an encoder is given,
    by whose images that it left out any model may be judged.
    """
    named = [name for name, usual in NETWORK.items() if asked[name] != usual]
    if _is_trained(asked["encoder"]):
        return [name for name in named if name not in ("encoder", "apart")]
    return [name for name in named if name != "apart" or asked["model"] != "auto"]


def left_to_neighbors(asked: Mapping[str, Any]) -> str:
    """What a run says that trains one network on pixels, beside a trained encoder; of any other, nothing."""
    begins = asked["fine_tune"] or asked["config"] is not None or asked["recipe"] not in (None, "plain")
    if not _is_trained(asked["encoder"]) or begins or chooses_itself(asked):
        return ""
    flag = "--model" if asked["model"] is not None else _flag(_of_a_network(asked)[0])
    learned = "without settings of a network, models learn what it makes of the images"
    return f"one network is trained on pixels, as {flag} asks for one, and the encoder only says who is near; {learned}"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def training_config(asked: Mapping[str, Any], n_rows: int) -> "Config":
    """The training settings: a file's, or defaults that suit the number of rows; what was asked for by flags wins."""
    from naysay.learning import Config, model_of
    from naysay.learning.recipes import configure, get
    from naysay.runs.settings import batch_size_for, epochs_within_budget

    named = asked["recipe"] not in (None, "plain")
    for name in ("fine_tune", "as_published"):
        if named and asked[name]:
            own = f"the recipe {asked['recipe']} begins and learns in its own way"
            raise InputError(f"{_flag(name)} is for plain training, and {own}. Leave one of the two out.")
    names = ("loss", "model", "epochs", "learning_rate", "seed")
    given = {name: asked[name] for name in names if asked[name] not in (None, "auto")}
    if asked["fine_tune"]:
        if asked["encoder"] is None:
            raise InputError("--fine-tune starts the model from an encoder's weights: pass --encoder FILE too.")
        fits = {} if asked["model"] else {"model": model_of(asked["encoder"])}
        given = {**fits, **given, "encoder": str(asked["encoder"])}
    sized = {"epochs": epochs_within_budget(n_rows), "batch_size": batch_size_for(n_rows), **given}
    if named:
        start = {} if asked["encoder"] is None else {"encoder": str(asked["encoder"])}
        if start and "model" not in given and "encoder" not in get(asked["recipe"]).unused:
            start["model"] = model_of(asked["encoder"])
        if asked["config"] is not None:
            raise InputError("--recipe and --config cannot both be given: name the recipe in the file, as recipe.")
        return configure(asked["recipe"], **start, **(given if get(asked["recipe"]).takes == "images" else sized))
    if asked["config"] is not None:
        return replace(Config.from_file(asked["config"]), **given)
    return Config(**sized)


def show(about: dict[str, Any], out: Path, json: bool) -> None:
    """Tell what came out of a run."""
    if json:
        told = ("chosen", "verdict", "judging", "results", "classes", "never_predicted", "seconds")
        found = {name: about[name] for name in told}
        say_json({"run": str(out), "report": str(out / "report.html"), **found})
        return
    from naysay.runs.estimates import never_predicted

    console().print(results_table(about))
    assumed = next((row["assumes"] for row in about["results"] if row["chosen"]), "")
    said = [ESTIMATED.format(f"; the interval holds if {assumed}" if assumed else ""), *never_predicted(about)]
    print(about["verdict"], *said, f"report: {out / 'report.html'}", sep="\n")


def results_table(about: dict[str, Any]) -> Any:
    """What was tried with its estimates, and what the truth says where it is known; of many, the best and the kept."""
    from rich import box
    from rich.table import Table

    from naysay.figures import find_figure
    from naysay.report.numerals import MISSING, show_value
    from naysay.runs.estimates import estimated
    from naysay.words import percent

    measured = {name for row in about["results"] for name in row["truth"]}
    known = {name: find_figure(name).words for name in ORACLE if name in measured}
    table = Table(box=box.SIMPLE_HEAD, caption=TRUTH.format(about["data"].get("tested_on", "")) if known else None)
    weighed = any(row.get("weight") is not None for row in about["results"])
    titles = ("tried" if weighed else "scheme", *(["in the mixture"] if weighed else []), "estimated accuracy")
    for at, title in enumerate((*titles, "held-out loss", *(f"{title} †" for title in known.values()))):
        table.add_column(title, justify="right" if at else "left")
    rows = (
        sorted(about["results"], key=lambda row: (not row["chosen"], row["held_out_loss"]))
        if weighed
        else about["results"]
    )
    for row in rows:
        cells = [f"{row['scheme']} (kept)" if row["chosen"] else row["scheme"]]
        if weighed:
            cells.append(percent(row["weight"], 0) if row["weight"] else "")
        cells.append(show_value(estimated(row), "%").replace(MISSING, "cannot be told"))
        cells.append(f"{row['held_out_loss']:.3f} ± {row['held_out_loss_error']:.3f}")
        cells += ["" if row["truth"].get(name) is None else percent(row["truth"][name]) for name in known]
        table.add_row(*cells, style="bold" if row["chosen"] else None)
    return table


TRUTH = "† against the truth (test accuracy: {}), by which nothing was chosen"
ORACLE = ("test_accuracy", "mass_on_true", "argmin_accuracy")  # those of the figures that fit beside the estimate
