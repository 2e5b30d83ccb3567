"""The folder shows the flow: a module imports only from its own stage or earlier ones, and nothing heavy until it is
used.
"""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "naysay"

# The stages in the order of the flow; those on one line do not know each other.
STAGES = [
    {"errors", "seeds", "progress", "words", "statistics"},
    {"files", "processes"},
    {"engine"},
    {"labels"},
    {"transition"},
    {"datasets"},
    {"models"},
    {"features"},
    {"neighbors"},
    {"estimation"},
    {"augmentation"},
    {"losses"},
    {"selection", "metrics"},
    {"training"},
    {"estimators"},
    {"paper", "report"},
    {"audit"},
    {"runs"},
    {"cli"},
]
RANK = {name: rank for rank, stage in enumerate(STAGES) for name in stage}
HEAVY = {
    "sklearn",
    "scipy",
    "pynndescent",
    "numba",
    "faiss",
    "lightning_fabric",
    "matplotlib",
    "plotly",
    "pyarrow",
    "pooch",
    "PIL",
    "ray",
    "pandas",
}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def stage_of(path):
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported_stages(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "naysay":
            names = [node.module] if "." in node.module else [f"naysay.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("naysay.")]
        else:
            continue
        yield from (name.split(".")[1] for name in names)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_its_own_stage_or_earlier_ones(path):
    stage = stage_of(path)
    if stage in ("__init__", "__main__"):
        return
    assert stage in RANK, f"{path.name} belongs to no stage of the flow: put it into STAGES, in its place"
    for other in imported_stages(path):
        if other == "__version__":
            continue
        earlier = RANK[other] < RANK[stage]
        assert earlier or other == stage, f"{stage} imports {other}, which comes later in the flow"


def test_the_truth_enters_only_where_it_is_allowed():
    allowed = {"datasets", "transition", "metrics", "paper", "features", "cli", "report"}
    for path in modules():
        if stage_of(path) in allowed:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args.args + node.args.kwonlyargs + node.args.posonlyargs
                leaks = {a.arg for a in arguments} & {"y_true"} or node.name.startswith("oracle_")
                assert not leaks, f"{path.relative_to(SOURCE)}:{node.lineno} {node.name} takes the truth"


def test_importing_every_stage_loads_nothing_heavy():
    """Heavy packages are imported where they are first used; only the estimators, which are scikit-learn classes, need
    it at once.
    """
    stages = sorted({stage_of(path) for path in modules()} - {"__init__", "__main__", "estimators"})
    code = (
        f"import sys, {', '.join('naysay.' + stage for stage in stages)}; print(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_help_does_not_wait_for_torch():
    code = "import sys, naysay.cli; print('torch' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
