"""The current state in memory: reads and watches are served from here.

- ``entries`` are objects, encoded once; their keys, and the events of their changes
- ``forms`` waits for webhooks that convert objects into the version that is asked for
- ``collection`` is the objects of one kind, with their recent events and their watchers
- ``cache`` follows the store's log and offers every change to its watchers
- ``select`` is which objects a read or a watch is about
- ``versions`` reads resourceVersions and continue tokens
- ``failures`` is what callers are told when the store fails
- ``read`` gets and lists, from memory or from the store's history
- ``watch`` is which events a watch delivers, and a watch for readers in this process
"""
