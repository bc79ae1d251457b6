"""Hugging Face Accelerate: the tutorial's loop in `accelerator.accumulate`."""

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration

from benchmarks import work as w
from benchmarks.sampler import loader


def train(work: w.Work, own_path: bool = True) -> w.Outcome:
    accelerator = Accelerator(
        cpu=True,
        mixed_precision="bf16" if work.bf16 else "no",
        gradient_accumulation_steps=work.accumulation,
        dataloader_config=DataLoaderConfiguration(use_seedable_sampler=False),
    )
    bare = w.build_model(work)
    optimizer = torch.optim.AdamW(bare.parameters(), lr=w.LR, weight_decay=w.WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, work.factor)
    batches = loader(own_path)
    model, optimizer, schedule = accelerator.prepare(bare, optimizer, schedule)
    if own_path:
        batches = accelerator.prepare(batches)
    steps = 0
    for _ in range(work.epochs):
        running = 0.0
        for images, labels in batches:
            with accelerator.accumulate(model):
                loss = w.mean_loss(model(images), labels)
                accelerator.backward(loss)
                running += loss.item()
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), w.MAX_NORM)
                    steps += 1
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
        w.evaluate(bare, work)
    return w.Outcome(steps, bare)
