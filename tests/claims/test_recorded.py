"""The recorded answers about claims, and the form in which they are asked for."""

import copy

import pytest

from dra_core.claims.recorded import answer_claims_line
from dra_core.errors import MalformedObjectError
from support.conformance import Case, conformance_params


@pytest.mark.parametrize("case", conformance_params("claims"))
def test_recorded(case: Case) -> None:
    """Every recorded answer, and the question is left as it was."""
    before = copy.deepcopy(case)
    assert answer_claims_line(case) == case["expect"]
    assert case == before


def test_older_source_form() -> None:
    """The older ``source`` fields of a pod claim resolve too."""
    pod = {
        "metadata": {"name": "web", "namespace": "a"},
        "spec": {
            "resourceClaims": [
                {"name": "x", "source": {"resourceClaimName": "shared"}},
                {"name": "y", "source": {"resourceClaimTemplateName": "tpl"}},
                {"name": "z", "source": {}},
            ]
        },
        "status": {"resourceClaimStatuses": [{"name": "y", "resourceClaimName": "web-y-1"}]},
    }
    assert answer_claims_line({"op": "Name", "pod": pod}) == {
        "claims": [
            {"pod_claim": "x", "name": "shared", "must_check_owner": False, "error": None},
            {"pod_claim": "y", "name": "web-y-1", "must_check_owner": True, "error": None},
            {"pod_claim": "z", "name": None, "must_check_owner": False, "error": "api-unsupported"},
        ]
    }


@pytest.mark.parametrize("op", [None, "", "Bogus", 3, ["Name"]])
def test_unknown_question(op: object) -> None:
    """A question that is none is malformed input, named by its id."""
    with pytest.raises(MalformedObjectError) as caught:
        answer_claims_line({"id": "q1", "op": op})
    assert (caught.value.name, caught.value.path) == ("q1", "op")


@pytest.mark.parametrize("op", ["Name", "IsForPod", "IsReservedForPod", "ToleratesTaint"])
def test_malformed_objects(op: str) -> None:
    """A question without its objects is malformed input."""
    with pytest.raises(MalformedObjectError):
        answer_claims_line({"op": op})
