"""Health checks of members that users wrote by hand, in annotated EndpointSlices and Endpoints.

:mod:`seamark.rules.probing` says what the annotations mean, and what follows from the results.

- ``checks``: carries out one check: HTTP, TCP, gRPC or a command
- ``probes_controller``: checks the members of each object in rounds, and writes what has changed
"""
