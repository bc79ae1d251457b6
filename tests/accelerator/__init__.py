"""A simulated accelerator: the device `sim`, whose memory is the host's and whose kernels are the CPU's.

`install()` registers it with PyTorch. From then on `torch.accelerator.current_accelerator()` is `sim`, every operator
of aten that has a kernel on the CPU works on it, and it is as strict as CUDA: tensors of two devices do not mix, NumPy
cannot read it, a forked process cannot use it. What passes between host and device is recorded:

    with record() as events:
        step()
    assert not [event for event in events if event.waits]

`entry_point(folder)` writes what makes every process that imports torch with this folder on its path have the device:
that is how generated projects run on it unchanged.

What it cannot tell: everything happens at once, so there are no races and no memory that is read before it is written.
Whether an operation waits follows rules after CUDA's behaviour (kernels.py), which were not measured on one. There is
no compiler, no sparse and no quantized tensor.
"""

import torch  # noqa: F401  # its import may call the entry point, which needs the modules below

from tests.accelerator.events import Event, record
from tests.accelerator.registration import NAME, UnavailableError, entry_point, install

__all__ = ["NAME", "Event", "UnavailableError", "entry_point", "install", "record"]
