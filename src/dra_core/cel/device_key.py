"""What a selector reads of a device, as a key.

What may live here: the function that gathers the values that an expression reads, so that
devices with equal values can share a result.
"""

from collections.abc import Callable, Hashable

from dra_core.api.objects import Device
from dra_core.cel.device import DEVICE_PARAMETERS, Devices, SelectorReads
from dra_core.cel.emitter import Module


def key_function(reads: SelectorReads, devices: Devices) -> Callable[[str, Device], Hashable]:
    """The function from driver and device to the key.

    Attributes keep their kind in it, so ``1`` and ``true`` differ. Of quantities only the
    amount counts: nothing in the language shows how one was written. What makes the device
    unusable is part of it, as every expression fails on such a device.
    """
    module = Module(DEVICE_PARAMETERS)
    module.namespace.update(fault=devices.fault)
    parts = ["fault(device)"]
    sources = []
    if reads.driver:
        parts.append("driver")
    if reads.allow_multiple:
        parts.append("device.allow_multiple_allocations")
    for which, names in (("attributes", reads.attributes), ("capacity", reads.capacity)):
        if names is None:
            parts.append(_ALL[which])
        elif names:
            sources.append(f"{which} = device.{which}")
            parts += [_part(module, which, domain, name) for domain, name in names]
    lines = ["def run(driver, device):", *(f" {line}" for line in sources)]
    lines.append(f" return ({', '.join(parts)},)")
    exec(compile("\n".join(lines), "<selector key>", "exec"), module.namespace)
    run: Callable[[str, Device], Hashable] = module.namespace["run"]
    return run


# In the order of the device: what a macro collects comes in that order.
_ALL = {
    "attributes": "tuple(device.attributes.items())",
    "capacity": "tuple([(n, c.value.nano) for n, c in device.capacity.items()])",
}


def _part(module: Module, which: str, domain: str, name: str) -> str:
    """The expression for one value; the same look-up as in ``device.lookup``."""
    full = f"{which}.get({module.constant(f'{domain}/{name}')})"
    bare_name, own = module.constant(name), module.constant(domain)
    bare = f"({which}.get({bare_name}) if driver == {own} else None)"
    if "/" in domain:
        found = "None" if "/" in name else bare
    elif "/" in name:
        found = full
    else:
        found = f"({full} or {bare})"
    return (
        f"(q.value.nano if (q := {found}) is not None else None)" if which == "capacity" else found
    )
