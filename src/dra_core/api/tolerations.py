"""Whether a toleration puts up with a taint of a device.

What may live here: the rule itself, which the allocator, explanations and recorded
answers share. Which taints a device has is the inventory's business.
"""

from dra_core.api.objects import DeviceTaint, DeviceToleration


def tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    """Whether ``toleration`` covers ``taint``.

    An empty effect or key of the toleration covers every one. The operator is Exists,
    or Equal (the default) with equal values; an operator not known here covers nothing.
    How long a taint is tolerated (``toleration_seconds``) plays no part.

    Source: resource.k8s.io/v1, type DeviceToleration.
    """
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in ("", "Equal") and toleration.value == taint.value
