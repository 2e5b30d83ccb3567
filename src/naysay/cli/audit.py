"""`naysay audit`: what the labels are like, before any training."""

from pathlib import Path
from typing import Annotated

import typer

from naysay.cli import options as o
from naysay.cli.output import new_file, say_json


def audit(
    data: o.Data,
    *,
    id: o.Id = None,
    label: o.Label = None,
    features: o.Features = None,
    ignore: o.Ignore = None,
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
    transition: o.Transition = None,
    truth: Annotated[
        str | None, o.items("--truth", "COLUMN", "The column of ordinary labels, to be left alone.")
    ] = None,
    n_labels: o.NLabels = None,
    space: o.Space = "auto",
    encoder: o.Encoder = None,
    class_shares: o.ClassShares = "unknown",
    seed: o.Seed = 0,
    folder: o.Folder = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", rich_help_panel=o.OUTPUT, help="Also write a page.")
    ] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    r"""Look at complementary labels before any training, and say what to do about
    them.

    Counts, coverage, how evenly classes are named, annotators, options shown,
    duplicates; and, from neighbours in the feature space, how many labels are
    probably wrong and how biased they are. No ordinary label is used.

    [bold]Examples[/bold]

      naysay audit data.csv --id id --label not_label
      naysay audit items.csv --id id --labels votes.csv \
          --item item --label not --annotator worker --options shown \
          --html audit.html
    """
    asked = locals()
    from naysay import audit as library
    from naysay.features import find_space
    from naysay.reading import read

    o.check_class_shares(class_shares)
    given = read(**o.reading({**asked, "contradictions": "keep"}), strict=False)
    near = find_space(given.items.x, space, encoder, columns=given.items.features)
    found = library.audit(
        given.comp,
        features=near.features,
        table=given.table,
        classes=given.classes,
        items=given.items.ids.tolist(),
        metric=near.metric,
        seed=seed,
        class_shares=o.class_shares(class_shares, given.classes),
    ).said(o.in_flags)
    if html is not None:
        with new_file(html, force, (".html", ".htm")) as unfinished:
            unfinished.write_text(library.audit_page(found), encoding="utf-8", errors="xmlcharrefreplace")
    if json:
        say_json(found.as_dict())
    else:
        print(found.as_text())
        if html is not None:
            print(f"page: {html}")
