"""Answers as JSON or YAML for programs.

What may live here: the documented form of the output (docs/guides/cli.md) and writing
it. Members are added, never renamed or removed, while ``version`` stays the same.

Parameters of opaque configuration may hold secrets: they are left out, the rest of the
entry stays.
"""

import json
from typing import Any, Final

from dra_core.api import wire
from dra_core.api.objects import AllocationResult
from dra_core.cli import named
from dra_core.cli.judge import Answer, ClaimUse, NodeAnswer, Verdict
from dra_core.cli.load import api_version_of
from dra_core.cli.report import Report
from dra_core.cli.text import NOT_CONSIDERED
from dra_core.cli.yaml_values import YamlMissingError
from dra_core.explanation import Cause
from dra_core.v1alpha2.objects import AllocationResult as NamedResult

FORM_VERSION: Final = 1

_NUMBER_STARTS: Final = tuple("0123456789+-.")

Json = dict[str, Any]


def report_json(report: Report) -> Json:
    """The whole report in its documented form; decoded JSON."""
    verdicts = [answer.verdict for answer in report.answers]
    return {
        "version": FORM_VERSION,
        "summary": {
            "judged": len(verdicts),
            "fit": verdicts.count(Verdict.FITS),
            "fitNowhere": verdicts.count(Verdict.DOES_NOT_FIT),
            "undecided": verdicts.count(Verdict.UNDECIDED),
            "nodes": len(report.nodes),
        },
        "notes": [NOT_CONSIDERED.rstrip("."), *report.notes],
        "answers": [_answer(answer) for answer in report.answers],
    }


def as_json(value: Json) -> str:
    """JSON with escapes for everything beyond ASCII, lone surrogates too."""
    return json.dumps(value, indent=2)


def as_yaml(value: Json) -> str:
    """YAML. Raises ``YamlMissingError``."""
    try:
        import yaml
    except ImportError:
        raise YamlMissingError from None
    # The pure Python dumper: the other one fails on lone surrogates.
    text: str = yaml.dump(value, Dumper=_plain_dumper(yaml), sort_keys=False, width=100)
    return text.rstrip("\n")


def _plain_dumper(yaml: Any) -> Any:
    """A dumper without aliases, that quotes what any reader may take for a number.

    PyYAML writes ``1e3`` without quotes, which is a number to everybody else.
    """

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = "'" if value[:1] in _NUMBER_STARTS else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    return Dumper


def _answer(answer: Answer) -> Json:
    return {
        "kind": answer.kind,
        "name": answer.name,
        "verdict": answer.verdict.value,
        "assignedNode": answer.assigned or None,
        "finished": answer.finished,
        "claims": [_use(use) for use in answer.uses],
        "problem": [_cause(cause) for cause in answer.problem],
        "nodes": [_node(node, answer) for node in answer.nodes],
    }


def _use(use: ClaimUse) -> Json:
    return {
        "entry": use.entry or None,
        "name": use.name or None,
        "template": use.template or None,
        "state": use.state.value,
    }


def _node(node: NodeAnswer, answer: Answer) -> Json:
    pairs = zip(answer.open_claims, node.results, strict=False)
    return {
        "name": node.node,
        "verdict": node.verdict.value,
        "steps": node.steps,
        "allocations": [_allocation(use, result) for use, result in pairs],
        "causes": [_cause(cause) for cause in node.causes],
    }


def _allocation(use: ClaimUse, result: AllocationResult) -> Json:
    version = api_version_of(use.claim) if use.claim is not None else "v1"
    if isinstance(result, NamedResult):
        encoded = named.allocation_json(result)
    else:
        encoded = wire.encode_allocation_result(result, version)
        for entry in encoded.get("devices", {}).get("config", ()):
            if "opaque" in entry:
                entry["opaque"].pop("parameters", None)
    return {
        "claim": use.label,
        "apiVersion": f"resource.k8s.io/{version}",
        "allocation": encoded,
    }


def _cause(cause: Cause) -> Json:
    told: Json = {"kind": str(cause.kind), "text": cause.text}
    if cause.because:
        told["because"] = [_cause(behind) for behind in cause.because]
    return told
