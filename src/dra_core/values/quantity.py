"""Exact Kubernetes quantities (placeholder until the real one lands)."""

import attrs


@attrs.frozen
class Quantity:
    """An exact amount in billionths."""

    nano: int
    format: str = "DecimalSI"
