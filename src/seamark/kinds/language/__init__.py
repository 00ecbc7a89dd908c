"""How objects are described, decoded and written.

- ``shape``: the types of fields, and how Go treats their zero values
- ``shapes``: the shapes of all kinds, read from ``shapes.json``
- ``decode``: brings decoded JSON into the form that Go would give it
- ``scalars``: the same for single values: integers, times, quantities
- ``inner_json``: reads JSON inside other texts, such as annotations and tokens
- ``json_scan``: finds syntax errors and repeated keys in JSON, with Go's messages
- ``protobuf``: decodes Kubernetes' protobuf encoding
- ``protobuf_writing``: encodes objects in it
- ``yaml_body``: reads YAML bodies
- ``yaml_text``: writes YAML as Go does
- ``go_names``: prints values as Go prints its internal structs, for messages
"""
