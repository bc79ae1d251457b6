"""Breaks each technique on purpose: a proof of the generated project must notice every time. make mutants

Each mutant is one replacement in one file of a rendered project; the named proofs then have to fail. A mutant that they
let pass is a fault of the proofs.
"""

import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import warm
from tests.choices import ROOT
from tricks.template.rendering import Template, write


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    old: str
    new: str
    proofs: str
    """Test files that have to fail, without `tests/test_` and `.py`."""
    techniques: tuple[str, ...] = ()
    answers: dict[str, Any] = field(default_factory=dict)


def given(*techniques: str, **answers: Any) -> dict[str, Any]:
    return {"techniques": techniques, "answers": answers}


PLAIN = given()
ACCUMULATION = given("accumulation")
AMP = given("amp", "accumulation", "clipping", "scheduler")
VALUE = given("amp", "clipping", clip="value")
CLIPPING = given("clipping")
SCHEDULER = given("scheduler")
PLATEAU = given("scheduler", schedule="plateau")
GROUPS = given("param_groups")
DDP = given("ddp")
DDP_ACCUMULATION = given("ddp", "accumulation")
COMPILE = given("compile")
EXPORT = given("export", export_formats=["torch_export", "torchscript"])
PROFILER = given("profiler")
DEBUG = given("debug", "amp")
CACHE = given("cache")
AUGMENTATION = given("augmentation")
TENSORBOARD = given(tracker="tensorboard")
INIT_FROM = given("init_from")
MUON = given(optimizer="muon")

