"""Settings of the whole test run."""

from hypothesis import settings

from browser import browser  # noqa: F401  # one for all tests of pages

# The first example of a property may compile a kernel, so no example has a deadline. Runs repeat each other exactly.
settings.register_profile("valuate", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("valuate")
