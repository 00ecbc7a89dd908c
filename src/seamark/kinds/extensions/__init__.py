"""CustomResourceDefinition, and the kinds that definitions define.  Pure: ``seamark.api.custom`` serves them.

- ``definition``: the kind CustomResourceDefinition: defaults, validation, update rules, columns
- ``versions``: what a version of a definition must satisfy: columns, subresources, selectable fields
- ``structural``: what a schema must satisfy to be a structural one
- ``schemas``: small questions about schemas that the other modules share
- ``regex``: patterns as Go writes them
- ``jsonpaths``: the simple paths (``.spec.replicas``) that definitions name fields by
- ``names``: which names of a definition are accepted, and the conditions that say so
- ``outlines``: definitions whose schemas are still text, since most of them are never used
- ``filling``: removes what a schema does not know, and fills in its defaults
- ``checking``: a schema compiled into a validator of instances
- ``quick``: the same as a plain yes or no, which is all that most instances need
- ``rules``: x-kubernetes-validations, compiled; ``rule_checks``: what they must satisfy when a definition is made
- ``formats``: the formats of texts that are checked
- ``shapes_of_schemas``: a schema as a shape, for server-side apply and OpenAPI
- ``custom``: the kind that one version of a definition defines
"""
