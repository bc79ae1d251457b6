"""Looking inside the model while it trains: statistics of each layer, and a mode that names a NaN's layer."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
# {% if ddp %}

from distributed import rank
# {% endif %}


@dataclass(frozen=True)
class DebugConfig:
    hooks: bool = True
    """Log each layer's activations (mean, spread, share that is not finite) and the norm of its gradient."""
    anomaly: bool = False
    """Stop at the first value that is not finite and name its layer. Eager, and several times slower."""


class Hooks:
    """Made before the model's first forward pass: what compiles a model takes the hooks that it finds then."""

    def __init__(
        self,
        model: nn.Module,
        config: DebugConfig,
        device: torch.device,
        # {% if amp %}
        fp16: bool = False,
        # {% endif %}
    ) -> None:
        self.model, self.config = model, config
        # {% if ddp %}
        self.told = rank() > 0
        # {% else %}
        self.told = False
        # {% endif %}
        # {% if amp %}
        self.fp16 = fp16
        # {% endif %}
        modules = {name or "model": module for name, module in model.named_modules()}
        self.layers = [name for name, module in modules.items() if not any(module.children())]
        # Written in place, so nothing waits for the device; NaN: the layer did not run.
        self.statistics = torch.full((len(self.layers), 3), torch.nan, device=device)
        self.handles = []
        self.where = "the loss"
        if config.hooks:
            for index, name in enumerate(self.layers):
                self.handles.append(modules[name].register_forward_hook(self.observe(index)))
        if config.anomaly:
            for name, module in modules.items():
                self.handles.append(module.register_forward_hook(self.watch(name, module)))
            # {% if amp %}
            # An overflow of fp16 is no error: its step is skipped.
            torch.autograd.set_detect_anomaly(True, check_nan=not fp16)
            # {% else %}
            torch.autograd.set_detect_anomaly(True)
            # {% endif %}
            # {% if compile %}
            torch.compiler.set_stance("force_eager")
            # {% endif %}
            # explain() says it, with the layer.
            warnings.filterwarnings("ignore", "Error detected in", UserWarning)

    def observe(self, index: int) -> Callable[..., None]:
        """A hook that writes row `index`: mean, standard deviation and non-finite share of an output."""

        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            # An evaluation pays nothing.
            if torch.is_grad_enabled() and (outputs := floats(output)):
                values = outputs[0].detach().float()
                mean, size = values.mean(), values.numel()
                # Five times as fast on a CPU as std().
                spread = torch.linalg.vector_norm(values - mean) / size**0.5
                # x - x is 0, or NaN where x is not finite.
                faulty = torch.count_nonzero(values - values) / size
                self.statistics[index] = torch.stack((mean, spread, faulty))

        return hook

    def watch(self, name: str, module: nn.Module) -> Callable[..., None]:
        """A hook that checks an output, and lets the backward pass note which layer it has come to."""
        layer, leaf = f"layer {name} ({type(module).__name__})", name in self.layers

        def hook(module: nn.Module, inputs: Any, output: Any) -> None:
            received, outputs = finite(floats(inputs)), floats(output)
            failed = not finite(outputs)
            # {% if amp %}
            if self.fp16:
                # An overflow gives infinities, and a NaN only out of those.
                failed = leaf and received and any(bool(tensor.isnan().any()) for tensor in outputs)
            # {% endif %}
            if failed:
                origin = "finite input" if received else "input that is not finite either"
                raise SystemExit(f"Anomaly mode: {layer} makes values that are not finite out of {origin}.")
            self.where = "the loss"
            for tensor in outputs:
                if leaf and tensor.requires_grad:
                    tensor.register_hook(lambda gradient: setattr(self, "where", layer))

        return hook

    def row(self) -> dict[str, float]:
        """Statistics of the last micro-batch and of the gradients that the optimizer used, in one transfer.

        Call it between the optimizer's step and the next zero_grad. NaN: not run, or no gradient.
        """
        if not self.config.hooks:
            return {}
        gradients: dict[str, list[Tensor]] = {}
        missing = []
        for name, parameter in self.model.named_parameters():
            if parameter.requires_grad:
                found = gradients.setdefault(name.rpartition(".")[0] or "model", [])
                if parameter.grad is None:
                    missing.append(name)
                else:
                    found.append(parameter.grad)
        if missing and not self.told:
            print(f"No gradient reaches {', '.join(missing)}: the loss does not depend on it.")
        self.told = True
        nothing = self.statistics.new_full((), torch.nan)
        norms = [nn.utils.get_total_norm(found) if found else nothing for found in gradients.values()]
        values = torch.cat((self.statistics.flatten(), torch.stack(norms))).tolist()
        whats = ("activation_mean", "activation_std", "activation_nonfinite")
        names = [f"debug/{layer}/{what}" for layer in self.layers for what in whats]
        names += [f"debug/{layer}/grad_norm" for layer in gradients]
        return dict(zip(names, values, strict=True))

    def explain(self, error: RuntimeError) -> None:
        """Raises SystemExit with the layer's name if the error is anomaly mode's; returns otherwise."""
        if self.config.anomaly and "returned nan values" in str(error):
            told = f"Anomaly mode: {error} That was in {self.where}, or in the code that leads to it."
            raise SystemExit(told) from None

    def remove(self) -> None:
        for handle in self.handles:
            handle.remove()
        if self.config.anomaly:
            torch.autograd.set_detect_anomaly(False)
            # {% if compile %}
            torch.compiler.set_stance("default")
            # {% endif %}


def floats(value: Any) -> list[Tensor]:
    """The floating-point tensors of a layer's input or output, which may be a nest."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() and value.numel() else []
    parts = list(value.values()) if isinstance(value, dict) else value
    return [each for part in parts for each in floats(part)] if isinstance(parts, (list, tuple)) else []


def finite(tensors: list[Tensor]) -> bool:
    return all(bool(tensor.isfinite().all()) for tensor in tensors)
