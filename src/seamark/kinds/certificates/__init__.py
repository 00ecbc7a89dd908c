"""The kinds of certificates.k8s.io.

- ``signing_request``: CertificateSigningRequest, which asks a signer for a certificate
- ``pkcs10``: what is in such a request (PKCS #10), read when it is needed
- ``signers``: which requests the signers of the cluster accept
- ``admission``: who asks, when conditions were set, and which groups no certificate may name
"""
