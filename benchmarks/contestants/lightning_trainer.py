"""Lightning's Trainer: as it comes, or with logger, checkpoints, bar and summary off."""

import logging
import tempfile
import warnings
from typing import Any

import lightning as L
import torch
from torch import Tensor

from benchmarks import work as w
from benchmarks.sampler import loader, validation

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", module="lightning")
OFF = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}


class Module(L.LightningModule):
    def __init__(self, work: w.Work) -> None:
        super().__init__()
        self.work, self.model = work, w.build_model(work)
        self.right = 0

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        return w.mean_loss(self.model(batch[0]), batch[1])

    def on_validation_epoch_start(self) -> None:
        self.right = 0

    def validation_step(self, batch: tuple[Tensor, Tensor], index: int) -> None:
        self.right += int((self.model(batch[0]).argmax(1) == batch[1]).sum())

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=w.LR, weight_decay=w.WEIGHT_DECAY)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, self.work.factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def train(work: w.Work, own_path: bool = True, **options: Any) -> w.Outcome:
    module = Module(work)
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=work.epochs,
            accelerator="cpu",
            precision="bf16-mixed" if work.bf16 else "32-true",
            accumulate_grad_batches=work.accumulation,
            gradient_clip_val=w.MAX_NORM,
            use_distributed_sampler=False,
            default_root_dir=folder,
            **options,
        )
        trainer.fit(module, loader(own_path), validation(own_path))
    return w.Outcome(trainer.global_step, module.model)
