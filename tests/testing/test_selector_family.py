"""The strategies' selectors mean the same to the compiler and to their plain functions."""

import pytest
from hypothesis import given

from dra_core.api.objects import Device
from dra_core.errors import DraError
from dra_core.testing.problem import Matches, Problem
from dra_core.testing.selector_family import BROKEN, FAILING, SAFE, family
from dra_core.testing.strategies import aspects_of, problems
from support.solvers import compiled


@given(problems(always=aspects_of("lists", "sharing", "pools", "selectors")))
def test_same_meaning(problem: Problem) -> None:
    """Every selector of the family says the same, or fails on the same devices."""
    for one in problem.slices:
        for device in one.devices:
            for text in (*SAFE, *FAILING):
                assert _verdict(compiled(text), one.driver, device) == _verdict(
                    family(text), one.driver, device
                ), (text, device)


def _verdict(matches: Matches, driver: str, device: Device) -> bool | None:
    try:
        return matches(driver, device)
    except DraError:
        return None


@pytest.mark.parametrize("text", BROKEN)
def test_broken_ones_do_not_compile(text: str) -> None:
    """What the family calls broken is no selector."""
    with pytest.raises(DraError):
        compiled(text)
