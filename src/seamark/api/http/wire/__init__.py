"""HTTP/1.1 over TCP and TLS: bytes become requests, answers become bytes.  It knows nothing of Kubernetes.

- ``listener`` accepts connections, ``tls`` encrypts them
- ``incoming`` turns bytes into requests, ``protocol`` answers into bytes, one after the other
- ``messages`` are these requests and answers; ``stream`` is the writing end of an answer that goes on
- ``pieces`` cuts long answers up, whose connections take turns to write
- ``unread`` bounds the memory of clients that do not read their answers
"""
