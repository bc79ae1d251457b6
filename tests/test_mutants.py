"""The table of mutants fits the template as it is; `make mutants` runs them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.choices import TECHNIQUES
from tests.mutants import MUTANTS, Mutant, plant
from tricks.template.rendering import Template


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_can_be_planted(template: Template, tmp_path: Path, mutant: Mutant) -> None:
    plant(template, mutant, tmp_path)
    for proof in mutant.proofs.split():
        assert (tmp_path / "tests" / f"test_{proof}.py").exists()


def test_every_technique_has_three() -> None:
    broken = Counter(technique for mutant in MUTANTS for technique in mutant.techniques)
    assert not [technique for technique in TECHNIQUES if broken[technique] < 3]
