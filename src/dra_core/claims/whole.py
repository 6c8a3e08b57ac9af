"""Whole objects as JSON, in the one version that loses nothing.

What may live here: how this room writes whole objects. Fields that this library does not
know survive only in the version that an object was read in; a later API may have put
something important there, so nothing is converted.
"""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from dra_core.api.objects import ResourceClaim, ResourceClaimTemplate
from dra_core.api.wire import encode, encode_whole
from dra_core.api.wire_free import copy_json
from dra_core.api.wire_versions import split_api_version
from dra_core.errors import ReadInOtherVersionError

Json = dict[str, Any]


@runtime_checkable
class StatesItself(Protocol):
    """A claim of an API version with kinds of another shape, which are not encoded here.

    ``whole`` is the claim as JSON of a version, unknown fields included; it raises
    ``NotExpressibleError`` for a version that is not its own.
    """

    def whole(self, version: str) -> Json: ...


@runtime_checkable
class StatesSpec(Protocol):
    """The same of a template: ``spec_json`` is the spec of the claims that it makes."""

    def spec_json(self, version: str) -> Json: ...


def whole_claim(claim: ResourceClaim, version: str) -> Json:
    """The claim in ``version``, with the unknown fields that it was read with.

    Raises ``ReadInOtherVersionError`` if it was read in another version, and what
    ``encode_whole`` raises. Cost: linear in the size of the claim.
    """
    if isinstance(claim, StatesItself):
        return claim.whole(version)
    _check_version("ResourceClaim", str(claim.metadata.key), claim.raw, version)
    return encode_whole(claim, version)


def template_spec(template: ResourceClaimTemplate, version: str) -> Json:
    """The spec of the claims that a template makes, in ``version``.

    Raises ``ReadInOtherVersionError`` if the template was read in another version, and
    what ``encode`` raises.
    """
    if isinstance(template, StatesSpec):
        return template.spec_json(version)
    _check_version("ResourceClaimTemplate", str(template.metadata.key), template.raw, version)
    obj: Any = encode(template, version) if template.raw is None else template.raw
    result: Json = copy_json((obj.get("spec") or {}).get("spec") or {})
    return result


def _check_version(kind: str, name: str, raw: Mapping[str, Any] | None, version: str) -> None:
    read_in = split_api_version(str((raw or {}).get("apiVersion") or ""))[1]
    if read_in not in ("", version):
        raise ReadInOtherVersionError(kind, name, read_in, version)
