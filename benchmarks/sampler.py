"""The common order of the samples for what takes a DataLoader, and for what takes any iterable of batches."""

from collections.abc import Iterator

from torch import Tensor
from torch.utils.data import DataLoader, Sampler, TensorDataset

from benchmarks import work as w


class Ordered(Sampler[int]):
    """The ids of epoch after epoch; `epoch` moves on by itself."""

    def __init__(self) -> None:
        self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        self.epoch += 1
        return iter(w.order(self.epoch - 1).tolist())

    def __len__(self) -> int:
        return w.SAMPLES


class Gathered:
    """Batches as the best loop makes them: sixteen by one indexing call."""

    def __init__(self) -> None:
        self.epoch = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        data, _ = w.digits()
        self.epoch += 1
        for ids in w.order(self.epoch - 1).split(16 * w.BATCH):
            images, labels = data.images.index_select(0, ids), data.labels.index_select(0, ids)
            yield from zip(images.split(w.BATCH), labels.split(w.BATCH), strict=True)

    def __len__(self) -> int:
        return w.BATCHES


def loader(own_path: bool) -> DataLoader | Gathered:
    """What people use, a DataLoader over a TensorDataset; or the data path of the best loop."""
    if not own_path:
        return Gathered()
    data, _ = w.digits()
    return DataLoader(TensorDataset(data.images, data.labels), w.BATCH, sampler=Ordered())


class HeldOut:
    """The validation batches, as slices."""

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        _, val = w.digits()
        return zip(val.images.split(w.BATCH), val.labels.split(w.BATCH), strict=True)

    def __len__(self) -> int:
        return -(-len(w.digits()[1].labels) // w.BATCH)


def validation(own_path: bool) -> DataLoader | HeldOut:
    _, val = w.digits()
    return DataLoader(TensorDataset(val.images, val.labels), w.BATCH) if own_path else HeldOut()
