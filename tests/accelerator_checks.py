"""What the simulated accelerator is held to; run by tests/test_accelerator.py in a process that has the device."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._pytree import tree_leaves, tree_map

from tests.accelerator import NAME, record

SIM = torch.device(NAME)
# Operators whose samples the device does not give bit for bit, and why.
OTHERWISE = {
    **dict.fromkeys(["empty", "empty_like", "empty_permuted", "empty_strided"], "the memory is not written"),
    **dict.fromkeys(["new_empty", "new_empty_strided"], "the memory is not written"),
    **dict.fromkeys(["sparse.sampled_addmm", "sparse.mm.reduce", "to_sparse"], "sparse tensors"),
    "as_strided.partial_views": "a copy to the device does not take what lies outside of the view",
    "nn.functional.scaled_dot_product_attention": "masks and dropout: fused on the CPU, in steps on the device",
    "tensor_split": "takes its sections from the host, as on CUDA",
    "to": "the sample asks a CPU tensor for pinned memory",
    "chalf": "the comparison has no half precision complex kernel",
}


@pytest.fixture(autouse=True)
def seeded() -> Iterator[None]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def moved(value: Any, place: str) -> Any:
    """Tensors and devices of a nest, on the place."""

    def move(part: Any) -> Any:
        if isinstance(part, Tensor):
            return part.detach().to(place)
        return torch.device(place) if isinstance(part, torch.device) else part

    return tree_map(move, value)


def called(op: Callable[..., Any], sample: Any, place: str) -> list[Tensor]:
    torch.manual_seed(0)
    named = moved(sample.kwargs, place) | ({"device": place} if "device" in sample.kwargs else {})
    result = op(moved(sample.input, place), *moved(sample.args, place), **named)
    return [leaf for leaf in tree_leaves(result) if isinstance(leaf, Tensor)]


def test_operators_give_the_cpus_bits() -> None:
    """PyTorch's own samples of its operators, the first two of each."""
    from torch.testing._internal.common_methods_invocations import op_db

    equal, others = 0, set()
    for op in op_db:
        if torch.float32 not in op.dtypes:
            continue
        for sample in list(op.sample_inputs("cpu", torch.float32, requires_grad=False))[:2]:
            try:
                expected = called(op, sample, "cpu")
            except Exception:  # a sample that cannot be called a second time
                continue
            try:
                found = called(op, sample, NAME)
                same = [torch.equal(a.nan_to_num(), b.cpu().nan_to_num()) for a, b in zip(expected, found, strict=True)]
                good = all(same) and all(tensor.device == torch.device(NAME, 0) for tensor in found)
            except Exception:
                good = False
            equal += good
            others |= set() if good else {op.full_name}
    assert others <= OTHERWISE.keys(), sorted(others - OTHERWISE.keys())
    assert equal > 1000


def test_devices_do_not_mix_but_for_single_numbers() -> None:
    there, here = torch.ones(3, device=SIM), torch.ones(3)
    for mixed in (lambda: there + here, lambda: here * there, lambda: there.add_(here), lambda: there @ here):
        with pytest.raises(RuntimeError, match="at least two devices"):
            mixed()
    assert (there + torch.tensor(2.0)).device.type == NAME
    with pytest.raises(RuntimeError, match="at least two devices"):
        functional.embedding(torch.tensor(1), torch.ones(2, 3, device=SIM))


def test_numpy_cannot_read_it() -> None:
    with pytest.raises(TypeError):
        torch.ones(3, device=SIM).numpy()


