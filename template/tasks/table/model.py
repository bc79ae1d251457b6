"""The model and what is trained: a small network on the rows of a table. Replace it with your own.

The rest of the project calls the functions below with a batch of data.py, (rows, targets), and the model: bare or
wrapped, in float32, in a mix with a shorter type or, in tests, in float64.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from data import Batch, encode, read_table

SEPARABLE = True  # the loss of a batch is the sum of its samples' losses


@dataclass(frozen=True)
class ModelConfig:
    width: int = 128
    """Outputs of each hidden layer."""
    dropout: float = 0.1
    """Share of them that is left out at random in training."""

    def __post_init__(self) -> None:
        if self.width < 1 or not 0 <= self.dropout < 1:
            raise ValueError(
                f"--model.width {self.width}, --model.dropout {self.dropout}: give a width of 1 or more, and a dropout "
                "from 0 to below 1."
            )


class TableNet(nn.Module):
    """A network of two hidden layers on the numbers and on an embedding of each category."""

    def __init__(self, numbers: int, categories: list[int], outputs: int, width: int, dropout: float):
        super().__init__()
        self.numbers = numbers
        sizes = [min(32, (values + 1) // 2) for values in categories]
        self.embeddings = nn.ModuleList(map(nn.Embedding, categories, sizes))
        self.hidden = nn.Sequential(layer(numbers + sum(sizes), width, dropout), layer(width, width, dropout))
        self.head = nn.Linear(width, outputs)

    def forward(self, rows: Tensor) -> Tensor:
        """Logits [n, classes], or scaled numbers [n, 1], of rows [n, columns] as data.encode makes them."""
        numbers, codes = rows[:, : self.numbers], rows[:, self.numbers :].long()
        numbers = numbers / (1 + (numbers / 3) ** 2).sqrt()  # bends towards -3 and 3, so that an outlier is no lever
        embedded = [embedding(codes[:, column]) for column, embedding in enumerate(self.embeddings)]
        return self.head(self.hidden(torch.cat([numbers, *embedded], 1)))


def layer(inputs: int, width: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Dropout(dropout))


def build_model(info: dict, config: ModelConfig) -> nn.Module:
    """`info` is the data's (what the columns and the classes are); both are saved with the weights."""
    numbers = sum(1 + known["missing"] for known in info["numbers"].values())
    categories = [1 + len(known) for known in info["categories"].values()]
    return TableNet(numbers, categories, len(info["classes"]) or 1, config.width, config.dropout)


def count(batch: Batch) -> int:
    """The number of items that `loss` sums over."""
    return len(batch[1])


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross entropies, in nats, or of the squared errors of the scaled numbers; float32 at least."""
    rows, targets = batch
    return error(model(rows), targets)


def error(outputs: Tensor, targets: Tensor) -> Tensor:
    outputs = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
    if targets.is_floating_point():
        return F.mse_loss(outputs[:, 0], targets, reduction="sum")
    return F.cross_entropy(outputs, targets, reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    """name -> (sum, count), from one forward pass. "loss" is what chooses the best checkpoint."""
    rows, targets = batch
    outputs = model(rows)
    found = {"loss": (error(outputs, targets), len(targets))}
    if targets.is_floating_point():
        return found | {"targets": (torch.stack([targets.sum(), targets.square().sum()]), len(targets))}
    return found | {"accuracy": ((outputs.argmax(1) == targets).sum(), len(targets))}


def finish(sums: dict, counts: dict) -> dict[str, float]:
    """R² of the validation numbers: 1 is perfect, 0 no better than their mean."""
    if "targets" not in sums:
        return {}
    total, squares = sums["targets"]
    return {"r2": 1 - sums["loss"] / (squares - total.square() / counts["targets"])}


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    """What `forward` takes, for export: two samples, since a batch of one would be taken for a constant."""
    return (batch[0][[0, -1]],)


def group(name: str, parameter: Tensor) -> str:
    """Matrices decay; biases and embeddings do not; the head may have its own learning rate."""
    if parameter.ndim < 2 or name.startswith("embeddings."):
        return "no_decay"
    return "head" if name.startswith("head.") else "decay"


def predict(model: nn.Module, info: dict, arguments: list[str]) -> list[str]:
    """The class, or the number, of each row of CSV or Parquet files; columns that are not needed may be there."""
    device = next(model.parameters()).device
    lines = []
    for file in arguments:
        outputs = model(encode(read_table(file), info).to(device)).float()
        if info["classes"]:
            probabilities, classes = outputs.softmax(1).max(1)
            pairs = zip(classes.tolist(), probabilities.tolist(), strict=True)
            found = [f"{info['classes'][index]} ({probability:.1%})" for index, probability in pairs]
        else:
            found = [f"{value:.6g}" for value in (outputs[:, 0] * info["std"] + info["mean"]).tolist()]
        lines += [f"{file}, row {number}: {text}" for number, text in enumerate(found, 1)]
    return lines
