"""The work that every contestant does: the same samples in the same order, the same model, optimizer and schedule.

1280 digits in 20 batches of 64, so that no batch is smaller and every window of four is full (the libraries treat
tails in ways of their own). AdamW, a cosine per optimizer step, the gradient clipped to a norm of 1, an evaluation at
the end of each epoch, one torch thread.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SAMPLES, BATCH, SEED = 1280, 64, 0
LR, WEIGHT_DECAY, MAX_NORM, END = 3e-3, 0.05, 1.0, 0.01
BATCHES = SAMPLES // BATCH


@dataclass(frozen=True)
class Work:
    model: str
    """perceptron (about 5 k parameters: the loop's own cost shows) or network (about 50 k, convolutional)."""
    bf16: bool = False
    accumulation: int = 1
    epochs: int = 15

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole training."""
        return self.epochs * BATCHES // self.accumulation

    @property
    def tolerance(self) -> float:
        """What rounding makes of equal work: the most that two final parameters may differ by.

        bf16 rounds another way where a sum is divided in another place, and AdamW divides the network's smallest
        gradients, which are rounding themselves, by their own size. Without the weight decay it would be 3e-2.
        """
        return 1e-4 if self.bf16 or self.model == "network" else 1e-6

    def factor(self, step: int) -> float:
        """The share of LR with which optimizer step `step` is made; beyond the last one it stays at the end."""
        down = min(step / max(self.steps - 1, 1), 1.0)
        return END + (1 - END) * (1 + math.cos(math.pi * down)) / 2


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def forward(self, images: Tensor) -> Tensor:
        """Logits [n, 10] of images uint8 [n, 1, 8, 8]."""
        return self.layers(images / 255)


class Network(nn.Module):
    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.head = nn.Linear(4 * width, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.features(images / 255))


def build_model(work: Work) -> nn.Module:
    torch.manual_seed(SEED)
    return {"perceptron": Perceptron, "network": Network}[work.model]()


def mean_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.float(), labels)


def begin_epoch() -> None:
    """Every contestant comes here when an epoch begins; worker.py waits here for its turn."""


def order(epoch: int) -> Tensor:
    """The sample ids of an epoch that begins, int64 [SAMPLES]: the order of a generated project with this seed."""
    begin_epoch()
    return torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(SEED * 1_000_003 + epoch))


class Digits:
    """The samples in memory: images uint8 [n, 1, 8, 8] and labels int64 [n]."""

    def __init__(self, images: Tensor, labels: Tensor) -> None:
        self.images, self.labels = images, labels


@lru_cache
def digits() -> tuple[Digits, Digits]:
    """1280 samples to train on and 384 others to evaluate on."""
    from sklearn.datasets import load_digits

    raw = load_digits()
    images = torch.from_numpy(raw.images * (255 / 16)).round().to(torch.uint8).unsqueeze(1)
    labels = torch.from_numpy(raw.target).long()
    mixed = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    train, val = mixed[:SAMPLES], mixed[SAMPLES : SAMPLES + 384]
    return Digits(images[train], labels[train]), Digits(images[val], labels[val])


@dataclass
class Outcome:
    """What a contestant's training ended with."""

    steps: int
    model: nn.Module

    @cached_property
    def parameters(self) -> Tensor:
        return torch.cat([parameter.detach().flatten() for parameter in self.model.parameters()])


@torch.no_grad()
def evaluate(model: nn.Module, work: Work) -> tuple[float, float]:
    """Mean loss and accuracy on the validation samples, by the hand-written loops."""
    _, val = digits()
    model.eval()
    losses, right = [], []
    for first in range(0, len(val.labels), BATCH):
        labels = val.labels[first : first + BATCH]
        with torch.autocast("cpu", torch.bfloat16, enabled=work.bf16):
            logits = model(val.images[first : first + BATCH])
        right.append((logits.argmax(1) == labels).sum())
        losses.append(F.cross_entropy(logits.float(), labels, reduction="sum"))
    model.train()
    loss, accuracy = (sum(torch.stack(values).tolist()) / len(val.labels) for values in (losses, right))
    return loss, accuracy
