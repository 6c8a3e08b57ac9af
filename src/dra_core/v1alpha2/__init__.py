"""resource.k8s.io/v1alpha2: named resources and classic parameters (Kubernetes 1.27 – 1.30).

What may live here: everything that only this version has. Its kinds have another shape
than those of every later version, so they are not decoded into ``dra_core.api.objects``;
its claims are, as far as they have the same parts, so that names, reservations, the
assume cache, claims in flight and bindings work for them as for any other claim. No room
below the command line imports this one.

* ``objects``, ``claims``, ``wire``, ``validation``: the kinds, their JSON form, their rules;
* ``parameters``: the parameters that a claim and its class mean;
* ``selectors``: CEL over ``attributes``;
* ``inventory``, ``plan``, ``search``, ``allocation``: allocating instances on a node;
* ``status``: changes of claims as requests to the API server;
* ``source``, ``kinds``, ``wakeups``: its claims in scheduling cycles, and in wake-ups.
"""
