"""The kinds of certificates.k8s.io.

- ``signing_request``: CertificateSigningRequest, which asks a signer for a certificate
- ``trust_bundle``: ClusterTrustBundle, the certificates of authorities
- ``pod_certificate_request``: PodCertificateRequest, which asks a signer for the certificate of a Pod
- ``pkcs10``: what is in a request (PKCS #10) and in certificates, read when it is needed
- ``signers``: which requests the signers of the cluster accept
- ``admission``: who asks, when conditions were set, and which groups no certificate may name
"""
