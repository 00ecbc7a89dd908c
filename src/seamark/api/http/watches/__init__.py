"""Watches over HTTP: a watch is offered events by the cache and writes them to its client.

- ``opening``: opens watches, counts them, and ends them all when the server stops
- ``alike``: watches that see the same; an event is looked at once for all of them, encoded once, and its bytes go to
  every client, once per batch
- ``rounds``: lets them take turns where an event is large and they are many
- ``watch``: one of them, from its beginning to its end

A slow client takes no more memory than one that reads, apart from what its socket's buffers hold: it gets the events
that it missed from those that the cache keeps for all, and its watch ends if they are gone.
"""
