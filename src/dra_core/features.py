"""Features: the switches that change control flow.

One frozen value with a field per feature gate of the API that alters how devices
are allocated. Names in wire form (the CLI's ``--feature``, recorded answers) are
the gates' own without the prefix ``DRA``; everything is on unless switched off,
because a scheduler with all switches off skips devices in silence.
"""

from collections.abc import Mapping

import attrs

_FIELDS = {
    "AdminAccess": "admin_access",
    "ConsumableCapacity": "consumable_capacity",
    "DeviceBindingAndStatus": "device_binding_and_status",
    "DeviceTaints": "device_taints",
    "ListTypeAttributes": "list_type_attributes",
    "OptionalNodeOperations": "optional_node_operations",
    "PartitionableDevices": "partitionable_devices",
    "PrioritizedList": "prioritized_list",
}


@attrs.frozen
class Features:
    """Which features of resource.k8s.io are on. Default: all.

    Source: the ``DRA*`` feature gates of Kubernetes 1.37.
    """

    admin_access: bool = True
    consumable_capacity: bool = True
    device_binding_and_status: bool = True
    device_taints: bool = True
    list_type_attributes: bool = True
    optional_node_operations: bool = True
    partitionable_devices: bool = True
    prioritized_list: bool = True

    @classmethod
    def from_gates(cls, gates: Mapping[str, bool]) -> "Features":
        """Features by gate name (``{"AdminAccess": False}``); absent ones stay on.

        Raises ``ValueError`` for a name that is no gate.
        """
        unknown = sorted(set(gates) - set(_FIELDS))
        if unknown:
            raise ValueError(f"unknown features {unknown}; known: {', '.join(_FIELDS)}")
        return cls(**{_FIELDS[name]: on for name, on in gates.items()})

    def gates(self) -> dict[str, bool]:
        """The inverse of ``from_gates``: every gate name with its state."""
        return {name: getattr(self, field) for name, field in _FIELDS.items()}
