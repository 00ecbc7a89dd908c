"""Admission webhooks: servers that are asked about writes, and may refuse or edit them.

The way of a question, read downward:

- ``plugin`` is the step of admission: which webhooks are to be asked, in which order, and what follows from the answers
- ``hooks``: a webhook as its configuration describes it, and the index that finds those of a request
- ``review``: the AdmissionReview that is sent, and what the answer says (pure)
- ``evaluating``: whether its conditions hold, found out in a thread if that takes long; policies use it too
- ``asking`` sends it, and measures
- ``patching``: what the patch in an answer makes of the object
- ``reinvoking``: which are asked once more, because the object changed after they saw it
"""
