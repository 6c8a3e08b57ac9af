"""What every test shares: the Hypothesis profiles and their time budget.

Helpers live in ``support``.

Profiles, chosen by ``DRA_CORE_HYPOTHESIS_PROFILE``:

* ``default``: 100 examples, what ``make test`` runs;
* ``ci``: 2,000 examples, what ``.ci/run`` adds;
* ``deep``: 50,000 examples with a new seed every time, run by hand to look for
  failures nobody has seen.

The first two derive their examples from the test itself, so that a change is
judged by what it changes and a failure comes back when it is run again; ``deep``
prints the blob that reproduces a failure. No profile has a deadline: seconds are
reported here, never asserted.
"""

import os

from hypothesis import HealthCheck, settings

from support.time_budget import (
    pytest_collection_finish,
    pytest_pyfunc_call,
    pytest_terminal_summary,
)

# Hooks: pytest finds them here by their names.
__all__ = ["pytest_collection_finish", "pytest_pyfunc_call", "pytest_terminal_summary"]

_SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.register_profile("ci", settings.get_profile("default"), max_examples=2_000)
settings.register_profile(
    "deep",
    max_examples=50_000,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=_SLOW_IS_FINE,
)
settings.load_profile(os.environ.get("DRA_CORE_HYPOTHESIS_PROFILE", "default"))
