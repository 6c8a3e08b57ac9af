"""Client packages and this library: their objects as input, its requests as their calls.

* ``plain``: an object of any of the packages as plain JSON;
* ``kubernetes_client``, ``kr8s_client``, ``lightkube_client``: send an ``ApiRequest``
  through a client of that package;
* ``answers``: the answer in the form that the state machines take.

What may live here: what depends on how these packages are made. None of them is imported
before it is used, so each is needed only by those who call its ``send``. Nothing here
keeps state: connections, credentials and threads are the client's.
"""
