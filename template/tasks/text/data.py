"""The data: text as bytes, by default the sources of Python's standard library. Replace it with your own.

The rest of the project uses `DataConfig`, `load`, `augment` and what a source offers: `on_device`, `info`,
`len()` and `fetch`. A batch is (inputs, targets), both int64 [n, context]: the bytes of a window, and for
each the byte that follows. A target of -100 is ignored: mark padding, or a prompt, with it.
"""

import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

Batch = tuple[Tensor, Tensor]
SUFFIXES = {".txt", ".md", ".rst", ".py", ".json", ".csv", ".tex", ".html"}
VOCABULARY = 256  # a token is a byte: no tokenizer, and every file is valid text


@dataclass(frozen=True)
class DataConfig:
    root: Path | None = None
    """Text file, or folder of text files, with its sub-folders (default: Python's standard library)."""
    limit: int = 100_000_000
    """Read at most so many bytes; they stay in the device's memory."""
    context: int = 64
    """Length of a window: so many bytes the model sees at most."""
    samples_per_epoch: int = 1536
    """Windows of an epoch, spread over the whole text; each epoch takes others."""
    validation_samples: int = 256
    """Windows of the validation, at most: always the same, spread over the last tenth of the text."""


class WindowSource:
    """Windows of a text that lies on the device: sample `id` starts at id * stride plus the epoch's shift."""

    on_device = True

    def __init__(self, text: Tensor, samples: int, stride: int, context: int, moving: bool):
        self.windows = text.unfold(0, context + 1, 1)  # a view: [starts, context + 1]
        self.samples, self.stride, self.moving = samples, stride, moving
        self.info = {"vocabulary": VOCABULARY, "context": context}

    def __len__(self) -> int:
        return self.samples

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        """The windows `ids` (int64 [n], on the CPU) of this epoch."""
        # Multiples of the golden ratio (40503 / 65536) spread evenly between 0 and the stride, however many.
        shift = epoch * 40503 % 65536 * self.stride // 65536 if self.moving else 0
        starts = ids.to(self.windows.device, non_blocking=True) * self.stride + shift  # the loader pins them: no wait
        windows = self.windows[starts].long()
        return windows[:, :-1].contiguous(), windows[:, 1:].contiguous()


def load(config: DataConfig, seed: int, device: torch.device) -> tuple[WindowSource, WindowSource]:
    """The training and the validation source: the first nine tenths of the text, and the rest."""
    for name in ("limit", "context", "samples_per_epoch", "validation_samples"):
        if (value := getattr(config, name)) < 1:
            raise SystemExit(f"--data.{name.replace('_', '-')} is {value}: give a positive number.")
    text = read_text(config.root, config.limit)
    cut, context = len(text) * 9 // 10, config.context
    if len(text) - cut <= context:
        raise SystemExit(
            f"The text has {len(text)} bytes, too few for windows of {context}: "
            f"give at least {10 * context + 10} or lower --data.context."
        )
    train, validation = text[:cut].to(device), text[cut:].to(device)
    places = len(train) - context
    samples = min(config.samples_per_epoch, places)
    held_out = min(config.validation_samples, (len(validation) - 1) // context)
    stride = (len(validation) - 1) // held_out  # at least the context: these windows do not overlap
    return (
        WindowSource(train, samples, places // samples, context, moving=True),
        WindowSource(validation, held_out, stride, context, moving=False),
    )


def read_text(root: Path | None, limit: int) -> Tensor:
    """The first `limit` bytes of the text, uint8 [bytes]: file after file by name, without hidden ones."""
    if root is None:
        root = Path(sysconfig.get_path("stdlib"))
        files = sorted(root.glob("[!_]*.py"))  # some of _*.py are generated for this machine
    elif root.is_dir():
        files = sorted(path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        files = [path for path in files if not any(name[0] == "." for name in path.relative_to(root).parts)]
    elif root.exists():
        files = [root]
    else:
        raise SystemExit(f"The text {root} does not exist: --data.root is a text file or a folder of them.")
    if not files:
        raise SystemExit(f"The folder {root} holds no text files ({', '.join(sorted(SUFFIXES))}).")
    text = bytearray()
    for file in files:
        try:
            with file.open("rb") as stream:
                text += stream.read(limit - len(text))
        except OSError as error:
            raise SystemExit(f"Cannot read the text {file}: {error.strerror}.") from None
    if not text:
        raise SystemExit(f"The text {root} is empty.")
    return torch.frombuffer(text, dtype=torch.uint8)


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    """Replace one input byte in 64 by a random one; the targets stay, so the model learns to bear typos.

    `noise(k)` gives uniform numbers in [0, 1), float32 [n, k], that depend on seed, epoch and sample alone.
    The same number decides and, below 1 / 64, chooses the byte. The batch itself is not changed.
    """
    inputs, targets = batch
    draws = noise(inputs.shape[1]) * 64  # exact, so that what is below 1 gives a byte below 256
    return torch.where(draws < 1, (draws * VOCABULARY).long(), inputs), targets
