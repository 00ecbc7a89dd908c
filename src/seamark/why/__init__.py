"""Why a Service has the endpoints it has, or none.

Nothing is decided here.  Whether a Pod is an endpoint, what should be written and which hints it should have is asked
of :mod:`seamark.rules`, by the same functions that the controllers run.  Reading order:

- ``codes``: the stable reason codes, one for each thing that can be wrong
- ``evidence``: what a finding rests on: fields, Events, searches, readings of the clock
- ``finding``: one thing that is wrong: its code, the cause in a sentence, and the commands that would repair it
- ``views``: objects as ``why`` reads them
- ``world``: a cluster as it was read at one moment
- ``observe``: reads a world from a cluster
- ``offline``: reads a world from manifests
- ``validation``: what the API server would refuse manifests for
- ``case``: one Service of a world, with the verdicts on its Pods and what the controllers should have written
- ``checks``: what can be wrong with a case
- ``report``: what is said about one thing, and how programs read it
- ``explain``: the report on a Service
- ``explain_way``: the report on a connection to a Service, from a Pod, a node or outside
- ``explain_pod``: the report on a Pod
- ``explain_name``: the report on a DNS name
- ``audit``: Endpoints and EndpointSlices that should be deleted or repaired
- ``look``: reads a cluster and reports
- ``doctor``: whether the machinery itself is well
- ``telling``: reports whenever something changes, causes as Events and as metrics
- ``render``: reports as text for people
- ``recall``: reads the past versions of objects from a server
- ``history``: when addresses came and went, and why
"""
