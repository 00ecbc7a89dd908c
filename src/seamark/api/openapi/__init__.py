"""What describes the API: discovery and OpenAPI, made from the kinds that are served now.

- ``describe`` answers the paths of both, and keeps OpenAPI documents until a kind appears or vanishes
- ``discovery`` is which groups, versions and resources there are
- ``documents`` is the OpenAPI documents, v2 and v3, with their addresses and ETags
- ``paths`` makes their operations from kinds, ``schemas`` their schemas from shapes, ``field_docs`` has the words
- ``protobuf`` encodes v2 as old clients want it
"""
