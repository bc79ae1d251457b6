"""PyTorch-Ignite: an Engine around a training step, an evaluator after each epoch."""

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.metrics import Accuracy
from torch import Tensor

from benchmarks import work as w
from benchmarks.sampler import loader, validation


def train(work: w.Work, own_path: bool = True) -> w.Outcome:
    model = w.build_model(work)
    optimizer = torch.optim.AdamW(model.parameters(), lr=w.LR, weight_decay=w.WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, work.factor)
    steps = 0

    def step(engine: Engine, batch: tuple[Tensor, Tensor]) -> float:
        nonlocal steps
        model.train()
        with torch.autocast("cpu", torch.bfloat16, enabled=work.bf16):
            logits = model(batch[0])
        loss = w.mean_loss(logits, batch[1])
        (loss / work.accumulation).backward()
        if engine.state.iteration % work.accumulation == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), w.MAX_NORM)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            steps += 1
        return loss.item()

    trainer = Engine(step)
    evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy()}, amp_mode=None)
    held_out = validation(own_path)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(held_out))
    trainer.run(loader(own_path), max_epochs=work.epochs)
    return w.Outcome(steps, model)
