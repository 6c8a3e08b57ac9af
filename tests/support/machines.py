"""How long state machines run, by Hypothesis profile.

A run of a machine is some dozens of steps, each with every invariant checked, so it counts
for many examples of a plain property; and a machine cannot be cut short when time is up
(``support.time_budget``). In CI they get 400 runs where properties get 2,000 examples.
"""

import os

from hypothesis import settings

RUNS = {"default": 100, "ci": 400, "deep": 10_000}


def machine_settings(steps: int) -> settings:
    """The settings of a machine with up to so many steps a run."""
    profile = os.environ.get("DRA_CORE_HYPOTHESIS_PROFILE", "default")
    return settings(max_examples=RUNS[profile], stateful_step_count=steps, deadline=None)
