"""The best loop that we can write by hand for exactly this work, with the finite check and the accounting of ours."""

import math

import torch
import torch.nn.functional as F

from benchmarks import work as w

CHUNK = 16  # batches gathered by one indexing call


def train(work: w.Work) -> w.Outcome:
    data, _ = w.digits()
    model = w.build_model(work)
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=w.LR, weight_decay=w.WEIGHT_DECAY, fused=True)
    (group,) = optimizer.param_groups
    window = w.BATCH * work.accumulation
    step, epoch_loss = 0, 0.0
    pending: list[tuple[torch.Tensor, torch.Tensor]] = []
    for epoch in range(work.epochs):
        for ids in w.order(epoch).split(CHUNK * w.BATCH):
            images, labels = data.images.index_select(0, ids), data.labels.index_select(0, ids)
            for first in range(0, len(ids), window):
                optimizer.zero_grad()
                losses = []
                for start in range(first, first + window, w.BATCH):
                    inputs, targets = images[start : start + w.BATCH], labels[start : start + w.BATCH]
                    if work.bf16:
                        with torch.autocast("cpu", torch.bfloat16):
                            logits = model(inputs)
                    else:
                        logits = model(inputs)
                    loss = F.cross_entropy(logits.float(), targets, reduction="sum")
                    (loss / window).backward()
                    losses.append(loss.detach())
                norm = torch.nn.utils.clip_grad_norm_(parameters, w.MAX_NORM, foreach=True)
                group["lr"] = w.LR * work.factor(step)
                optimizer.step()
                step += 1
                pending.append((sum(losses[1:], losses[0]), norm))
                if step % 10 == 0:
                    epoch_loss += read(pending)
        epoch_loss += read(pending)
        w.evaluate(model, work)
    return w.Outcome(step, model)


def read(pending: list[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """The sum of the losses of the steps since the last call; stops at one that is not finite."""
    if not pending:
        return 0.0
    losses, norms = (torch.stack(values).tolist() for values in zip(*pending, strict=True))
    pending.clear()
    if not all(map(math.isfinite, losses + norms)):
        raise SystemExit("not finite")
    return sum(losses)
