"""An owner's transformer on padded sentences, called with keywords, that gives an object as Hugging Face's do."""

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from data import Batch

SEPARABLE = True


class Classifier(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        hidden = self.layer(self.embedding(input_ids), src_key_padding_mask=~attention_mask)
        mask = attention_mask[..., None].to(hidden.dtype)
        return SimpleNamespace(logits=self.head((hidden * mask).sum(1) / mask.sum(1)))


def build_model(info: dict[str, Any]) -> nn.Module:
    return Classifier(info["words"]).eval()  # as from_pretrained leaves it


def count(batch: Batch) -> int:
    return len(batch["text"])


def logits(model: nn.Module, batch: Batch) -> Tensor:
    found = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    return found.to(torch.promote_types(found.dtype, torch.float32))


def loss(model: nn.Module, batch: Batch) -> Tensor:
    return nn.functional.cross_entropy(logits(model, batch), batch["labels"], reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, int]]:
    found, labels = logits(model, batch), batch["labels"]
    right = found.argmax(1) == labels
    return {
        "loss": (nn.functional.cross_entropy(found, labels, reduction="sum"), len(labels)),
        "accuracy": (right.sum(), len(labels)),
    }


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    return ()  # forward gives an object: nothing to export


def group(name: str, parameter: Tensor) -> str:
    return "decay" if parameter.ndim > 1 else "no_decay"


def predict(model: nn.Module, info: dict[str, Any], arguments: list[str]) -> list[str]:
    return arguments
