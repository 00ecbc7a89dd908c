"""Pod security: what the labels of a Namespace demand of its Pods (Kubernetes' plug-in PodSecurity).

- ``policy``: what the labels say: a level and a version for each of enforce, audit and warn
- ``subject``: a Pod as checks read it, and the words in which they say what is wrong
- ``baseline``: the checks of the level "baseline"
- ``restricted``: those that the level "restricted" adds, or puts in the place of weaker ones
- ``checks``: which checks a level has in a version, and what they find in a Pod
- ``existing``: what a stricter level would say about the Pods that a Namespace has already
- ``measures``: how often something was judged, for ``/metrics``
- ``admission``: the step of admission that refuses Pods, warns, and writes notes for the audit log

All but the last two are pure functions of labels and Pods.  The texts of violations are Kubernetes' own, because
clients show them, and tools search them.
"""
