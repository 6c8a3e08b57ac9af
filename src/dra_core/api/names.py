"""Identities: what things are called. Tuples, because they are keys.

A device is identified by driver, pool and name: device names are unique within a
pool only, and two drivers may use one pool name.
"""

from typing import NamedTuple


class PoolId(NamedTuple):
    """A pool: ``(driver, pool)``."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceId(NamedTuple):
    """A device: ``(driver, pool, device)``."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class SharedDeviceId(NamedTuple):
    """One share of a device that allows multiple allocations."""

    driver: str
    pool: str
    device: str
    share_id: str

    @property
    def device_id(self) -> DeviceId:
        """The device that the share is a part of."""
        return DeviceId(self.driver, self.pool, self.device)


class ObjectKey(NamedTuple):
    """A namespaced object: ``(namespace, name)``; cluster-wide ones have namespace ""."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def qualified_name(name: str, driver: str) -> tuple[str, str]:
    """Split an attribute or capacity name into (domain, identifier).

    A name without a domain belongs to the driver's.
    Source: resource.k8s.io/v1, type QualifiedName.
    """
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)
