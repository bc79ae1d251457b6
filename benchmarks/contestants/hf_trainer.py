"""Hugging Face's Trainer, with its reports, checkpoints and bar off."""

import tempfile
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

from benchmarks import work as w
from benchmarks.sampler import Ordered, loader, validation

transformers.logging.set_verbosity_error()


class Samples(Dataset[dict[str, Tensor]]):
    def __init__(self, digits: w.Digits) -> None:
        self.digits = digits

    def __len__(self) -> int:
        return len(self.digits.labels)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"images": self.digits.images[index], "labels": self.digits.labels[index]}


class Wrapped(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model(images)
        return {"loss": w.mean_loss(logits, labels), "logits": logits}


class Named:
    """An iterable of batches as the dictionaries that the Trainer takes."""

    def __init__(self, batches: Any) -> None:
        self.batches = batches

    def __iter__(self) -> Any:
        return ({"images": images, "labels": labels} for images, labels in self.batches)

    def __len__(self) -> int:
        return len(self.batches)


class Own(Trainer):
    own_path = True

    def _get_train_sampler(self, *arguments: Any) -> Ordered:
        return Ordered()

    def get_train_dataloader(self) -> Any:
        return super().get_train_dataloader() if self.own_path else Named(loader(False))

    def get_eval_dataloader(self, *arguments: Any) -> Any:
        return super().get_eval_dataloader(*arguments) if self.own_path else Named(validation(False))


def train(work: w.Work, own_path: bool = True) -> w.Outcome:
    model = w.build_model(work)
    train_set, val_set = w.digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=w.LR, weight_decay=w.WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, work.factor)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=work.epochs,
            per_device_train_batch_size=w.BATCH,
            per_device_eval_batch_size=w.BATCH,
            gradient_accumulation_steps=work.accumulation,
            max_grad_norm=w.MAX_NORM,
            bf16=work.bf16,
            use_cpu=True,
            eval_strategy="epoch",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
            dataloader_pin_memory=False,
        )
        Own.own_path = own_path
        trainer = Own(
            Wrapped(model),
            arguments,
            train_dataset=Samples(train_set),
            eval_dataset=Samples(val_set),
            optimizers=(optimizer, schedule),
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    return w.Outcome(trainer.state.global_step, model)
