"""Which taints a toleration covers. The full table is among the recorded answers."""

import pytest

from dra_core.api.objects import DeviceTaint, DeviceToleration
from dra_core.api.tolerations import tolerates

TAINT = DeviceTaint(key="broken", value="fan", effect="NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        (DeviceToleration(operator="Exists"), True),
        (DeviceToleration(key="broken", operator="Exists"), True),
        (DeviceToleration(key="broken", operator="Exists", effect="NoSchedule"), True),
        (DeviceToleration(key="broken", operator="Exists", value="other"), True),
        (DeviceToleration(key="broken", operator="Exists", effect="NoExecute"), False),
        (DeviceToleration(key="other", operator="Exists"), False),
        (DeviceToleration(key="broken", value="fan"), True),
        (DeviceToleration(key="broken", operator="Equal", value="fan"), True),
        (DeviceToleration(operator="Equal", value="fan"), True),
        (DeviceToleration(key="broken", operator="Equal"), False),
        (DeviceToleration(key="broken", operator="exists"), False),
        (DeviceToleration(key="broken", operator="Bogus", value="fan"), False),
        (DeviceToleration(key="broken", value="fan", toleration_seconds=0), True),
        (DeviceToleration(), False),
    ],
)
def test_tolerates(toleration: DeviceToleration, covered: bool) -> None:
    """Effect and key: empty or equal; operator: Exists, or Equal (default) with equal values."""
    assert tolerates(toleration, TAINT) is covered


def test_an_empty_toleration_covers_a_taint_without_value() -> None:
    """Everything empty is Equal with the empty value, for any key and effect."""
    assert tolerates(DeviceToleration(), DeviceTaint(key="k", effect="NoExecute"))
