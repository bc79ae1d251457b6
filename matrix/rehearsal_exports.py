"""Exports the smallest project of each task once in the warm process, before its first fork (see rehearsal.py)."""

from __future__ import annotations

import io
import warnings
from typing import Any

import torch

from matrix import rehearsal

TRACED = 11  # as export.py has it


def export(model: Any, batch: Any, module: Any) -> None:
    model.eval()
    example = tuple(x[torch.arange(TRACED) % len(x)] for x in module.example_input(batch))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jit: Any = torch.jit
        jit.trace(model, example, check_trace=False)
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(model, example, dynamic_shapes=tuple({0: batch} for _ in example))
    torch.onnx.export(program, dynamo=True, dynamic_shapes=({0: "batch"},), verbose=False)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    torch.export.load(file).module()


rehearsal.each_task(export)
rehearsal.settle()
