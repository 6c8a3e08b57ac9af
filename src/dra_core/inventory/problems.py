"""What can be wrong with a pool, as data.

A pool with a problem gives no devices; the problem says which rule it breaks and
shows the fact, so that an outcome can report it.
"""

from enum import StrEnum

import attrs


class PoolState(StrEnum):
    """What is wrong with a pool."""

    INCOMPLETE = "incomplete"
    INVALID = "invalid"


class PoolFault(StrEnum):
    """Which rule a pool breaks."""

    MISSING_SLICES = "missing-slices"
    SLICE_COUNTS_DIFFER = "slice-counts-differ"
    DUPLICATE_DEVICE = "duplicate-device"
    DUPLICATE_COUNTER_SET = "duplicate-counter-set"
    UNDEFINED_COUNTER_SET = "undefined-counter-set"
    UNDEFINED_COUNTER = "undefined-counter"


@attrs.frozen
class PoolProblem:
    """A pool of the node that gives no devices.

    ``seen`` and ``expected`` are numbers of slices (-1 where they say nothing);
    ``subject`` names the device, counter set or ``set/counter``.
    """

    driver: str
    pool: str
    state: PoolState
    fault: PoolFault
    generation: int
    seen: int = -1
    expected: int = -1
    subject: str = ""
