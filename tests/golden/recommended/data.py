"""The data: scikit-learn's handwritten digits, or the images of a folder. Replace this file with your own.

The rest of the project uses `DataConfig`, `load`, `augment` and what a source offers: `on_device`, `info`,
`len()` and `fetch`. A batch is (images, labels): images uint8 [n, channels, size, size] in 0..255, labels
int64 [n]. The model scales the pixels: as uint8 they take a quarter of the memory, also in exports.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

Batch = tuple[Tensor, Tensor]
SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"}
TRAINING = ("train", "training")
VALIDATION = ("val", "valid", "validation", "dev", "test", "testing")  # the first of them that is there


@dataclass(frozen=True)
class DataConfig:
    root: Path | None = None
    """Folder with a sub-folder of images per class, or with them in train/ and val/ (default: digits)."""
    size: int = 32
    """Images of the folder are resized to this height and width, in pixels."""
    ground: int = 255
    """Transparent images are laid on this grey level: 0 is black, 255 is white."""


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
        # One buffer and where each path ends. Looking at a string writes to it (it counts its references), so
        # that each worker would get a copy of a list's memory: 100 MB and more for a million paths.
        encoded = [os.fsencode(path) for path in paths]
        self.buffer, self.ends = b"".join(encoded), torch.tensor([0, *map(len, encoded)]).cumsum(0)
        self.labels, self.info = labels, info

    def __len__(self) -> int:
        return len(self.labels)

    def path(self, index: int) -> str:
        start, end = self.ends[index : index + 2].tolist()
        return os.fsdecode(self.buffer[start:end])

    def fetch(self, ids: Tensor, epoch: int) -> Batch:
        """The samples `ids` (int64 [n]); an unreadable image is a SystemExit that names its file."""
        images = [read_image(self.path(index), self.info) for index in ids.tolist()]
        return torch.stack(images), self.labels[ids]


def load(config: DataConfig, seed: int, device: torch.device) -> tuple:
    """The training and the validation source; `seed` decides the split."""
    if config.root is None:
        return load_digits(seed, device)
    if config.size < 8:
        raise SystemExit(f"--data.size is {config.size}: give at least 8 pixels.")
    if not 0 <= config.ground <= 255:
        raise SystemExit(f"--data.ground is {config.ground}: give a grey level from 0 to 255.")
    return load_folder(config, seed)


def load_digits(seed: int, device: torch.device) -> tuple[TensorSource, ...]:
    """1797 handwritten digits of 8x8 pixels; their 17 grey levels become 0..255."""
    from sklearn import datasets  # slow to import, and a folder does not need it

    digits = datasets.load_digits()
    images = torch.from_numpy(digits.images * (255 / 16)).round().to(torch.uint8).unsqueeze(1)
    labels = torch.from_numpy(digits.target).long()
    info = {"channels": 1, "size": 8, "classes": [str(name) for name in digits.target_names]}
    parts = [(images[ids].to(device), labels[ids].to(device)) for ids in split(labels, seed)]
    return tuple(TensorSource(*part, info) for part in parts)


def load_folder(config: DataConfig, seed: int) -> tuple[FolderSource, ...]:
    """The folder's own training and validation part (see `find_parts`), or a stratified split of its images."""
    import_torchvision()  # its absence shows here, not in a worker
    left_out: Counter[str] = Counter()
    parts = [find_images(folder, left_out) for folder in find_parts(config.root)]
    # One of several processes says it, where a launcher started them.
    if left_out and os.environ.get("RANK", "0") == "0":
        print(f"Left out in {config.root}: {', '.join(f'{n} x {what}' for what, n in left_out.items())}.")
    info = {"channels": 3, "size": config.size, "ground": config.ground, "classes": list(parts[0])}
    if len(parts) == 2:
        if odd := sorted(parts[0].keys() ^ parts[1].keys()):
            raise SystemExit(
                f"The training and the validation folder in {config.root} must have the same class folders: "
                f"only one of them has {', '.join(odd)}."
            )
        return tuple(FolderSource(*flatten(classes), info) for classes in parts)
    paths, labels = flatten(parts[0])
    return tuple(FolderSource([paths[index] for index in ids], labels[ids], info) for ids in split(labels, seed))


