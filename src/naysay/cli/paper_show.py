"""`naysay paper show` and `naysay paper write`: our records beside the published numbers, for one table or figure, and
for all of them.
"""

from pathlib import Path
from typing import Annotated

import typer

from naysay.cli import options as o
from naysay.cli.output import console, new_file, note, say_json
from naysay.cli.paper_run import Name, Results


def show(
    name: Name,
    results: Results = Path("results"),
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Also draw it as a picture.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write a page with table and figure.")
    ] = None,
    force: o.Force = False,
    json: o.Json = False,
) -> None:
    """Show a table or figure, our records beside the published numbers.

    Mean ± sd (n), the difference, and what is quick, simulated or missing.

    [bold]Examples[/bold]

      naysay paper show tab-main
      naysay paper show fig-implicit --png implicit.png --html implicit.html
    """
    from naysay import paper
    from naysay.errors import InputError
    from naysay.paper.cells import cells
    from naysay.paper.plots import picture
    from naysay.paper.show import as_json, printed, read

    spec = paper.get(name)
    records = read(results)
    its = cells(spec, records)
    drawn = picture(spec, its)
    if drawn is None and (png or html):
        raise InputError(
            f"{name} has no record in {results}, so there is nothing to draw. Make some: naysay paper run {name} "
            "--quick."
        )
    if png is not None and drawn is not None:
        from naysay.paper.figures import draw

        with new_file(png, force, (".png",)) as unfinished:
            draw(spec, drawn, unfinished)
    if html is not None:
        from naysay.cli.paper_page import page
        from naysay.report import write as write_page

        with new_file(html, force, (".html", ".htm")) as unfinished:
            write_page(page(spec, its, drawn, records), unfinished)
    if json:
        say_json(as_json(spec, its))
    else:
        where = console()
        for part in printed(spec, its):
            where.print(part)
    for path in (png, html):
        if path is not None:
            note(f"written: {path}")


def write(
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The page; replaced.")] = Path(
        "docs/REPRODUCTION.md"
    ),
    figures: Annotated[Path, typer.Option("--figures", metavar="FOLDER", help="Its pictures; replaced.")] = Path(
        "docs/figures"
    ),
) -> None:
    """Write the page on the reproduction, from the records.

    Every table and figure with where we land, and pictures. The same records
    give the same page.

    [bold]Examples[/bold]

      naysay paper write
      naysay paper write --results results --out REPRODUCTION.md --figures figures
    """
    from naysay.paper.reproduction import write as write_all
    from naysay.paper.show import read

    for path in write_all(read(results), out, figures):
        print(path)
