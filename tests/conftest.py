"""Settings of the whole test run."""

import os

import scipy.linalg  # noqa: F401  # so that its library is there to be limited
from hypothesis import settings
from threadpoolctl import threadpool_limits

from browser import browser  # noqa: F401  # one for all tests of pages

# Test processes side by side: the threads of their matrix libraries would wait for each other, up to minutes a test.
if "PYTEST_XDIST_WORKER" in os.environ:
    threadpool_limits(limits=1, user_api="blas")

# The first example of a property may compile a kernel, so no example has a deadline. Runs repeat each other exactly.
settings.register_profile("valuate", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("valuate")
