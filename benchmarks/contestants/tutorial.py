"""The loop of the tutorials: TensorDataset, DataLoader, plain AdamW, LambdaLR, `.item()` for the running loss."""

import torch
from torch.utils.data import DataLoader, TensorDataset

from benchmarks import work as w
from benchmarks.sampler import Ordered


def train(work: w.Work) -> w.Outcome:
    data, _ = w.digits()
    model = w.build_model(work)
    optimizer = torch.optim.AdamW(model.parameters(), lr=w.LR, weight_decay=w.WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, work.factor)
    sampler = Ordered()
    loader = DataLoader(TensorDataset(data.images, data.labels), w.BATCH, sampler=sampler)
    steps = 0
    for _ in range(work.epochs):
        running = 0.0
        for index, (images, labels) in enumerate(loader, 1):
            with torch.autocast("cpu", torch.bfloat16, enabled=work.bf16):
                logits = model(images)
            loss = w.mean_loss(logits, labels)
            (loss / work.accumulation).backward()
            running += loss.item()
            if index % work.accumulation == 0:
                torch.nn.utils.clip_grad_norm_(model.parameters(), w.MAX_NORM)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
                steps += 1
        w.evaluate(model, work)
    return w.Outcome(steps, model)
