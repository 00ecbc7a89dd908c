"""How the API server itself calls out over HTTPS: webhooks, conversion webhooks, aggregated API servers.

- ``targets``: what a client configuration names, and the addresses that a reference to a Service leads to (pure)
- ``calling``: sends requests there, over a pool of TLS connections
"""
