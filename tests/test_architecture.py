"""The folder shows the flow: a module imports only from its own stage or earlier ones, and nothing heavy until it is
used.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "naysay"

# The stages in the order of the flow; those on one line do not know each other.
STAGES = [
    {"errors", "seeds", "progress", "words", "figures", "statistics", "rounding"},
    {"cores", "files", "memory", "processes"},
    {"tensors"},
    {"engine"},
    {"labels"},
    {"transition"},
    {"shares"},
    {"datasets"},
    {"models"},
    {"losses"},
    {"selection"},
    {"learning"},
    {"features"},
    {"neighbors"},
    {"metrics"},
    {"augmentation"},
    {"estimation"},
    {"decoding", "reading"},
    {"holdout", "cluster"},
    {"bases"},
    {"portfolio"},
    {"estimators"},
    {"report"},
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


# Every name under which ordinary labels, or someone who knows them, are handed on.
TRUTH = re.compile(r"truth|\w+_truth|oracle|oracle_\w+|y_true|y_true_\w+|y_train|y_test|ord_labels")
# Stages that exist to sample from the truth, to read it, to measure with it or to show it.
TRUTH_ALLOWED = {"datasets", "transition", "figures", "metrics", "reading", "report", "cli"}
# Everywhere else these alone take it, to pass it on to metrics or to keep the figures that came back.
TRUTH_NAMED = {
    ("features", "oracle_knn_accuracy"),  # measures an encoder
    ("features", "pretrain"),  # asks its oracle between epochs, for the curve
    ("features", "_epochs_within"),  # knows how often that is
    ("runs", "fit"),  # asks its oracle after each epoch and of the labels, for the records
    ("runs", "learn"),
    ("runs", "_mixed"),  # asks it of the mixture
    ("runs", "kept"),
    ("runs", "_against"),
    ("runs", "Model"),  # holds the figures
    ("runs", "of_labels"),
    ("runs", "_result"),  # writes them down
    ("runs", "write"),  # shows the true classes of some rows in the report
    ("runs", "_key_figures"),  # draws figures, and says which of them need the truth
    ("runs", "_against_the_truth"),
    ("runs", "_series"),
}


def ways_of_truth(node, inside=""):
    """The functions and classes that are called after the truth, take it, hold it, or reach for it, by name."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        name = child.name if named else inside
        field = child.target if isinstance(child, ast.AnnAssign) and isinstance(node, ast.ClassDef) else None
        told = [getattr(child, attribute, "") for attribute in ("name", "arg", "attr")] + [getattr(field, "id", "")]
        # what a call hands on by keyword, its caller was given before
        if not isinstance(child, ast.keyword | ast.alias) and any(TRUTH.fullmatch(str(text)) for text in told):
            yield name
        yield from ways_of_truth(child, name)


def test_the_truth_enters_only_where_it_is_allowed():
    found = set()
    for path in modules():
        if (stage := stage_of(path)) not in TRUTH_ALLOWED:
            found |= {(stage, name) for name in ways_of_truth(ast.parse(path.read_text()))}
    assert found - TRUTH_NAMED == set(), "these take the truth, and are not among those that may"
    assert TRUTH_NAMED - found == set(), "these take no truth any more: take them off the list"


@pytest.mark.parametrize(
    "leak",
    [
        "def train(x, y_true): pass",
        "def train(x, *, truth=None): pass",
        "async def train(*y_test): pass",
        "train = lambda x, y_train: x",
        "def oracle_train(x): pass",
        "class Data:\n    y_true_train: int",
        "def train(data): return data.oracle",
    ],
)
def test_every_way_of_the_truth_is_known(leak):
    assert list(ways_of_truth(ast.parse(leak)))
    assert not list(ways_of_truth(ast.parse("def train(x, comp, y): return x.labels")))


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


FACTORIES = {
    "arange",
    "empty",
    "eye",
    "full",
    "linspace",
    "ones",
    "rand",
    "randint",
    "randn",
    "randperm",
    "scalar_tensor",
    "tensor",
    "zeros",
}


def factories_without_device(tree):
    """The lines of calls of torch's factories that do not say on which device the tensor is made."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        of_torch = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
        if of_torch and node.func.attr in FACTORIES and not any(word.arg == "device" for word in node.keywords):
            yield node.lineno


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_tensors_are_made_on_the_device_of_their_inputs(path):
    """A tensor made without `device=` lies on the CPU, and meets others on a GPU only where users are."""
    lines = list(factories_without_device(ast.parse(path.read_text())))
    assert lines == [], f"lines {lines}: say device=, that of the inputs (device='cpu' needs a reason beside it)"


def test_factory_without_device_is_noticed():
    assert list(factories_without_device(ast.parse("x = torch.zeros(3)\ny = torch.ones(3, device=x.device)"))) == [1]


MISSING_ON_A_GPU = ("pandas", "pyarrow", "pydantic", "typer", "rich", "PIL", "platformdirs", "jinja2", "ray", "faiss")


def test_gpu_tests_import_few_packages():
    """A GPU machine may have torch and scikit-learn alone, with what these bring."""
    folder = Path(__file__).parent / "gpu"
    code = f"""
import importlib, sys
sys.path.insert(0, {str(folder)!r})
for name in {MISSING_ON_A_GPU!r}:
    sys.modules[name] = None  # an import of it fails
for name in {sorted(path.stem for path in folder.glob("test_*.py"))!r}:
    importlib.import_module(name)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