def find_parts(root: Path) -> list[Path]:
    """The folder's training and validation part, by their usual names in any case; or the folder alone.

    Raises SystemExit where folders look like such parts and are none: as classes the model would learn to tell
    them apart. A class called "train" passes, alone and with its images directly in it.
    """
    if not root.is_dir():
        raise SystemExit(f"The image folder {root} {'is a file' if root.exists() else 'does not exist'}.")
    folders = sorted(path for path in root.glob("[!.]*") if path.is_dir())
    training = [path for path in folders if path.name.lower() in TRAINING]
    validation = [path for name in VALIDATION for path in folders if path.name.lower() == name]
    if len(training) == 1 and validation:
        return [training[0], validation[0]]
    pattern = re.compile(rf"({'|'.join(TRAINING + VALIDATION)})(?![a-z])", re.IGNORECASE)  # also val2017, test_set
    odd = [path for path in folders if pattern.match(path.name)]
    is_class = len(odd) == 1 and any(path.suffix.lower() in SUFFIXES for path in odd[0].iterdir())
    if odd and not is_class:
        raise SystemExit(
            f"{', '.join(path.name for path in odd)} in {root} would be taken for classes: name one folder train "
            "and one val, or, where they are classes, rename them."
        )
    return [root]


def find_images(folder: Path, left_out: Counter[str]) -> dict[str, list[str]]:
    """The image files of each class folder, both sorted; `left_out` counts what is passed over."""
    classes = {}
    for directory in sorted(path for path in folder.glob("[!.]*") if path.is_dir()):
        files = sorted(walk(directory, left_out))
        if not files:
            raise SystemExit(f"The class folder {directory} holds no images: add some, or remove the folder.")
        classes[directory.name] = files
    if len(classes) < 2:
        found = f"one class only ({', '.join(classes)})" if classes else "no class folders"
        raise SystemExit(f"{folder} holds {found}: give each class, of two at least, a sub-folder of images.")
    return classes


def walk(folder: str | Path, left_out: Counter[str]) -> Iterator[str]:
    """The image files below a folder. Linked files are followed, linked folders are not: they may form a ring."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        left_out["unreadable folder"] += 1
        return
    for entry in entries:
        suffix = os.path.splitext(entry.name)[1].lower()
        if entry.name.startswith("."):
            left_out["hidden"] += 1
        elif entry.is_dir(follow_symlinks=False):
            yield from walk(entry.path, left_out)
        elif entry.is_dir():
            left_out["linked folder"] += 1
        elif suffix not in SUFFIXES:
            left_out[suffix or "file without a suffix"] += 1
        elif not entry.is_file():
            left_out["broken link"] += 1
        else:
            yield entry.path


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


def read_image(path: str, info: dict) -> Tensor:
    """A file's first frame as uint8 [channels, size, size]; a SystemExit names an unreadable file."""
    size = info["size"]
    functional = import_torchvision()
    from PIL import Image, ImageOps  # comes with torchvision, whose own decoders are deprecated

    try:
        with Image.open(path) as image:
            if image.mode[0] in "IF":  # Pillow would cut such values at 255 in silence
                raise ValueError("it has more than 8 bits per channel")
            image.draft(None, (2 * size, 2 * size))  # a large JPEG is decoded at a fraction of its size
            image = ImageOps.exif_transpose(image)
            if image.has_transparency_data:  # Pillow would show what lies under it, mostly black
                level = info.get("ground", 255)
                ground = Image.new("RGBA", image.size, (level, level, level, 255))
                image = Image.alpha_composite(ground, image.convert("RGBA"))
            image = image.convert("RGB" if info["channels"] == 3 else "L")
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
