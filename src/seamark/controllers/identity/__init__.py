"""The controllers of identities: they run beside the API server that signs, because its keys never leave it.

- ``token_secrets``: fills Secrets with the tokens of ServiceAccounts
- ``signing_requests``: approves, signs and deletes CertificateSigningRequests
- ``controllers``: creates these controllers
"""