MUTANTS = [
    # ---- accumulation
    Mutant(
        "a window is divided by its first micro-batch",
        "train.py",
        "sum(count(micro.batch) for micro in window)",
        "count(window[0].batch)",
        "accumulation",
        **ACCUMULATION,
    ),
    Mutant(
        "each micro-batch is averaged by itself",
        "train.py",
        "(total / items)",
        "(total / count(micro.batch) / len(window))",
        "accumulation",
        **ACCUMULATION,
    ),
    Mutant(
        "the gradient of the step before is kept",
        "train.py",
        "    run.optimizer.zero_grad()\n",
        "",
        "accumulation",
        **ACCUMULATION,
    ),
    Mutant(
        "the last micro-batch of a window is left out",
        "train.py",
        "    for micro in window:\n",
        "    for micro in window[: max(1, len(window) - 1)]:\n",
        "accumulation",
        **ACCUMULATION,
    ),
    Mutant(
        "a short tail is dropped",
        "loader.py",
        "    while window := list(islice(micro_batches, steps)):\n",
        "    while len(window := list(islice(micro_batches, steps))) == steps:\n",
        "accumulation resume",
        **ACCUMULATION,
    ),
    Mutant(
        "steps per epoch are rounded down",
        "train.py",
        "-(-len(train_loader) // config.accumulation.steps)",
        "max(1, len(train_loader) // config.accumulation.steps)",
        "accumulation",
        **ACCUMULATION,
    ),
    Mutant(
        "a resumed epoch skips steps instead of micro-batches",
        "train.py",
        "progress.epoch_step * size",
        "progress.epoch_step",
        "resume",
        **ACCUMULATION,
    ),
    # ---- mixed precision
    Mutant(
        "clipping sees scaled gradients",
        "train.py",
        "    run.scaler.unscale_(run.optimizer)",
        "    pass",
        "amp",
        **AMP,
    ),
    Mutant(
        "clipping by value sees scaled gradients",
        "train.py",
        "    run.scaler.unscale_(run.optimizer)",
        "    pass",
        "amp",
        **VALUE,
    ),
    Mutant(
        "the sum is scaled twice",
        "train.py",
        "run.scaler.scale(total / items)",
        "run.scaler.scale(run.scaler.scale(total / items))",
        "amp",
        **AMP,
    ),
    Mutant(
        "the sum is not scaled",
        "train.py",
        "run.scaler.scale(total / items)",
        "(total / items)",
        "amp",
        **AMP,
    ),
    Mutant(
        "the schedule moves on where fp16 overflowed",
        "train.py",
        "        run.progress.skipped += not norm.isfinite()\n",
        "        pass\n",
        "amp",
        **AMP,
    ),
    Mutant(
        "the optimizer steps past the scaler",
        "train.py",
        "run.scaler.step(run.optimizer)",
        "run.optimizer.step()",
        "amp",
        **AMP,
    ),
    Mutant("the scale is never updated", "train.py", "    run.scaler.update()\n", "", "amp", **AMP),
    Mutant(
        "bf16 is scaled as well",
        "amp.py",
        "enabled=dtype == torch.float16",
        "enabled=dtype is not None",
        "amp",
        **AMP,
    ),
    Mutant("the scaler is not saved", "run.py", '            "scaler": self.scaler,\n', "", "amp", **AMP),
    # ---- clipping
    Mutant(
        "the norm after clipping is logged",
        "clipping.py",
        "    return norm\n",
        "    return nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])\n",
        "clipping",
        **CLIPPING,
    ),
    Mutant(
        "nothing is clipped",
        "train.py",
        "clip(run.parameters(), run.config.clipping)",
        "clip([torch.zeros(1)], run.config.clipping)",
        "clipping",
        **CLIPPING,
    ),
    Mutant(
        "each parameter is clipped by itself",
        "clipping.py",
        "        nn.utils.clip_grads_with_norm_(parameters, config.max_norm, norm)\n",
        "        for parameter in parameters:\n            nn.utils.clip_grad_norm_([parameter], config.max_norm)\n",
        "clipping",
        **CLIPPING,
    ),
    # ---- schedule
    Mutant(
        "the rates are never set",
        "train.py",
        "    set_rates(run.optimizer, run.progress, run.config.schedule)\n",
        "",
        "schedule",
        **SCHEDULER,
    ),
    Mutant(
        "the rate is that of the step after",
        "schedule.py",
        "share = factor(progress.step, ",
        "share = factor(progress.step + 1, ",
        "schedule",
        **SCHEDULER,
    ),
    Mutant(
        "the curve ends a step early",
        "schedule.py",
        "max(total_steps - 1 - warmup, 1)",
        "max(total_steps - 2 - warmup, 1)",
        "schedule",
        **SCHEDULER,
    ),
    Mutant(
        "a resumed run begins its curve again",
        "resume.py",
        '.keys() - {"total_steps", "steps_per_epoch"}',
        '.keys() - {"total_steps", "steps_per_epoch", "step"}',
        "schedule",
        **SCHEDULER,
    ),
    Mutant(
        "another length is taken in silence",
        "schedule.py",
        "    if not allowed:\n",
        "    if False:\n",
        "schedule",
        **SCHEDULER,
    ),
    Mutant(
        "all groups get one rate",
        "schedule.py",
        'group.setdefault("initial_lr", group["lr"]) * share',
        'optimizer.param_groups[0].setdefault("initial_lr", group["lr"]) * share',
        "schedule",
        **SCHEDULER,
    ),
    Mutant(
        "plateau looks at nothing that changes",
        "train.py",
        "run.schedule.step(scores[METRIC])",
        "run.schedule.step(progress.step * -1.0)",
        "schedule",
        **PLATEAU,
    ),
    Mutant(
        "plateau forgets its count on resume",
        "run.py",
        '            "schedule": self.schedule,\n',
        "",
        "schedule resume",
        **PLATEAU,
    ),
    # ---- groups
    Mutant(
        "a group is left out",
        "groups.py",
        "for name in sorted(members)\n",
        "for name in sorted(members)[1:]\n",
        "groups",
        **GROUPS,
    ),
    Mutant(
        "every group decays",
        "groups.py",
        "0.0 if name in config.no_decay else weight_decay",
        "weight_decay",
        "groups",
        **GROUPS,
    ),
    Mutant(
        "moments land on whatever parameter is there",
        "checkpoint.py",
        "names(state) != names(part.state_dict())",
        "False",
        "groups",
        **GROUPS,
    ),
    Mutant(
        "a group's own rate is ignored",
        "groups.py",
        "lr * config.lr_scale.get(name, 1.0)",
        "lr",
        "groups",
        **GROUPS,
    ),
    # ---- several processes
    Mutant(
        "the mean of the ranks' means",
        "train.py",
        "items = distributed.count_over_ranks(sum(micro.weight * count(micro.batch) for micro in window), run.device)",
        "items = torch.as_tensor(sum(count(micro.batch) for micro in window)) * distributed.world_size()",
        "distributed",
        **DDP_ACCUMULATION,
    ),
    Mutant(
        "the average of DDP is not made a sum",
        "train.py",
        "total * (distributed.world_size() / items)",
        "total / items",
        "distributed",
        **DDP,
    ),
    Mutant(
        "a repeated sample counts",
        "train.py",
        "        total = 0 * total\n",
        "        pass\n",
        "distributed",
        **DDP,
    ),
    Mutant(
        "no_sync around the last micro-batch too",
        "train.py",
        "micro is window[-1])",
        "False)",
        "distributed",
        **DDP_ACCUMULATION,
    ),
    Mutant(
        "the bare model trains: nothing is summed",
        "train.py",
        "loss(run.replica, batch)",
        "loss(run.model, batch)",
        "distributed",
        **DDP,
    ),
    Mutant(
        "every rank sees every sample",
        "loader.py",
        "share = ids[rank() :: world_size()].contiguous()",
        "share = ids",
        "distributed",
        **DDP,
    ),
    Mutant(
        "only the own samples are evaluated",
        "evaluation.py",
        "in all_gather(tree_map(Tensor.cpu, totals))",
        "in [tree_map(Tensor.cpu, totals)]",
        "distributed",
        **DDP,
    ),
    Mutant(
        "each rank evaluates its own buffers",
        "evaluation.py",
        "    broadcast_buffers(run.model)\n",
        "",
        "distributed",
        **DDP,
    ),
    Mutant(
        "a rank stops alone",
        "train.py",
        "asked = vote.largest(max(stop.number, int(timer.over())), at_once=evaluating or saving)",
        "asked = stop.number",
        "distributed",
        **DDP,
    ),
    # ---- resume, loader, log
    Mutant(
        "the order is that of the first epoch",
        "loader.py",
        "self.seed * 1_000_003 + epoch",
        "self.seed * 1_000_003",
        "training",
        **PLAIN,
    ),
    Mutant(
        "workers fetch for the first epoch",
        "loader.py",
        "self.workers.batches(((epoch, ids.numpy()) for ids in parts), stop)",
        "self.workers.batches(((0, ids.numpy()) for ids in parts), stop)",
        "loader",
        **CACHE,
    ),
    Mutant(
        "a resumed epoch begins again",
        "train.py",
        "loader.epoch(progress.epoch, progress.epoch_step, stop)",
        "loader.epoch(progress.epoch, 0, stop)",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "the optimizer is not saved",
        "run.py",
        '            "optimizer": self.optimizer,\n',
        "",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "the best checkpoint holds other weights than those that were evaluated",
        "train.py",
        'save_as("best", {"model": run.model})',
        'save_as("best", {"model": build(config, constants["info"], device, steps_per_epoch).model})',
        "training",
        **PLAIN,
    ),
    Mutant(
        "the best score is forgotten on resume",
        "resume.py",
        '.keys() - {"total_steps", "steps_per_epoch"}',
        '.keys() - {"total_steps", "steps_per_epoch", "best"}',
        "resume",
        **PLAIN,
    ),
    Mutant(
        "the epoch's sums are forgotten on resume",
        "resume.py",
        '.keys() - {"total_steps", "steps_per_epoch"}',
        '.keys() - {"total_steps", "steps_per_epoch", "loss_sum"}',
        "resume",
        **PLAIN,
    ),
    Mutant(
        "rows after the checkpoint stay",
        "log.py",
        '        if row["step"] <= step:\n',
        "        if True:\n",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "a flipped byte is not noticed",
        "run_folder.py",
        "archive.testzip() is None",
        "archive.namelist()",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "other settings are taken in silence",
        "resume.py",
        "elif option not in free and before != now:",
        "elif False:",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "other data are taken in silence",
        "resume.py",
        "    if changes and not allowed:\n",
        "    if False:\n",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "other labels are taken in silence",
        "resume.py",
        "if before[name] != now.get(name)]",
        "if name not in now]",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "a run with other data goes on in the middle of an epoch",
        "resume.py",
        "progress.epoch_step = progress.steps_per_epoch  #",
        "pass  #",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "the steps made with other data are forgotten",
        "resume.py",
        "progress.total_steps += progress.shift",
        "pass",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "no checkpoint by the clock",
        "train.py",
        "if stopped or saving or timer.over():",
        "if stopped or saving:",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "one checkpoint too few is kept",
        "checkpoint.py",
        "range(1, keep + 1)",
        "range(1, keep)",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "two runs write into one folder",
        "run_folder.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_UN",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "runs of one second share a folder",
        "run_folder.py",
        "            run_dir.mkdir(parents=True)\n",
        "            run_dir.mkdir(parents=True, exist_ok=True)\n",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "a switch that is on by default comes back off",
        "arguments.py",
        "if part else",
        "if not part else",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "an evaluation that was cut short is left out",
        "train.py",
        "if progress.due(config.eval_every) and progress.evaluated < progress.step:",
        "if False:",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "the mean of the batches' means is scored",
        "scores.py",
        "before[1] + items",
        "before[1]",
        "training",
        **PLAIN,
    ),
    Mutant(
        "the epoch's loss is the mean of the steps' means",
        "log.py",
        "                self.progress.loss_sum += loss_sum\n                self.progress.items += count\n",
        "                self.progress.loss_sum += loss_sum / count\n                self.progress.items += 1\n",
        "training",
        **PLAIN,
    ),
    Mutant(
        "a checkpoint is before its rows",
        "log.py",
        "        self.read()\n        self.file.write()\n",
        "        self.read()\n",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "a checkpoint is before the steps that it counts are read",
        "log.py",
        "        self.read()\n        self.file.write()\n",
        "        self.file.write()\n",
        "resume training",
        **PLAIN,
    ),
    Mutant(
        "an epoch never ends",
        "train.py",
        "            progress.next_epoch()\n",
        "            progress.epoch_step = 0\n",
        "training resume",
        **PLAIN,
    ),
    Mutant(
        "the steps end with the epoch",
        "train.py",
        "            if progress.step == progress.total_steps:\n                return\n",
        "",
        "training",
        **PLAIN,
    ),
    Mutant(
        "the random numbers of NumPy are not resumed",
        "run.py",
        "        numpy.random.set_state((name, words.numpy(), *rest))\n",
        "        pass\n",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "the random numbers of NumPy are not seeded",
        "run.py",
        "        numpy.random.seed(seed)\n",
        "        pass\n",
        "resume",
        **PLAIN,
    ),
    Mutant(
        "a loss that is not finite goes on",
        "log.py",
        "            if not finite:\n",
        "            if False:\n",
        "training",
        **PLAIN,
    ),
    Mutant(
        "evaluation leaves the model in eval mode",
        "evaluation.py",
        "    training_mode(run.model)\n",
        "",
        "training",
        **PLAIN,
    ),
    # ---- compile
    Mutant(
        "the compiled wrapper is saved",
        "run.py",
        "    compile_model(model, config.compile, device)\n",
        "    model = torch.compile(model)\n",
        "compiling",
        **COMPILE,
    ),
    Mutant(
        "each batch size is compiled anew",
        "compiling.py",
        "model.compile(mode=config.mode)",
        "model.compile(mode=config.mode, dynamic=False)",
        "compiling",
        **COMPILE,
    ),
    Mutant(
        "nothing is compiled",
        "compiling.py",
        "    model.compile(mode=config.mode)\n",
        "    return\n",
        "compiling",
        **COMPILE,
    ),
    Mutant(
        "a missing compiler ends the run",
        "compiling.py",
        "    except Exception as error:",
        "    except ZeroDivisionError as error:",
        "compiling",
        **COMPILE,
    ),
    # ---- export
    Mutant(
        "train mode is exported",
        "export.py",
        "model = copy.deepcopy(model).cpu().eval()",
        "model = model.cpu().eval()",
        "export",
        **EXPORT,
    ),
    Mutant(
        "one batch size only",
        "export.py",
        "tuple({0: batch} for _ in example)",
        "tuple(None for _ in example)",
        "export",
        **EXPORT,
    ),
    Mutant(
        "a file that differs stays",
        "export.py",
        "        export.difference = check(exported, model, example)\n",
        "",
        "export",
        **EXPORT,
    ),
    Mutant(
        "an export moves the random numbers",
        "export.py",
        "            with torch.random.fork_rng(devices=[]):\n",
        "            torch.rand(1)\n            if True:\n",
        "export",
        **EXPORT,
    ),
    # ---- profiler
    Mutant(
        "the profiler is never stepped", "profiling.py", "        self.profile.step()\n", "", "profiling", **PROFILER
    ),
    Mutant(
        "it goes on when its steps are recorded",
        "profiling.py",
        "self.config.warmup + self.config.active:\n            self.stop()\n",
        "self.config.warmup + self.config.active:\n            pass\n",
        "profiling",
        **PROFILER,
    ),
    Mutant("it begins anew", "profiling.py", ", repeat=1)", ")", "profiling", **PROFILER),
    Mutant(
        "a short run is not told",
        "profiling.py",
        "        if nothing:\n            print(",
        "        if False:\n            print(",
        "profiling",
        **PROFILER,
    ),
    Mutant(
        "a crash loses the trace",
        "profiling.py",
        "        ending.stop()\n",
        "        del ending\n",
        "profiling",
        **PROFILER,
    ),
    # ---- debug
    Mutant(
        "hooks stay",
        "debug.py",
        "            handle.remove()\n",
        "            pass\n",
        "debug",
        **DEBUG,
    ),
    Mutant(
        "hooks change the output",
        "debug.py",
        "                values = outputs[0].detach().float()\n",
        "                values = outputs[0].detach().mul_(1.001).float()\n",
        "debug",
        **DEBUG,
    ),
    Mutant(
        "an overflow of fp16 ends the run",
        "debug.py",
        "            if self.fp16:\n",
        "            if False:\n",
        "debug",
        **DEBUG,
    ),
    Mutant(
        "anomaly mode goes on after the run",
        "debug.py",
        "            torch.autograd.set_detect_anomaly(False)\n",
        "            pass\n",
        "debug",
        **DEBUG,
    ),
    # ---- cache and augmentation
    Mutant(
        "each worker has a cache of its own",
        "cache.py",
        "shared=True",
        "shared=False",
        "cache",
        **CACHE,
    ),
    Mutant(
        "the cache hands out its own memory",
        "cache.py",
        "            return self.nest(part.index_select(0, ids) for part in self.store)\n",
        "            return self.nest(part[int(ids[0]) : int(ids[0]) + len(ids)] for part in self.store)\n",
        "cache",
        **CACHE,
    ),
    Mutant(
        "nothing is ever kept",
        "cache.py",
        "            self.filled[kept] = True\n",
        "            pass\n",
        "cache",
        **CACHE,
    ),
    Mutant(
        "random samples are frozen",
        "cache.py",
        "    if not all(torch.equal(bits(one), bits(other)) for one, other in pairs):\n",
        "    if False:\n",
        "cache",
        **CACHE,
    ),
    Mutant(
        "every epoch is augmented alike",
        "augmentation.py",
        "for word in (seed, epoch):",
        "for word in (seed,):",
        "augmentation",
        **AUGMENTATION,
    ),
    # ---- the way of the data
    Mutant(
        "a batch brings along what it is a view of",
        "workers.py",
        "else tensor.clone()",
        "else tensor",
        "loader",
        **PLAIN,
    ),
    Mutant(
        "the last batch of an epoch may be a lone sample",
        "loader.py",
        "shared = 2 if self.shuffle and len(self) > 1 else 0",
        "shared = 0",
        "loader",
        **PLAIN,
    ),
    Mutant(
        "a worker that hangs is waited for",
        "workers.py",
        "if waited < self.timeout:",
        "if True:",
        "loader",
        **PLAIN,
    ),
    Mutant(
        "a killed worker is waited for",
        "workers.py",
        "or type(error) in (EOFError, ConnectionResetError):",
        "and False:",
        "loader",
        **PLAIN,
    ),
    Mutant(
        "a run that gets no batch is lost",
        "train.py",
        "    except NoBatch:",
        "    except ZeroDivisionError:",
        "loader",
        **PLAIN,
    ),
    Mutant(
        "workers rest while a window is computed",
        "loader.py",
        "prefetch = max(prefetch, -(-window // number) + 1)",
        "pass",
        "accumulation",
        **ACCUMULATION,
    ),
    Mutant(
        "the place in the batch decides",
        "augmentation.py",
        "keys = mix(ids.to(device, non_blocking=True) ^ key)[:, None]",
        "keys = mix(torch.arange(len(ids), device=device) ^ key)[:, None]",
        "augmentation",
        **AUGMENTATION,
    ),
    Mutant(
        "training does not augment",
        "train.py",
        "    if run.config.augmentation.enabled and not run.config.overfit_one_batch:\n",
        "    if False:\n",
        "augmentation",
        **AUGMENTATION,
    ),
    # ---- optimizer
    Mutant(
        "a restored optimizer works on the groups and the state of before",
        "optimizer.py",
        "        super().__setstate__(state)\n        self.share()\n",
        "        super().__setstate__(state)\n",
        "optimizer",
        **MUON,
    ),
    Mutant(
        "Muon's updates are not as large as AdamW's",
        "optimizer.py",
        "0.2 * max(update.shape) ** 0.5",
        "0.2",
        "optimizer",
        **MUON,
    ),
    Mutant(
        "a step of Newton and Schulz is left out",
        "optimizer.py",
        "range(5)",
        "range(4)",
        "optimizer",
        **MUON,
    ),
    Mutant(
        "Muon takes the head and the embeddings",
        "optimizer.py",
        "return is_matrix and model.group(name, parameter) not in config.adamw_groups",
        "return is_matrix",
        "optimizer",
        **MUON,
    ),
    Mutant(
        "a single row is a matrix for Muon",
        "optimizer.py",
        "min(parameter.flatten(1).shape) > 1",
        "True",
        "optimizer",
        **MUON,
    ),
    Mutant(
        "Muon without a weight decay",
        "optimizer.py",
        'parameter.mul_(1 - lr * part["weight_decay"]).add_',
        "parameter.add_",
        "optimizer",
        **MUON,
    ),
    Mutant(
        "a project whose Muon has nothing to do trains with AdamW in silence",
        "optimizer.py",
        "    if not matrices:\n",
        "    if False:\n",
        "optimizer",
        **MUON,
    ),
    Mutant("AdamW with other betas than were given", "optimizer.py", "betas=config.betas, ", "", "optimizer", **PLAIN),
    Mutant(
        "AdamW without a weight decay",
        "optimizer.py",
        "weight_decay=weight_decay",
        "weight_decay=0",
        "optimizer",
        **PLAIN,
    ),
    Mutant(
        "SGD without Nesterov's momentum",
        "optimizer.py",
        "nesterov=config.nesterov",
        "nesterov=False",
        "optimizer",
        **given(optimizer="sgd"),
    ),
    Mutant(
        "an optimizer of the owner's is passed over",
        "run.py",
        "    if optimizer is None:\n",
        "    if True:\n",
        "optimizer",
        **PLAIN,
    ),
    Mutant(
        "the parameters of an owner's optimizer have no names",
        "optimizer.py",
        '        part["param_names"] = [names[parameter] for parameter in part["params"]]\n',
        "",
        "optimizer",
        **PLAIN,
    ),
    # ---- weights of a file
    Mutant(
        "a file that does not fit whole is taken in part without asking",
        "init_from.py",
        "if differences and not allow_partial:",
        "if False:",
        "init_from",
        **INIT_FROM,
    ),
    Mutant(
        "the weights of the file are not taken",
        "init_from.py",
        "        wanted[name].copy_(found[name])\n",
        "        pass\n",
        "init_from",
        **INIT_FROM,
    ),
    Mutant(
        "a flipped byte of the file is not noticed",
        "init_from.py",
        "zipfile.is_zipfile(path) and not undamaged(path)",
        "False",
        "init_from",
        **INIT_FROM,
    ),
    Mutant(
        "the file may execute code", "init_from.py", "weights_only=True", "weights_only=False", "init_from", **INIT_FROM
    ),
    Mutant(
        "a resumed run asks for the file again",
        "run.py",
        "    if not config.resume:\n        load_weights(model, config)\n",
        "    load_weights(model, config)\n",
        "init_from",
        **INIT_FROM,
    ),
    Mutant(
        "a run that begins anew has no weights of the file",
        "resume.py",
        "        load_weights(run.model, run.config)\n",
        "",
        "init_from",
        **INIT_FROM,
    ),
    Mutant(
        "frozen norms go on counting",
        "run.py",
        "            module.eval()\n",
        "            pass\n",
        "training",
        **PLAIN,
    ),
    # ---- tracker
    Mutant(
        "TensorBoard is a step behind",
        "tracker.py",
        'value, row["step"])',
        'value, row["step"] - 1)',
        "tracker",
        **TENSORBOARD,
    ),
    Mutant(
        "evaluations are not tracked",
        "tracker.py",
        'if name != "step" and',
        'if name != "step" and not name.startswith("val_") and',
        "tracker",
        **TENSORBOARD,
    ),
    # ---- the owner's interface
    Mutant(
        "a count below one is taken for one",
        "device.py",
        "else items or 1",
        "else max(items, 1)",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "a tensor's count below one is taken for one",
        "device.py",
        "items.masked_fill(items == 0, 1)",
        "items.clamp(min=1)",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "a library's mapping loses its class",
        "device.py",
        "if type(batch) is dict or not isinstance(batch, MutableMapping):",
        "if True:",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "a part of a chunk begins anywhere in memory",
        "device.py",
        "part if part.data_ptr() % 64 == 0 else part.clone()",
        "part",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "the mean of nothing is divided by nothing",
        "scores.py",
        "float(value) / counts[name] if counts[name] else math.nan",
        "float(value) / counts[name]",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "nan is the best",
        "scores.py",
        "math.isfinite(score) and (",
        "(",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "the highest is best, whatever model.BEST says",
        "scores.py",
        "PICK(score, best) != best",
        "score > best",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "the check moves the generators",
        "check.py",
        "    set_random_state(random, run.device)\n",
        "    torch.rand(1)\n",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "the check leaves the model in eval mode",
        "check.py",
        "    training_mode(run.model)\n    for name",
        "    for name",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "a mean passes for a loss",
        "check.py",
        "rel_tol=1e-3) and not",
        "rel_tol=1e-3) and",
        "interface",
        **PLAIN,
    ),
    Mutant(
        "a source that is random passes",
        "check.py",
        "or not all(map(same, found, again))",
        "",
        "interface",
        **PLAIN,
    ),
    # ---- the model
    Mutant(
        "weights that exist are put in again on resume",
        "run.py",
        "    if not config.resume:\n        load_weights(model, config)\n",
        "    load_weights(model, config)\n",
        "interface",
    ),
    Mutant(
        "a saved model is built with the defaults",
        "checkpoint.py",
        'content.get("model_arguments", [])',
        "[]",
        "interface",
    ),
    # ---- devices and launchers
    Mutant(
        "what the ranks answered a step before is not heard",
        "distributed.py",
        "answer, self.asked = int(asked[0]), None",
        "answer, self.asked = 0, None",
        "distributed",
        **DDP,
    ),
    Mutant(
        "an evaluation that a signal cut short is passed over",
        "train.py",
        "at_once=evaluating or saving",
        "at_once=False",
        "distributed",
        **DDP,
    ),
]


