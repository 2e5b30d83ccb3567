"""The laboratory stands beside the library: it uses public names alone, and the library neither knows nor ships it."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import naysay

ROOT = Path(__file__).parent.parent
LABORATORY, LIBRARY = ROOT / "reproduction", ROOT / "src" / "naysay"


def public(module):
    """The names a module offers: those of its `__all__`, else what it itself defines without an underscore in front."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    names = set()
    for node in ast.parse(Path(module.__file__).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def is_stage(name):
    return (LIBRARY / name).is_dir() or (LIBRARY / f"{name}.py").exists()


def trespasses(source):
    """What `source` takes from the library that is not public, as dotted names; `import naysay...` is not done here."""
    tree, found, modules = ast.parse(source), [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.partition(".")[0] == "naysay"]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "naysay":
            deep = node.module.count(".") > 1
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                stage = node.module == "naysay" and is_stage(alias.name)
                if not stage and (deep or alias.name not in public(importlib.import_module(node.module))):
                    found.append(name)
                    continue
                taken = importlib.import_module(name) if stage else getattr(sys.modules[node.module], alias.name)
                if isinstance(taken, ModuleType):
                    modules[alias.asname or alias.name] = taken
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            module = modules[node.value.id]
            if node.attr not in public(module):
                found.append(f"{module.__name__}.{node.attr}")
    return found


@pytest.mark.parametrize("path", sorted(LABORATORY.rglob("*.py")), ids=lambda path: path.name)
def test_the_laboratory_uses_only_public_names_of_the_library(path):
    assert trespasses(path.read_text()) == []


@pytest.mark.parametrize(
    ("source", "taken"),
    [
        ("from naysay.learning.records import clean", "naysay.learning.records.clean"),
        ("import naysay.learning.records", "naysay.learning.records"),
        ("from naysay.engine import worker", "naysay.engine.worker"),
        ("from naysay import engine\nengine.worker.cores()", "naysay.engine.worker"),
        ("from naysay.seeds import _entropy", "naysay.seeds._entropy"),
        ("from naysay.selection import torch", "naysay.selection.torch"),
        ("def f():\n    from naysay import datasets as d\n    return d.store", "naysay.datasets.store"),
    ],
)
def test_a_deep_or_private_name_is_found(source, taken):
    assert trespasses(source) == [taken]


def test_public_names_are_left_alone():
    assert trespasses("from naysay import engine\nfrom naysay.engine import Ledger\nengine.start('local')") == []


def test_the_library_does_not_know_the_laboratory_or_matplotlib():
    for path in LIBRARY.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & {"reproduction", "matplotlib"}, path
    assert "paper" not in dir(naysay)


def test_the_wheel_holds_the_library_alone_and_matplotlib_is_an_extra():
    from setuptools import find_packages

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (where,) = project["tool"]["setuptools"]["packages"]["find"]["where"]
    assert {name.partition(".")[0] for name in find_packages(ROOT / where)} == {"naysay"}
    assert not any(need.startswith("matplotlib") for need in project["project"]["dependencies"])
    assert [need[:10] for need in project["project"]["optional-dependencies"]["reproduction"]] == ["matplotlib"]


def test_help_does_not_wait_for_torch_and_names_the_module():
    code = "import sys, reproduction.command; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "False False"
    call = [sys.executable, "-m", "reproduction", "--help"]
    done = subprocess.run(call, capture_output=True, text=True, check=True, cwd=ROOT)
    assert "Usage: python -m reproduction [OPTIONS] COMMAND" in done.stdout
    assert all(f"│ {name}" in done.stdout for name in ("list", "run", "show", "write"))
