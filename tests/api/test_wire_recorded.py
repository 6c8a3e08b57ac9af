"""Every recorded object decodes, and every recorded answer is written as it was recorded."""

import copy
from typing import Any

import pytest

from dra_core.api import wire
from support.conformance import load_conformance


@pytest.mark.parametrize("suite", ["allocation", "corrected"])
def test_recorded_objects_decode(suite: str) -> None:
    """Classes, slices, claims and nodes of the recorded problems decode, inputs unchanged."""
    decoder = wire.Decoder()
    for case in load_conformance(suite):
        before = copy.deepcopy(case)
        for obj in case["classes"]:
            assert decoder.device_class(obj).name == obj["metadata"]["name"]
        for obj in case["slices"]:
            decoded = decoder.resource_slice(obj)
            assert [d.name for d in decoded.devices] == [
                d["name"] for d in obj["spec"].get("devices", ())
            ]
        for obj in case["claims"]:
            claim = decoder.resource_claim(obj)
            assert len(claim.devices.requests) == len(obj["spec"]["devices"]["requests"])
        assert decoder.node(case["node"]).labels == case["node"]["metadata"].get("labels", {})
        assert case == before


@pytest.mark.parametrize("suite", ["allocation", "corrected"])
def test_recorded_results_are_written_as_recorded(suite: str) -> None:
    """decode then encode gives the recorded AllocationResult, member for member."""
    seen = 0
    for case in load_conformance(suite):
        for recorded in case["expect"].get("results", ()):
            written: dict[str, Any] = wire.encode_allocation_result(
                wire.decode_allocation_result(recorded)
            )
            assert written == recorded, case["id"]
            seen += 1
    assert seen > 100
