"""Conversion webhooks: servers that are asked for the objects of a custom resource in another version.

- ``review``: the ConversionReview that is sent, and the objects in the answer, which may change little of their
  metadata (pure)
- ``webhook`` asks for one version of a definition, for stored objects and for those that are to be stored

Who needs converted objects waits for them in :mod:`seamark.api.state.forms`, which keeps them.
"""
