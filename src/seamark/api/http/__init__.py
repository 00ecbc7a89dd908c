"""HTTP: a request becomes a call of the operations, its result an answer.

- ``wire`` reads requests from connections and writes answers to them, and knows nothing of Kubernetes
- ``application`` answers every request: the order of all checks, and the one place where an error becomes a ``Status``
- ``fairness`` lets users take turns when there is too much to do; ``levels`` says who need not, by FlowSchemas
- ``auditing`` writes requests and their answers to the audit log
- ``documents`` answers what is not an object: health, version, metrics, discovery; ``issuer`` how to verify our tokens
- ``url`` is what a path and a query ask for, ``body`` what a body holds
- ``negotiate`` is the representation a client accepts: JSON, YAML or protobuf, the object, its metadata or a Table;
  indented or compressed
- ``verbs`` calls the operation of each verb and answers with its result
- ``render`` makes the bytes of objects and lists, ``watches`` streams events, ``websocket`` to browsers
"""
