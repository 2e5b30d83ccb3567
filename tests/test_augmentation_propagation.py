"""Every backend of the propagation against a double-precision product of exactly as many rounds."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from naysay.augmentation.propagation import BACKENDS, LONG_WORK, propagate
from naysay.errors import InputError
from naysay.seeds import torch_stream

# float32 sums of 64 weighted entries round by about 1e-7, and alpha = 0.1 lets at most ten rounds of that add up
SINGLE = 1e-6

HAS_TRITON = find_spec("triton") is not None
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
needs_triton = pytest.mark.skipif(
    not (HAS_TRITON and (torch.cuda.is_available() or INTERPRETED)),
    reason="needs triton, and a CUDA device or TRITON_INTERPRET=1",
)
home = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = [(7, 1, 3), (50, 8, 10), (129, 5, 16), (300, 12, 17), (200, 3, 40)]


@pytest.fixture(autouse=True)
def _one_thread():
    # the work here is tiny: on a busy machine threads would mostly wait for each other
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def example(
    n: int, k: int, n_classes: int, *, unlabelled: float = 0.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    draw = torch_stream(n * k, "propagation test")
    indices = torch.randint(n, (n, k), generator=draw, dtype=torch.int32)
    weights = torch.rand(n, k, generator=draw)
    comp = torch.nn.functional.one_hot(torch.randint(n_classes, (n,), generator=draw), n_classes).float()
    comp[torch.rand(n, generator=draw) < unlabelled] = 0
    return indices, weights / weights.sum(1, keepdim=True), comp


def reference(
    indices: torch.Tensor, weights: torch.Tensor, comp: torch.Tensor, alpha: float, rounds: int
) -> torch.Tensor:
    """Exactly `rounds` rounds in double precision."""
    y = comp.double()
    z = y
    for _ in range(rounds):
        gathered = torch.zeros_like(y)
        for j in range(indices.shape[1]):
            gathered += weights[:, j : j + 1].double() * z[indices[:, j].long()]
        z = alpha * y + (1 - alpha) * gathered
    sums = z.sum(1, keepdim=True)
    return z / sums.where(sums > 0, 1.0)


def check(backend: str, device: str, shape: tuple[int, int, int], rounds: int) -> None:
    indices, weights, comp = example(*shape, unlabelled=0.3)
    found = propagate(
        indices.to(device), weights.to(device), comp.to(device), alpha=0.1, rounds=rounds, backend=backend
    )
    assert (found.labels.cpu() - reference(indices, weights, comp, 0.1, rounds)).abs().max() < SINGLE
    assert (found.rounds, found.backend, found.labels.device.type) == (rounds, backend, device)


@pytest.mark.parametrize("backend", ["torch", "numba"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 100])
def test_each_cpu_backend_equals_double_precision(backend, shape, rounds):
    check(backend, "cpu", shape, rounds)


@needs_triton
@pytest.mark.parametrize("shape", SHAPES)
def test_triton_equals_double_precision(shape):
    for rounds in (0, 1, 2, 3, 8):
        check("triton", home, shape, rounds)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("backend", ["auto", "torch"])
def test_a_gpu_gives_what_a_cpu_gives(backend):
    parts = example(5003, 16, 20)
    found = propagate(*(part.cuda() for part in parts), backend=backend)
    assert (found.labels.cpu() - propagate(*parts).labels).abs().max() < SINGLE


@pytest.mark.parametrize("backend", ["torch", "numba"])
def test_work_shared_between_threads_equals_double_precision(backend):
    torch.set_num_threads(3)
    indices, weights, comp = example(5003, 16, 20)
    found = propagate(indices, weights, comp, rounds=9, backend=backend).labels
    assert (found - reference(indices, weights, comp, 0.1, 9)).abs().max() < SINGLE


def test_row_numbers_beyond_sixteen_bits_are_kept():
    indices, weights, comp = example(2**16 + 3, 2, 5)
    found = propagate(indices, weights, comp, rounds=2, backend="numba").labels
    assert (found - reference(indices, weights, comp, 0.1, 2)).abs().max() < SINGLE


@pytest.mark.parametrize("backend", ["torch", "numba", pytest.param("triton", marks=needs_triton)])
def test_tol_ends_every_backend_after_the_same_round(backend):
    indices, weights, comp = (part.to(home if backend == "triton" else "cpu") for part in example(300, 6, 4))
    found = propagate(indices, weights, comp, rounds=500, tol=1e-4, backend=backend)
    assert (
        found.rounds
        == propagate(indices.cpu(), weights.cpu(), comp.cpu(), rounds=500, tol=1e-4, backend="torch").rounds
    )
    assert found.change <= 1e-4
    assert propagate(indices, weights, comp, rounds=found.rounds - 1, backend=backend).change > 1e-4


def test_alpha_one_shares_nothing_and_full_precision_indices_are_welcome():
    indices, weights, comp = example(50, 4, 5)
    found = propagate(indices.long(), weights.double(), comp.double(), alpha=1.0, rounds=5)
    assert found.labels.dtype == torch.float32
    assert torch.equal(found.labels, comp)


def test_short_work_does_not_wait_for_a_compiler():
    indices, weights, comp = example(50, 4, 5)
    assert propagate(indices, weights, comp).backend == "torch"


def test_long_work_on_a_cpu_is_compiled():
    n, k, n_classes, rounds = 2000, 64, 16, 500
    assert n * k * n_classes * rounds >= LONG_WORK
    indices, weights, comp = example(n, k, n_classes)
    found = propagate(indices, weights, comp, rounds=rounds)
    assert found.backend == "numba"
    assert (
        found.labels - propagate(indices, weights, comp, rounds=rounds, backend="torch").labels
    ).abs().max() < SINGLE


def test_importing_augmentation_imports_neither_numba_nor_triton_nor_scipy():
    heavy = "{'numba', 'triton', 'scipy', 'sklearn', 'rich'}"
    code = f"import sys, naysay.augmentation; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_wrong_shapes_and_row_numbers_never_reach_the_kernels():
    indices, weights, comp = example(20, 4, 3)
    for backend in BACKENDS:
        with pytest.raises(
            InputError, match=r"the same n, and at least one neighbour; got shapes \(20, 4\), \(20, 3\) and \(20, 3\)"
        ):
            propagate(indices, weights[:, 1:], comp, backend=backend)
        with pytest.raises(InputError, match=r"got shapes \(20, 0\)"):
            propagate(indices[:, :0], weights[:, :0], comp, backend=backend)
        with pytest.raises(InputError, match="indices must be row numbers from 0 to 19; got 1 to 20"):
            propagate(indices.clamp(1).index_fill(1, torch.tensor([0]), 20), weights, comp, backend=backend)
    with pytest.raises(InputError, match="unknown backend 'cupy'"):
        propagate(indices, weights, comp, backend="cupy")
