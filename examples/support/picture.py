"""A picture of the devices of a cluster: one line per node, one letter per device."""

from collections.abc import Iterable, Iterator, Mapping

from dra_core.api.names import DeviceId
from dra_core.api.objects import ResourceClaim, ResourceSlice

FREE = "·"


def device_lines(
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    letter_of: Mapping[str, str],
) -> Iterator[str]:
    """One line per pool: what each device is used for.

    ``letter_of`` has a letter for each claim's "namespace/name"; others are an "x".
    """
    used = {
        got.device_id: letter_of.get(str(claim.metadata.key), "x")
        for claim in claims
        for got in (claim.allocation.results if claim.allocation else ())
    }
    pools: dict[str, dict[str, str]] = {}
    for found in sorted(slices, key=lambda found: (found.pool, found.driver)):
        row = "".join(
            used.get(DeviceId(found.driver, found.pool, device.name), FREE)
            for device in found.devices
        )
        by_driver = pools.setdefault(found.pool, {})
        by_driver[found.driver] = by_driver.get(found.driver, "") + row
    for pool, rows in pools.items():
        yield "  ".join([pool, *(f"{driver} {row}" for driver, row in rows.items())])
