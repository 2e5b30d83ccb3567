"""One training step as one thing that can be compiled and captured: views, forward, backward, update, moving average.

A step reads everything that changes from tensors that stay in place: the epoch's image order, its uniform numbers, its
learning rates, and a counter of steps. Nothing comes from the host between two steps of an epoch, so on a GPU the whole
step is captured once as a CUDA graph and replayed, and small batches are no longer bound by launches. Numbers are drawn
per epoch from named streams, so an epoch is the same whether or not the run was interrupted before it. Several
processes draw the same numbers and take a slice of each batch; their gradients are averaged, sent as one tensor, before
the update.
"""

import contextlib
import math
from collections.abc import Callable

import torch
from torch import Tensor

from naysay.features.recipes import Config
from naysay.features.siamese import Siamese
from naysay.features.views import DRAWS, make_views
from naysay.processes import ALONE, Processes
from naysay.seeds import torch_stream


def learning_rate(config: Config, epoch: float) -> float:
    """The rate at a (fractional) epoch: a linear rise over the warm-up, then half a cosine to zero at the end."""
    if epoch < config.warmup:
        return config.rate * epoch / config.warmup
    done = (epoch - config.warmup) / max(config.epochs - config.warmup, 1e-12)
    return config.rate * 0.5 * (1 + math.cos(math.pi * done))


class Step:
    """The training step over `images` (n, H, W, C) uint8 on a device; `load` an epoch, then call once per step of it."""

    def __init__(
        self, images: Tensor, model: Siamese, config: Config, *, compiled: bool = False, processes: Processes = ALONE
    ) -> None:
        self.images, self.model, self.config, self.processes, device = images, model, config, processes, images.device
        self.steps = len(images) // config.batch
        share = config.batch // processes.size
        self.mine = slice(processes.rank * share, (processes.rank + 1) * share)  # of each batch
        self.order = torch.zeros(self.steps, share, dtype=torch.int64, device=device)
        self.draws = torch.zeros(self.steps, config.views * share, DRAWS, device=device)
        self.rates = torch.zeros(self.steps, device=device)
        self.count = torch.zeros(1, dtype=torch.int64, device=device)
        self.totals = torch.zeros(2, device=device)  # sums of loss and of spread over the epoch so far
        self.rate, self.predictor_rate = (torch.tensor(config.rate, device=device) for _ in range(2))
        groups = [
            {"params": list(model.online.parameters()), "lr": self.rate},
            {"params": list(model.predictor.parameters()), "lr": self.predictor_rate},
        ]
        self.optimizer = torch.optim.SGD(
            groups,
            lr=self.rate,
            momentum=config.momentum,
            weight_decay=config.weight_decay,
            fused=device.type == "cuda",
        )
        for group in self.optimizer.param_groups:
            # a zero buffer makes the first step like any other, for capture and for checkpoints
            for p in group["params"]:
                self.optimizer.state[p]["momentum_buffer"] = torch.zeros_like(p)
        self._objective: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = self._evaluate
        if compiled:
            self._objective = torch.compile(self._evaluate, fullgraph=True, dynamic=False)
        self._graph: torch.cuda.CUDAGraph | None = None

    def load(self, epoch: int) -> None:
        """Put the order, the uniform numbers and the rates of `epoch` (from 0) in place."""
        device, batch = self.images.device, self.config.batch
        stream = torch_stream(self.config.seed, f"pretrain/epoch/{epoch}", device)
        order = torch.randperm(len(self.images), generator=stream, device=device)[: self.steps * batch].view(
            self.steps, batch
        )
        draws = torch.rand(self.steps, self.config.views, batch, DRAWS, generator=stream, device=device)
        self.order.copy_(order[:, self.mine])
        self.draws.copy_(draws[:, :, self.mine].reshape(self.draws.shape))
        self.rates.copy_(torch.tensor([learning_rate(self.config, epoch + i / self.steps) for i in range(self.steps)]))
        self.count.zero_()
        self.totals.zero_()

    def __call__(self) -> None:
        """Take the next step of the loaded epoch."""
        if self._graph is not None:
            self._graph.replay()
        else:
            self._run()

    def capture(self) -> None:
        """Capture the step as a CUDA graph; the state is afterwards what it was before."""
        tensors = self.state()
        before = {name: tensor.clone() for name, tensor in tensors.items()}
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # warm-up: compile, choose algorithms, create grads, all outside the capture
            for _ in range(3):
                self.count.zero_()
                self._run()
            self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.current_stream().wait_stream(side)
        self.count.zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._run()
        self._graph = graph
        with torch.no_grad():
            for name, tensor in tensors.items():
                tensor.copy_(before[name])
        self.count.zero_()
        self.totals.zero_()

    def state(self) -> dict[str, Tensor]:
        """All tensors that training changes: weights, statistics, and the optimiser's momenta."""
        named = dict(self.model.named_parameters())
        momenta = {
            f"momentum.{n}": self.optimizer.state[p]["momentum_buffer"] for n, p in named.items() if p.requires_grad
        }
        return {f"model.{n}": t for n, t in self.model.state_dict().items()} | momenta

    def means(self) -> tuple[float, float]:
        """Mean loss and relative spread over the steps of the epoch taken so far; waits for the device."""
        loss, spread = (self.processes.mean(self.totals) / self.count).tolist()
        return loss, spread

    def _run(self) -> None:
        self.rate.copy_(self.rates.index_select(0, self.count)[0])
        if not self.config.constant_predictor:
            self.predictor_rate.copy_(self.rate)
        order, draws = self.order.index_select(0, self.count)[0], self.draws.index_select(0, self.count)[0]
        self.optimizer.zero_grad(set_to_none=True)
        loss, spread = self._objective(order, draws)
        loss.backward()  # type: ignore[no-untyped-call]
        self._align()
        self.processes.average_([p.grad for group in self.optimizer.param_groups for p in group["params"]])
        self.optimizer.step()
        self.model.average(self.config.target_momentum)
        self.totals.add_(torch.stack([loss.detach(), spread]))
        self.count.add_(1)

    def _align(self) -> None:
        # a 1 x 1 kernel's gradient may come with other strides on its axes of length 1, which the fused update refuses
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                if p.grad.stride() != p.stride():
                    p.grad = p.grad.as_strided(p.shape, p.stride())

    def _evaluate(self, order: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            batch = self.images.index_select(0, order)
            x = make_views(batch.repeat(self.config.views, 1, 1, 1), draws, self.config.view)
        mixed = self.config.precision == "bf16" and x.is_cuda
        with torch.autocast("cuda", torch.bfloat16) if mixed else contextlib.nullcontext():
            loss, spread = self.model(x.contiguous(memory_format=torch.channels_last))
        return loss, spread