def test_a_forked_process_cannot_use_it() -> None:
    tensor = torch.ones(3, device=SIM)
    child = os.fork()
    if child == 0:
        try:
            tensor + 1
        except RuntimeError as error:
            os._exit(7 if "forked subprocess" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_its_generator_is_its_own() -> None:
    torch.manual_seed(3)
    first, host = torch.rand(4, device=SIM), torch.get_rng_state()
    torch.manual_seed(3)
    assert torch.equal(torch.rand(4, device=SIM).cpu(), first.cpu())
    assert torch.equal(torch.get_rng_state(), host), "the host's generator stands still"
    module = torch.get_device_module(SIM)
    state = module.get_rng_state()
    following = torch.rand(4, device=SIM).cpu()
    module.set_rng_state(state)
    assert torch.equal(torch.rand(4, device=SIM).cpu(), following)
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.rand(4, device=SIM, generator=torch.Generator())


def test_views_share_memory_and_autograd_follows() -> None:
    tensor = torch.arange(6.0, device=SIM).requires_grad_()
    with torch.no_grad():
        tensor.view(2, 3)[1].mul_(10)
    assert tensor.tolist() == [0, 1, 2, 30, 40, 50]
    (tensor[::2] ** 2).sum().backward()
    assert tensor.grad is not None and tensor.grad.device.type == NAME
    assert tensor.grad.tolist() == [0, 0, 4, 0, 80, 0]


def test_conjugates_and_negatives_cross() -> None:
    tensor = torch.randn(4, dtype=torch.complex64)
    there = tensor.to(SIM).conj()
    assert torch.equal(there.cpu(), tensor.conj().resolve_conj())
    assert torch.equal(there.imag.cpu(), tensor.conj().imag.resolve_neg())


def test_a_checkpoint_crosses_in_both_ways() -> None:
    model = nn.Linear(3, 2)
    for origin, target in ((NAME, "cpu"), ("cpu", NAME)):
        file = io.BytesIO()
        torch.save(model.to(origin).state_dict(), file)
        file.seek(0)
        loaded = torch.load(file, map_location=target, weights_only=True)
        assert {value.device.type for value in loaded.values()} == {target}
        assert all(torch.equal(loaded[name].cpu(), value.cpu()) for name, value in model.state_dict().items())


def test_tied_weights_stay_tied() -> None:
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    assert nn.Sequential(first, second).to(SIM)[1].weight is first.weight


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_follows_the_lists(dtype: torch.dtype) -> None:
    layer, inputs = nn.Linear(4, 2).to(SIM), torch.randn(3, 4, device=SIM)
    with torch.autocast(NAME, dtype):
        logits = layer(inputs)
        loss = functional.cross_entropy(logits, torch.zeros(3, dtype=torch.int64, device=SIM))
    assert (logits.dtype, loss.dtype) == (dtype, torch.float32)


def test_attention_is_the_cpus() -> None:
    query = torch.randn(2, 4, 16, 8, requires_grad=True)
    there = query.detach().to(SIM).requires_grad_()
    for tensor in (query, there):
        functional.scaled_dot_product_attention(tensor, tensor, tensor, is_causal=True).square().sum().backward()
    assert query.grad is not None and there.grad is not None
    assert torch.equal(query.grad, there.grad.cpu())


def test_memory_is_counted_and_given_back() -> None:
    module = torch.get_device_module(SIM)
    before = module.memory_allocated()
    module.reset_peak_memory_stats()
    tensor = torch.zeros(1000, device=SIM)
    assert module.memory_allocated() == before + 4000
    del tensor
    assert module.memory_allocated() == before
    assert module.max_memory_allocated() == before + 4000


def waits(program: Callable[[], Any]) -> list[tuple[str, int]]:
    """Kind and bytes of what the program waits for."""
    with record() as events:
        program()
    return [(event.kind, event.bytes) for event in events if event.waits]


def test_known_programs_wait_as_known() -> None:
    there, here = torch.arange(4.0, device=SIM), torch.arange(4.0)
    pinned = here.pin_memory()
    assert pinned.is_pinned() and not here.is_pinned()
    assert waits(lambda: there.sum().item()) == [("read", 4)]
    assert waits(lambda: bool(there.sum() > 3)) == [("read", 1)]
    assert waits(lambda: there.cpu()) == [("read", 16)]
    assert waits(lambda: there.tolist()) == [("read", 16)]
    assert waits(lambda: here.to(SIM)) == [("write", 16)]
    assert waits(lambda: here.to(SIM, non_blocking=True)) == [("write", 16)], "it is not pinned"
    assert waits(lambda: pinned.to(SIM, non_blocking=True)) == []
    assert waits(lambda: pinned.copy_(there, non_blocking=True)) == []
    assert waits(lambda: there[there > 1]) == [("shape", 0)]
    assert waits(lambda: there.nonzero()) == [("shape", 0)]
    assert waits(lambda: there[torch.tensor([1, 2])]) == [("write", 16)]
    assert waits(lambda: there.masked_fill(there > 1, 0.0).add_(1).mul_(there)) == []
    assert waits(torch.accelerator.synchronize) == [("wait", 0)]


@pytest.mark.parametrize(("options", "number"), [({"fused": True}, 0), ({"foreach": True}, 0), ({"foreach": False}, 0)])
def test_a_training_step_waits_for_nothing(options: dict[str, bool], number: int) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.GroupNorm(2, 8), nn.ReLU(), nn.Linear(8, 2)).to(SIM)
    optimizer = torch.optim.AdamW(model.parameters(), **options)
    inputs, targets = torch.randn(6, 4, device=SIM), torch.zeros(6, dtype=torch.int64, device=SIM)

    def step() -> None:
        optimizer.zero_grad()
        functional.cross_entropy(model(inputs), targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    step()
    assert len(waits(step)) == number


def test_a_step_with_scaling_reads_what_overflowed() -> None:
    parameter = nn.Parameter(torch.ones(3, device=SIM))
    optimizer, scaler = torch.optim.SGD([parameter], lr=1.0), torch.amp.GradScaler(NAME)

    def step(factor: float) -> None:
        optimizer.zero_grad()
        scaler.scale((parameter * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    assert waits(lambda: step(1.0)) == [("read", 4)], "found_inf"
    before, scale = parameter.tolist(), scaler.get_scale()
    step(float("inf"))
    assert parameter.tolist() == before and scaler.get_scale() == scale / 2


def test_an_event_names_its_callers() -> None:
    with record() as events:
        torch.ones(1, device=SIM).item()
    assert events[0].stack[0].endswith("test_an_event_names_its_callers")
    assert "read" in str(events[0]) and "waits" in str(events[0])
