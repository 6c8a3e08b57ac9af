"""Trying selectors on the devices of a dump.

What may live here: what a selector does to a set of devices, which attribute or capacity
was missing when it selects none or fails, and which existing name is nearest to it.
"""

import difflib
from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

import attrs

from dra_core.api.names import DeviceId
from dra_core.api.objects import Device, ResourceSlice
from dra_core.cel.selector import Selector
from dra_core.errors import SelectorEvaluationError

NEAR: Final = 0.6
"""How similar a name must be to be worth a hint, as ``difflib`` measures it."""


MOST_COMPARED: Final = 1_000
LONGEST_COMPARED: Final = 400
"""Of more names, or of longer ones, none is called near: finding it would take longer than
all the rest. No cluster has so many attributes, no object so long a name."""


def nearest(name: str, existing: Iterable[str], most: int = 1) -> list[str]:
    """The most similar names, best first; empty if none is similar."""
    compared = list(existing)
    if len(compared) > MOST_COMPARED or len(name) > LONGEST_COMPARED:
        return []
    short = [other for other in compared if len(other) <= LONGEST_COMPARED]
    return difflib.get_close_matches(name, short, most, NEAR)


class Listed(NamedTuple):
    """A device where a slice lists it."""

    id: DeviceId
    device: Device


def listed_devices(slices: Iterable[ResourceSlice]) -> list[Listed]:
    """Every device of every slice, in order."""
    return [
        Listed(DeviceId(one.driver, one.pool, device.name), device)
        for one in slices
        for device in one.devices
    ]


@attrs.frozen
class Trial:
    """What a selector does to devices: ``chosen``, and ``failed`` with the error of each."""

    chosen: tuple[Listed, ...]
    failed: tuple[tuple[Listed, SelectorEvaluationError], ...]


def try_selector(selector: Selector, devices: Sequence[Listed]) -> Trial:
    """Evaluate on every device; once per distinct values that the selector reads."""
    known: dict[Hashable, bool | SelectorEvaluationError] = {}
    chosen, failed = [], []
    for listed in devices:
        key = selector.values_read(listed.id.driver, listed.device)
        if key not in known:
            known[key] = _evaluate(selector, listed)
        result = known[key]
        if isinstance(result, SelectorEvaluationError):
            failed.append((listed, result))
        elif result:
            chosen.append(listed)
    return Trial(tuple(chosen), tuple(failed))


def _evaluate(selector: Selector, listed: Listed) -> bool | SelectorEvaluationError:
    try:
        return selector.matches(listed.id.driver, listed.device)
    except SelectorEvaluationError as error:
        return error.with_traceback(None)


# --- names ---------------------------------------------------------------------------


class Names:
    """The names of one sort that devices have: attributes or capacities, fully qualified."""

    def __init__(self, what: str, devices: Iterable[Listed]) -> None:
        """``what`` is "attribute" or "capacity"."""
        self.what = what
        self.existing = dict.fromkeys(
            name for listed in devices for name in _names_of(what, listed)
        )

    def __contains__(self, name: str) -> bool:
        return name in self.existing

    def hint(self, name: str) -> str:
        """``; nearest: x`` for a name that does not exist, "" if nothing is near."""
        near = self._nearest(name)
        return f"; the nearest name is {near}" if near else ""

    def _nearest(self, name: str) -> str:
        """The most similar name of the same domain, else of any."""
        domain, _, identifier = name.rpartition("/")
        same = [other for other in self.existing if other.rpartition("/")[0] == domain]
        for names in (same, list(self.existing)):
            by_identifier = {other.rpartition("/")[2]: other for other in reversed(names)}
            close = nearest(identifier, by_identifier)
            if close:
                return by_identifier[close[0]]
        return ""


def _names_of(what: str, listed: Listed) -> list[str]:
    names = listed.device.attributes if what == "attribute" else listed.device.capacity
    driver = listed.id.driver
    return [name if "/" in name else f"{driver}/{name}" for name in names]


def read_names(selector: Selector, what: str) -> list[str]:
    """The fully qualified names that the text of a selector reads; dynamic ones cannot be told."""
    reads = selector.reads.attributes if what == "attribute" else selector.reads.capacity
    return list(dict.fromkeys(f"{domain}/{name}" for domain, name in reads or ()))


def missing_names(selector: Selector, what: str, devices: Sequence[Listed]) -> dict[str, int]:
    """Names that a selector reads and devices lack: how many lack them, most first."""
    wanted = read_names(selector, what)
    lacking = dict.fromkeys(wanted, 0)
    for listed in devices:
        there = set(_names_of(what, listed)) if wanted else set()
        for name in wanted:
            lacking[name] += name not in there
    return {name: count for name, count in lacking.items() if count}
