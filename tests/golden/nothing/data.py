"""The data: scikit-learn's handwritten digits, or the images of a folder. Replace this file with your own.

The rest of the project uses `DataConfig`, `load`, `augment` and what a source offers: `on_device`, `info`,
`len()` and `fetch`. A batch is (images, labels): images uint8 [n, channels, size, size] in 0..255, labels
int64 [n]. The model scales the pixels: as uint8 they take a quarter of the memory, also in exports.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

Batch = tuple[Tensor, Tensor]
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}


@dataclass(frozen=True)
class DataConfig:
    root: Path | None = None
    """Folder with a sub-folder of images per class, or with them in train/ and val/ (default: digits)."""
    size: int = 32
    """Images of the folder are resized to this height and width, in pixels."""


class TensorSource:
    """Samples that fit in memory: they lie on the device, and a batch is one indexing."""

    on_device = True

    def __init__(self, images: Tensor, labels: Tensor, info: dict):
        self.images, self.labels, self.info = images, labels, info

    def __len__(self) -> int:
        return len(self.labels)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        """The samples `ids` (int64 [n], on the CPU)."""
        ids = ids.to(self.labels.device, non_blocking=self.labels.is_cuda)
        # On a CPU several times as fast as self.images[ids].
        return self.images.index_select(0, ids), self.labels.index_select(0, ids)


class FolderSource:
    """Image files, decoded when they are asked for: by the loader's workers, on the CPU."""

    on_device = False

    def __init__(self, paths: list[str], labels: Tensor, info: dict):
        self.paths, self.labels, self.info = paths, labels, info

    def __len__(self) -> int:
        return len(self.paths)

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        """The samples `ids` (int64 [n]); an unreadable image is a SystemExit that names its file."""
        images = [read_image(self.paths[i], self.info["size"], self.info["channels"]) for i in ids.tolist()]
        return torch.stack(images), self.labels[ids]


def load(config: DataConfig, seed: int, device: torch.device) -> tuple:
    """The training and the validation source; `seed` decides the split."""
    if config.root is None:
        return load_digits(seed, device)
    if config.size < 8:
        raise SystemExit(f"--data.size is {config.size}: give at least 8 pixels.")
    return load_folder(config.root, config.size, seed)


def load_digits(seed: int, device: torch.device) -> tuple[TensorSource, ...]:
    """1797 handwritten digits of 8x8 pixels; their 17 grey levels become 0..255."""
    from sklearn import datasets  # slow to import, and a folder does not need it

    digits = datasets.load_digits()
    images = torch.from_numpy(digits.images * (255 / 16)).round().to(torch.uint8).unsqueeze(1)
    labels = torch.from_numpy(digits.target).long()
    info = {"channels": 1, "size": 8, "classes": [str(name) for name in digits.target_names]}
    parts = [(images[ids].to(device), labels[ids].to(device)) for ids in split(labels, seed)]
    return tuple(TensorSource(*part, info) for part in parts)


def load_folder(root: Path, size: int, seed: int) -> tuple[FolderSource, ...]:
    """The folder's own train/ and val/ (valid/, validation/, test/), or a stratified split of its images."""
    import_torchvision()  # its absence shows here, not in a worker
    held_out = [root / name for name in ("val", "valid", "validation", "test") if (root / name).is_dir()]
    own_split = held_out and (root / "train").is_dir()
    classes = find_images(root / "train" if own_split else root)
    info = {"channels": 3, "size": size, "classes": list(classes)}
    paths, labels = flatten(classes)
    if not own_split:
        return tuple(FolderSource([paths[i] for i in ids], labels[ids], info) for ids in split(labels, seed))
    held_out_classes = find_images(held_out[0])
    if odd := sorted(classes.keys() ^ held_out_classes.keys()):
        raise SystemExit(
            f"{root / 'train'} and {held_out[0]} must have the same class folders: "
            f"only one of them has {', '.join(odd)}."
        )
    return FolderSource(paths, labels, info), FolderSource(*flatten(held_out_classes), info)


