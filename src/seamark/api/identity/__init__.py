"""The identity of ServiceAccounts: signed tokens (JWT), made and believed here; and who may approve certificates.

- ``keys``: the keys that tokens are signed and verified with, read from files that may change while the server runs
- ``claims``: the contents of a token, and the user that they stand for
- ``tokens``: signs tokens, and finds the user of one: its signature, its time, its audience, and whether the
  ServiceAccount and the object it is bound to are still there
- ``signers``: the rights to approve and to sign CertificateSigningRequests

The documents by which others verify our tokens are in ``seamark.api.http.issuer``.  What a TokenRequest may ask for
is a rule of its kind: ``seamark.kinds.core.tokenrequest``.
"""