def plant(template: Template, mutant: Mutant, folder: Path) -> None:
    """Writes the project with the mutant in it. Raises ValueError where its line is not there exactly once."""
    project = template.render({"techniques": list(mutant.techniques), **mutant.answers})
    text = project[Path(mutant.file)]
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: {text.count(mutant.old)} places in {mutant.file}, not one: {mutant.old!r}")
    write(project | {Path(mutant.file): text.replace(mutant.old, mutant.new)}, folder)


def verdict(mutant: Mutant, folder: Path) -> str:
    """What the proofs say of the project of the folder: "killed", "SURVIVES", or "hangs", which is noticed as well."""
    proofs = [f"tests/test_{name}.py" for name in mutant.proofs.split()]
    code, output = warm.prove(folder, "-q", *proofs, timeout=120)
    if "error" in output and "failed" not in output.splitlines()[-1] and code not in (0, 1):
        raise RuntimeError(f"{mutant.name}: the proofs did not run\n{output[-3000:]}")
    return {0: "SURVIVES", -1: "hangs"}.get(code, "killed")


def main(words: list[str]) -> int:
    """Runs the mutants whose name or file holds one of the words, or all; returns the number of survivors."""
    template, survivors, began = Template(ROOT), [], time.monotonic()
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name + mutant.file for word in words)]
    for index, mutant in enumerate(chosen, 1):
        with tempfile.TemporaryDirectory() as folder:
            plant(template, mutant, Path(folder, "project"))
            started, found = time.monotonic(), verdict(mutant, Path(folder, "project"))
        print(f"{index:>3} {found:<9} {time.monotonic() - started:5.1f} s  {mutant.file}: {mutant.name}", flush=True)
        survivors += [mutant.name] if found == "SURVIVES" else []
    print(f"{len(chosen)} mutants, {len(survivors)} survive, {time.monotonic() - began:.0f} s.")
    return len(survivors)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
