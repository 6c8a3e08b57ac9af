"""Answering recorded questions about claims, one JSON object a line.

What may live here: the form of the questions and answers of the recorded suite
``claims`` (names, ownership, reservation, tolerations). The rules are elsewhere.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dra_core.api.core import Pod, PodResourceClaim
from dra_core.api.tolerations import tolerates
from dra_core.api.wire import decode_device_taint_rule, decode_pod, decode_resource_claim
from dra_core.claims.names import ClaimName, claim_name, is_owned
from dra_core.claims.reservation import is_reserved_for
from dra_core.errors import ClaimNotCreatedError, ClaimUnsupportedError, MalformedObjectError

Answer = dict[str, Any]


def answer_claims_line(line: Mapping[str, Any]) -> Answer:
    """The answer to one question, in the form that is recorded as ``expect``.

    ``line["op"]`` is the question:

    * ``Name`` (``pod``): which claim every entry of the pod means;
    * ``IsForPod`` (``pod``, ``claim``): is using the generated claim an error;
    * ``IsReservedForPod`` (``pod``, ``claim``);
    * ``ToleratesTaint`` (``toleration``, ``taint``).

    Raises ``MalformedObjectError`` for another question and for malformed objects.
    """
    op = line.get("op")
    answer = _ANSWERS.get(op) if isinstance(op, str) else None
    if answer is None:
        known = ", ".join(_ANSWERS)
        raise MalformedObjectError(
            "question", str(line.get("id", "")), "op", f"must be one of {known}, not {op!r}"
        )
    return answer(line)


def _name(line: Mapping[str, Any]) -> Answer:
    pod = decode_pod(line.get("pod"))
    return {"claims": [_named(pod, entry) for entry in pod.resource_claims]}


def _named(pod: Pod, entry: PodResourceClaim) -> Answer:
    name: str | None = None
    error: str | None = None
    check = False
    try:
        found = claim_name(pod, entry)
    except ClaimNotCreatedError:
        error = "claim-not-found"
    except ClaimUnsupportedError:
        error = "api-unsupported"
    else:
        if isinstance(found, ClaimName):
            name, check = found.name, found.must_check_owner
        else:
            check = True  # recorded so: "no claim needed" is what is known of a generated claim
    return {"pod_claim": entry.name, "name": name, "must_check_owner": check, "error": error}


def _is_for_pod(line: Mapping[str, Any]) -> Answer:
    claim, pod = decode_resource_claim(line.get("claim")), decode_pod(line.get("pod"))
    return {"error": not is_owned(claim, pod)}


def _is_reserved_for_pod(line: Mapping[str, Any]) -> Answer:
    claim, pod = decode_resource_claim(line.get("claim")), decode_pod(line.get("pod"))
    return {"result": is_reserved_for(claim, pod)}


def _tolerates_taint(line: Mapping[str, Any]) -> Answer:
    # Neither is an object of its own in the API, so each is read as a part of one.
    request = {"name": "request", "exactly": {"tolerations": [line.get("toleration")]}}
    claim = decode_resource_claim({"spec": {"devices": {"requests": [request]}}})
    rule = decode_device_taint_rule({"spec": {"taint": line.get("taint")}})
    exactly = claim.devices.requests[0].exactly
    tolerations = () if exactly is None else exactly.tolerations
    return {"result": any(tolerates(toleration, rule.taint) for toleration in tolerations)}


_ANSWERS: Mapping[str, Callable[[Mapping[str, Any]], Answer]] = {
    "Name": _name,
    "IsForPod": _is_for_pod,
    "IsReservedForPod": _is_reserved_for_pod,
    "ToleratesTaint": _tolerates_taint,
}
