"""Services and Pods of any cluster on this machine's loopback addresses, for ``seamark port-forward`` and ``forward``.

- ``ports``: ``8080:80`` and the other forms of a port to forward (pure)
- ``backends``: which endpoints can take a connection, and which takes the next one (pure)
- ``targets``: follows what ``port-forward`` was asked for: a Service, a Pod or the Pods of a workload
- ``dialing``: connects to a backend: to a Pod through the API server, to any other address directly
- ``relay``: moves bytes between a client and a backend until both have ended
- ``listener``: a local port whose connections go to backends
- ``loopback``: an address for each Service, and the port to use where its own is refused (pure)
- ``services``: every Service of a namespace on an address of its own, as Services come and go
- ``names``: a DNS server that answers with these addresses
"""
