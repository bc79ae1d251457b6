"""An owner's sentences as a Hugging Face tokenizer gives them: a UserDict, padded to the batch, with the texts."""

from collections import UserDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Batch = UserDict[str, Any]
WORDS = ("a", "good", "bad", "film", "very", "not", "at", "all", "dull", "fine", "play")
GOOD = {"good", "fine"}


@dataclass(frozen=True)
class DataConfig:
    sentences: int = 200


class BatchEncoding(UserDict[str, Any]):
    """Mapping of a library: it has attributes of its own, and is no dict."""

    def __init__(self, data: dict[str, Any], n_sequences: int = 1) -> None:
        super().__init__(data)
        self.n_sequences = n_sequences


class Sentences:
    on_device = False

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.info = texts, {"words": len(WORDS) + 1}

    def __len__(self) -> int:
        return len(self.texts)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        texts = [self.texts[i] for i in ids.tolist()]
        words = [text.split() for text in texts]
        longest = max(map(len, words))
        tokens = torch.zeros(len(words), longest, dtype=torch.int64)
        for row, sentence in zip(tokens, words, strict=True):
            row[: len(sentence)] = torch.tensor([WORDS.index(word) + 1 for word in sentence])
        labels = torch.tensor([len(GOOD.intersection(sentence)) > 0 for sentence in words]).long()
        return BatchEncoding(
            {"input_ids": tokens, "attention_mask": tokens > 0, "labels": labels, "text": texts, "token_type_ids": None}
        )


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[Sentences, Sentences]:
    generator = torch.Generator().manual_seed(seed)
    texts = []
    for _ in range(config.sentences):
        length = int(torch.randint(2, 7, (1,), generator=generator))
        texts.append(" ".join(WORDS[i] for i in torch.randint(len(WORDS), (length,), generator=generator).tolist()))
    cut = config.sentences * 3 // 4
    return Sentences(texts[:cut]), Sentences(texts[cut:])


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    return batch
