"""HOW a request becomes state, and state an answer.

The way of a request, top to bottom:

- ``listener``, ``http``: sockets; bytes become a Request, an answer becomes bytes
- ``application``: who asks (``auth``), what is meant (``target``, ``options``, ``negotiate``), may they; the one place
  where an error becomes a ``Status``
- ``documents``, ``describe``, ``discovery``, ``openapi*``: answers that are no objects
- ``call``: a request on its way; ``verbs``, ``subresource_verbs``: what each verb does; ``reviews`` are the odd ones;
  ``identity`` checks that what is written is what the path says; ``answers``: what comes back
- ``body``: what was sent; ``edits``, ``patch``, ``strategic``, ``apply`` what it makes of what is there; ``managed``,
  ``fieldsets``, ``typed`` who owns which field
- ``write``: the write path, one function read downward; ``admission``, ``reserve``, ``allocate`` its steps; ``delete``
- ``cache``: everything current, in memory, encoded once; ``read``, ``select``, ``render`` make answers of it
- ``watch``, ``bookmark``: those who want to know what changes

``core`` is what all ways in share, ``server`` puts it together, ``local`` is the same for components in this process,
``bootstrap`` makes what every cluster has, ``certificates`` the server's identity.  ``settings`` are those of the
server and of the network of Services.
"""
