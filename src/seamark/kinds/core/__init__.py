"""Kinds of the core group that are neither Pods nor Services, and small kinds of other groups.

- ``namespace``: Namespace
- ``node``: Node
- ``configmap``: ConfigMap
- ``secret``: Secret
- ``serviceaccount``: ServiceAccount; ``tokenrequest``: what a TokenRequest for one may ask, and the claims it gets
- ``automount``: what a Pod gets from its ServiceAccount
- ``event``: Event, in both of its API versions
- ``lease``: Lease
- ``runtimeclass``: RuntimeClass
- ``componentstatus``: ComponentStatus
- ``review``: the reviews, which are answered and never stored
"""
