"""The model and what is trained: a small GPT on bytes. Replace it with your own.

The rest of the project calls the functions below with a batch of data.py, (inputs, targets), and the model:
bare or wrapped, in float32, in a mix with a shorter type or, in tests, in float64.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from data import Batch

SEPARABLE = True  # the loss of a batch is the sum of its samples' losses
IGNORED = -100  # a target that is not counted; the value that cross_entropy skips by itself


@dataclass(frozen=True)
class ModelConfig:
    width: int = 96
    """Numbers that stand for a token inside the model."""
    heads: int = 4
    """Parts of attention, among which the width is divided."""
    depth: int = 2
    """Blocks, one after the other."""

    def __post_init__(self) -> None:
        if min(self.width, self.heads, self.depth) < 1 or self.width % self.heads:
            raise ValueError("--model: width, heads and depth have to be 1 or more, and the heads divide the width.")


class GPT(nn.Module):
    """A decoder-only transformer with learned positions, normalised before each part."""

    def __init__(self, vocabulary: int, context: int, width: int, heads: int, depth: int):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [n, length, vocabulary] of what follows each of the tokens int64 [n, length <= context]."""
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class Block(nn.Module):
    """Attention to the tokens before, then a two-layer network, each added to its input."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.network = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """[n, length, width] -> [n, length, width]."""
        split = self.query_key_value(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = split.permute(2, 0, 3, 1, 4)  # each [n, heads, length, width / heads]
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.network(x)


def build_model(info: dict, config: ModelConfig) -> nn.Module:
    """`info` is the data's (vocabulary, context); both are saved with the weights."""
    return GPT(info["vocabulary"], info["context"], config.width, config.heads, config.depth)


def count(batch: Batch) -> Tensor:
    """The number of items that `loss` sums over: the targets that are not ignored."""
    return (batch[1] != IGNORED).sum()


def loss(model: nn.Module, batch: Batch) -> Tensor:
    """The sum of the cross entropies, in nats; float32 also where the model computes in half precision."""
    inputs, targets = batch
    logits = model(inputs)
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED, reduction="sum")


def metrics(model: nn.Module, batch: Batch) -> dict[str, tuple[Tensor, Tensor]]:
    """name -> (sum, count), from one forward pass. "loss", in nats per byte, chooses the best checkpoint."""
    nats, bytes_ = loss(model, batch), count(batch)
    return {"loss": (nats, bytes_), "bits_per_byte": (nats / math.log(2), bytes_)}


def example_input(batch: Batch) -> tuple[Tensor, ...]:
    """What `forward` takes, for export: two samples, since a batch of one would be taken for a constant."""
    return (batch[0][[0, -1]],)


def group(name: str, parameter: Tensor) -> str:
    """Matrices decay; biases, norms and embeddings do not; the head may have its own learning rate."""
    if parameter.ndim < 2 or name.startswith(("tokens.", "positions.")):
        return "no_decay"
    return "head" if name.startswith("head.") else "decay"


def predict(model: nn.Module, info: dict, arguments: list[str]) -> list[str]:
    """Each prompt and 200 more bytes, drawn one by one from what the model expects; always the same ones."""
    device = next(model.parameters()).device
    texts = []
    for prompt in arguments:
        text = list(prompt.encode() or b"\n")
        generator = torch.Generator().manual_seed(0)
        for _ in range(200):
            tokens = torch.tensor([text[-info["context"] :]], device=device)
            probabilities = model(tokens)[0, -1].float().softmax(0).cpu()
            text.append(int(probabilities.multinomial(1, generator=generator)))
        texts.append(bytes(text).decode(errors="replace"))
    return texts
