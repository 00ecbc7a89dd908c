"""HOW a request becomes state, and state an answer.

There are two ways in, ``http`` (clients) and ``local`` (components of this process).  Both turn what they are given
into the same plain values, have them authorized, and call the same operations.  The way of a request, read downward:

- ``http`` parses a request and renders the answer; ``openapi`` answers what describes the API itself
- ``local`` is the ``Cluster`` seam: Python values in, the caller's types out
- ``authentication`` finds the user of a request (``identity`` has the tokens of ServiceAccounts), ``impersonation``
  whom he acts as, ``authorization`` decides what that user may do (by ``rbac`` if roles decide), ``audit`` logs who did
  what
- ``call`` has the plain values: the target, the caller and the options of one call
- ``operations`` are the verbs: get, list, watch, create, update, patch, apply, delete, delete_all
- ``posted`` does what documents ask that are not stored: reviews, bindings, evictions
- ``inquiry`` answers what reviews and TokenRequests ask about users, rights and objects
- ``intake`` makes objects of documents and checks that they are what the path says
- ``edits`` computes the result of a patch or an apply; ``fields`` has the patch types and the field managers
- ``write`` is the write path, one function read downward: default, admit, allocate, validate, commit; ``delete`` ends
  objects; ``admission`` and ``allocation`` are steps of both, ``turns`` lets writers of one object wait for each other
- ``webhooks`` is the step of admission that asks webhooks
- ``outgoing`` is how the server itself calls others over HTTPS
- ``policies`` evaluates admission policies
- ``aggregation`` passes requests on to the servers that APIServices name
- ``streaming`` leads into Pods: logs, commands, ports, proxied requests
- ``custom`` serves the kinds that definitions define, as they come and go; ``conversion`` asks webhooks for objects in
  another version
- ``state`` is everything current, in memory, which reads and watches are served from

``server`` puts all of this together, ``bootstrap`` creates what every cluster has, ``certificates`` keeps the server's
identity, whose X.509 ``signing`` makes, ``renewal`` follows its files while the server runs, ``settings`` are those of
the server, of tokens and of Services.  What differs from kind to kind (subresources, allocation, reviews) are hooks of
``seamark.kinds.kind.Kind``.
"""
