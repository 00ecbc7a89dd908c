"""What describes the API: discovery and OpenAPI, made from the kinds that are served now.

- ``discovery`` answers which groups, versions and resources there are
- ``documents`` answers with OpenAPI documents, v2 and v3, by address and ETag
- ``paths`` makes their operations from kinds, ``schemas`` their schemas from shapes, ``field_docs`` has the words
- ``protobuf_v2`` and ``protobuf_v3`` encode documents as clients in Go want them, by the members of ``messages``
"""
