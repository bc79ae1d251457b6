"""Lightning Fabric: the tutorial's loop with its model, optimizer and loader set up by Fabric."""

import torch
from lightning.fabric import Fabric

from benchmarks import work as w
from benchmarks.sampler import loader


def train(work: w.Work, own_path: bool = True) -> w.Outcome:
    fabric = Fabric(accelerator="cpu", devices=1, precision="bf16-mixed" if work.bf16 else "32-true")
    bare = w.build_model(work)
    optimizer = torch.optim.AdamW(bare.parameters(), lr=w.LR, weight_decay=w.WEIGHT_DECAY)
    model, optimizer = fabric.setup(bare, optimizer)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, work.factor)
    batches = loader(own_path)
    if own_path:
        batches = fabric.setup_dataloaders(batches, use_distributed_sampler=False)
    steps = 0
    for _ in range(work.epochs):
        running = 0.0
        for index, (images, labels) in enumerate(batches, 1):
            waiting = index % work.accumulation != 0
            with fabric.no_backward_sync(model, enabled=waiting):
                loss = w.mean_loss(model(images), labels)
                fabric.backward(loss / work.accumulation)
            running += loss.item()
            if not waiting:
                fabric.clip_gradients(model, optimizer, max_norm=w.MAX_NORM)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                steps += 1
        w.evaluate(bare, work)
    return w.Outcome(steps, bare)
