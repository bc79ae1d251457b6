"""What the fork server imports before it forks."""

import pytest  # noqa: F401

from matrix import inside

inside.imports()
