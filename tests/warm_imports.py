"""What the fork server imports before it forks: all that is slow and that generated projects use."""

import matplotlib.figure  # noqa: F401
import pytest  # noqa: F401
import sklearn.datasets
import sklearn.model_selection  # noqa: F401
import torch
import torch._dynamo
import torch.profiler
import torch.utils.data
import tqdm  # noqa: F401
import tyro  # noqa: F401

torch.set_num_threads(1)
