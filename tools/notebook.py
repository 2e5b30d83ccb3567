"""Run a notebook's code cells in one namespace, without a server, and store what they print: `make notebook`.

A cell's outputs are what it prints and, where its last line is an expression, that value, as Jupyter has it.
`tests/test_docs.py` runs the cells again and compares.
"""

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def run(notebook: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The outputs of each code cell, in the notebook's own form."""
    names: dict[str, Any] = {"__name__": "__main__"}
    sources = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [_outputs(source, number, names) for number, source in enumerate(sources, 1)]


def _outputs(source: str, number: int, names: dict[str, Any]) -> list[dict[str, Any]]:
    tree, printed, value = ast.parse(source, f"cell {number}"), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {number}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
    found: list[dict[str, Any]] = []
    if printed.getvalue():
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        found.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run the notebooks that were named, and store their outputs."""
    for path in map(Path, sys.argv[1:]):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, (cell, outputs) in enumerate(zip(cells, run(notebook), strict=True), 1):
            cell["execution_count"], cell["outputs"] = number, outputs
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
