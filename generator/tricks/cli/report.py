"""What `tricks new` says before its questions and after its work."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from tricks.project.new import Written


def introduce(destination: Path) -> None:
    """A few lines before Copier's prompts."""
    Console().print(
        Text.assemble(
            "A few questions, then a training project is written to ",
            (str(destination), "bold"),
            ".\nEnter takes what is shown. In a list the arrow keys move, the space bar ticks a box."
            "\nCtrl-C leaves without writing anything.\n",
        )
    )


def show(destination: Path, written: Written) -> None:
    """The files as a tree, and the commands to run next."""
    root = Tree(Text(f"{destination} ({len(written.files)} files)", style="bold"), guide_style="dim")
    folders = {Path(): root}
    for file in sorted(written.files, key=lambda path: (len(path.parts) == 1, path)):
        for folder in reversed(file.parents[:-1]):
            if folder not in folders:
                folders[folder] = folders[folder.parent].add(Text(f"{folder.name}/", style="bold"))
        folders[file.parent].add(Text(file.name))
    console = Console()
    console.print(root)
    console.print()
    console.print(Text(written.message.rstrip()), soft_wrap=True)
