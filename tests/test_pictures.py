"""Folders of pictures as people have them, read by the image task's data.py."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest
import torch
from PIL import Image

from tests.choices import ROOT

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def data() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pictures_data", ROOT / "template/tasks/image/data.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pictures(*folders: Path, number: int = 5) -> None:
    """Plain pictures of one grey level each."""
    for folder in folders:
        folder.mkdir(parents=True)
        for index in range(number):
            Image.new("RGB", (8, 8), (10 * index,) * 3).save(folder / f"{index}.png")


@pytest.mark.parametrize(
    ("training", "validation"),
    [
        ("train", "val"),
        ("training", "validation"),
        ("train", "dev"),
        ("train", "testing"),
        ("Train", "Val"),
        ("TRAIN", "Test"),
    ],
)
def test_parts_are_known_by_their_usual_names(data: ModuleType, tmp_path: Path, training: str, validation: str) -> None:
    pictures(tmp_path / training / "cat", tmp_path / training / "dog", number=4)
    pictures(tmp_path / validation / "cat", tmp_path / validation / "dog", number=3)
    sources = data.load(data.DataConfig(root=tmp_path), 0, CPU)
    assert [len(source) for source in sources] == [8, 6]
    assert sources[0].info["classes"] == ["cat", "dog"]
    for source, folder in zip(sources, (training, validation), strict=True):
        assert {Path(source.path(id)).parts[-3] for id in range(len(source))} == {folder}


@pytest.mark.parametrize(
    "folders",
    [("train2017", "val2017"), ("train_set", "test_set"), ("val", "test"), ("train", "training"), ("train", "heldout")],
)
def test_what_looks_like_a_part_is_never_a_class(data: ModuleType, tmp_path: Path, folders: tuple[str, str]) -> None:
    pictures(*(tmp_path / folder / name for folder in folders for name in ("cat", "dog")))
    with pytest.raises(SystemExit, match="would be taken for classes"):
        data.load(data.DataConfig(root=tmp_path), 0, CPU)


def test_a_train_is_also_a_vehicle(data: ModuleType, tmp_path: Path) -> None:
    pictures(tmp_path / "train", tmp_path / "trainer", tmp_path / "valley")
    assert data.load(data.DataConfig(root=tmp_path), 0, CPU)[0].info["classes"] == ["train", "trainer", "valley"]


@pytest.mark.parametrize("ground", [255, 40])
@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "L", "RGB"])
def test_a_transparent_picture_lies_on_the_ground(data: ModuleType, tmp_path: Path, mode: str, ground: int) -> None:
    """The left half is opaque and dark, the right half transparent over black."""
    left, right = {"RGBA": ((9, 9, 9, 255), (0, 0, 0, 0)), "LA": ((9, 255), (0, 0)), "RGB": ((9, 9, 9), (0, 0, 0))}.get(
        mode, (9, 0)
    )
    image = Image.new(mode, (16, 16), left)
    if mode == "P":
        image.putpalette([level for level in range(256) for _ in range(3)])
    image.paste(right, (8, 0, 16, 16))
    options = {"P": {"transparency": 0}, "L": {"transparency": 0}, "RGB": {"transparency": (0, 0, 0)}}.get(mode, {})
    image.save(tmp_path / "shape.png", **options)
    for channels in (3, 1):
        info = {"size": 16, "channels": channels, "ground": ground}
        pixels = data.read_image(str(tmp_path / "shape.png"), info)
        assert pixels.shape == (channels, 16, 16)
        assert (pixels[..., :7] == 9).all() and (pixels[..., 9:] == ground).all()


def test_what_is_left_out_is_counted(
    data: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures(tmp_path / "cat", tmp_path / "dog" / "deep")
    for name in ("cat/a.heic", "cat/b.HEIC", "cat/.DS_Store", "cat/notes"):
        (tmp_path / name).touch()
    (tmp_path / "cat" / "closed").mkdir()
    (tmp_path / "dog" / "ring").symlink_to(tmp_path / "dog")
    (tmp_path / "dog" / "lost.png").symlink_to(tmp_path / "nowhere.png")
    (tmp_path / "dog" / "linked.png").symlink_to(tmp_path / "cat" / "0.png")
    scan = os.scandir

    def scandir(folder: str) -> object:  # root may read everything, so that no mode closes a folder
        if Path(folder).name == "closed":
            raise PermissionError(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    sources = data.load(data.DataConfig(root=tmp_path), 0, CPU)
    assert sum(map(len, sources)) == 11
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    for words in ("2 x .heic", "1 x hidden", "1 x file without a suffix", "1 x unreadable folder"):
        assert words in said
    assert "1 x linked folder" in said and "1 x broken link" in said


def test_paths_of_any_kind_come_back_from_the_buffer(data: ModuleType) -> None:
    paths = ["a.png", "é/ü.png", os.fsdecode(b"\xff.png"), "x" * 300]
    source = data.FolderSource(paths, torch.arange(4), {})
    assert [source.path(id) for id in range(len(source))] == paths
