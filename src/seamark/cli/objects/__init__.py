"""``seamark get``, ``apply`` and ``delete``: the everyday verbs for machines without kubectl.

They work on any Kubernetes API and use kubectl's words for kinds, flags and tables.  In reading order:

- ``get``: prints tables or objects; ``watch`` is its ``-w``
- ``apply``, ``delete``: create, change and delete objects
- ``kinds``: which kinds a server has, and what ``KIND NAME`` and ``KIND/NAME`` mean
- ``manifests``: the objects in the files of ``-f``
- ``server``: the requests themselves
- ``text``: tables, JSON and YAML
"""