def find_images(folder: Path) -> dict[str, list[str]]:
    """The image files of each class folder, both sorted. Other files and hidden ones are passed over."""
    if not folder.is_dir():
        raise SystemExit(f"The image folder {folder} {'is a file' if folder.exists() else 'does not exist'}.")
    classes = {}
    for directory in sorted(path for path in folder.glob("[!.]*") if path.is_dir()):
        files = [str(path) for path in directory.rglob("[!.]*") if path.suffix.lower() in SUFFIXES]
        if not files:
            raise SystemExit(f"The class folder {directory} holds no images: add some, or remove the folder.")
        classes[directory.name] = sorted(files)
    if len(classes) < 2:
        found = f"one class only ({', '.join(classes)})" if classes else "no class folders"
        raise SystemExit(f"{folder} holds {found}: give each class, of two at least, a sub-folder of images.")
    return classes


def flatten(classes: dict[str, list[str]]) -> tuple[list[str], Tensor]:
    """All paths, and their labels int64 [n]."""
    counts = torch.tensor([len(files) for files in classes.values()])
    paths = [path for files in classes.values() for path in files]
    return paths, torch.arange(len(counts)).repeat_interleave(counts)


def split(labels: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """Ids for training, and every fifth of each class for validation; a lone sample is for training."""
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    order = order[labels[order].argsort(stable=True)]  # class after class, each shuffled
    counts = labels.bincount()
    if counts.max() < 2:
        raise SystemExit("Each class has a single image, so none is left to validate on: add more.")
    rank = torch.arange(len(order)) - (counts.cumsum(0) - counts)[labels[order]]  # the place within the class
    return order[rank % 5 != 1], order[rank % 5 == 1]


def read_image(path: str, size: int, channels: int) -> Tensor:
    """A file's first frame as uint8 [channels, size, size]; a SystemExit names an unreadable file."""
    functional = import_torchvision()
    from PIL import Image, ImageOps  # comes with torchvision, whose own decoders are deprecated

    try:
        with Image.open(path) as image:
            if image.mode[0] in "IF":  # Pillow would cut such values at 255 in silence
                raise ValueError("it has more than 8 bits per channel")
            image.draft(None, (2 * size, 2 * size))  # a large JPEG is decoded at a fraction of its size
            if "transparency" in image.info:  # a palette's, which Pillow warns of otherwise
                image = image.convert("RGBA")
            image = ImageOps.exif_transpose(image).convert("RGB" if channels == 3 else "L")
    except Exception as error:  # a broken file makes Pillow raise nearly anything
        raise SystemExit(f"Cannot read the image {path}: {error}.") from None
    return functional.resize(functional.pil_to_tensor(image), [size, size], antialias=True)


def import_torchvision():
    """Its functional transforms: an optional dependency, and slow to import."""
    try:
        from torchvision.transforms.v2 import functional
    except ImportError:
        raise SystemExit('Reading image files needs torchvision: pip install -e ".[folder]"') from None
    return functional


def augment(batch: Batch, noise: Callable[[int], Tensor]) -> Batch:
    """Shift each image by up to an eighth of its size, zeros moving in, and mirror every second colour image.

    `noise(k)` gives uniform numbers in [0, 1), float32 [n, k], that depend on seed, epoch and sample alone.
    Whole pixels move, so nothing is blurred. The batch itself is not changed: it may be stored data.
    """
    images, labels = batch
    n, channels, height, width = images.shape
    reach = max(1, height // 8)
    draws = noise(3)
    shift = (draws[:, :2] * (2 * reach + 1)).long()  # 0 .. 2 * reach, into the padded images
    rows = torch.arange(height, device=images.device) + shift[:, :1]  # [n, height]
    columns = torch.arange(width, device=images.device) + shift[:, 1:]  # [n, width]
    if channels == 3:  # a mirrored digit would be no digit
        columns = torch.where(draws[:, 2:] < 0.5, columns.flip(1), columns)
    sample = torch.arange(n, device=images.device).view(n, 1, 1, 1)
    channel = torch.arange(channels, device=images.device).view(channels, 1, 1)
    padded = F.pad(images, (reach, reach, reach, reach))
    return padded[sample, channel, rows[:, None, :, None], columns[:, None, None, :]], labels
