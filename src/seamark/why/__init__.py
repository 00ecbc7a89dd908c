"""Why a Service has the endpoints it has, or none.

``observe`` reads a cluster (``offline``: manifests) into a :class:`~seamark.why.world.World`.  ``explain`` puts a
Service's case before every check: ``selecting`` (the selector, with ``near`` misses), ``members`` (its Pods, each with
the one fact ``pods`` finds behind it), ``porting``, ``stacks`` (address families), ``written`` (what the controllers
wrote), ``handmade`` (what people wrote), ``external``, ``names``, ``policies``, ``zoning`` and ``standing``.  Whether a
Pod is an endpoint is never decided here: ``membership.judge`` does, as it does for the controllers.  What
the checks find is ranked into a ``report``, which ``render`` shows to people and ``machine`` to programs.
"""
