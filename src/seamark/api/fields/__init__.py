"""Fields of objects: how patches change them, and which manager owns which.  Pure functions on plain values.

- ``patch`` applies JSON and merge patches, ``strategic`` strategic merge patches
- ``managed`` keeps ``managedFields`` right after ordinary writes; ``apply`` is server-side apply
- ``merging`` merges a configuration into an object and removes fields; ``declared`` refuses fields a kind does not have
- ``typed`` walks objects by their shape and compares them; ``fieldsets`` is the algebra of sets of fields
- ``values`` copies JSON values, and shows them as Go does
"""
