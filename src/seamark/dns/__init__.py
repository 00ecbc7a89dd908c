"""Cluster DNS: the names of a Kubernetes cluster, straight from its state.

A query's way, module by module:

    udp, tcp       take it off a socket (``mmsg``: many at a time) and look among the
    ready          answers kept as bytes, which is all that happens to most; else
    responder      decides who answers: ``static`` records, the cluster's zones, or upstream
    wire           reads the question (``edns``: and whether its options can be read)
    names          what could have this name
    lookup         whether it exists in the ``zone``, what it points to, and why
    answers        the records of the type asked for
    replies        the bytes
    forward        asks others (``upstream``: one of them; ``cache``: what they said)
    transfer       whole zones

and a change's way:

    feed           the cluster's ``objects``, as they change, into the
    zone           which tells the facts that were touched; ``ready`` forgets the answers that rest on them

Put together by ``server`` in one process, by ``workers`` (of ``worker``) in several, set up by ``config``; ``status``
serves health and the ``measures``; ``resolve`` asks as a Pod would.
"""
