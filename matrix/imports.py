"""What the warm process imports before it forks: all that projects import, in one thread.

torch's pool of threads does not survive a fork: a child that waited for it would hang. A child makes another when it
first asks for it; two threads that ask at once end it with an assertion (seen now and then), so it asks at once.
"""

import functools
import os

import torch._dynamo
import torch._inductor
import torch.distributed
import torch.export
import torch.onnx
import torch.profiler
import torch.utils.data
import torch.utils.tensorboard
import tyro  # noqa: F401

torch.set_num_threads(1)
os.register_at_fork(after_in_child=functools.partial(torch.set_num_threads, 1))
