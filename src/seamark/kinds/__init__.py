"""WHAT objects are: the shape, defaults, validation, update rules and table columns of every kind.  Pure: no I/O.

- ``resource``: the identity of a kind in the API: group, version, plural
- ``kind``: the base class of all kinds, with the rules that the API server calls
- ``subresource``: what a kind's subresources do: parts of an object, views of it, actions on it
- ``allocation``: how a kind takes addresses and ports from the cluster's ranges
- ``admission``: rules that depend on other objects, as plug-ins of the write path
- ``counted``: kinds whose generation counts the changes of their spec
- ``conversion``: how a webhook converts objects between the versions of a kind
- ``inquiry``: what a review may ask the API server
- ``table``: the built-in kinds, and the kinds that one server serves, which come and go while it runs
- ``dynamic``: kinds made from data while the server runs
- ``wellknown``: Kubernetes' well-known labels, annotations, taints and limits
- ``language``: how objects are described, decoded and written: shapes, JSON, YAML, protobuf
- ``values``: the parts that kinds share: metadata, labels, addresses, ports, times, quantities
- ``core``: ConfigMap, Secret, Event, Lease, Namespace, Node, ServiceAccount, and the reviews
- ``service``: Service, Endpoints, EndpointSlice, IPAddress, ServiceCIDR
- ``networking``: Ingress, IngressClass, NetworkPolicy
- ``storage``: PersistentVolumeClaim, PersistentVolume, StorageClass, and what storage drivers say of themselves
- ``autoscaling``: HorizontalPodAutoscaler
- ``registration``: APIService, webhook configurations, admission policies
- ``expressions``: what expressions in the Common Expression Language see of objects: types, quantities, formats
- ``extensions``: CustomResourceDefinition, and the kinds that definitions define
- ``flowcontrol``: FlowSchema, PriorityLevelConfiguration
- ``devices``: DeviceClass, ResourceClaim and the like
- ``pod``: Pod, and the PodSpec that workloads share with it
- ``podsecurity``: what the labels of a Namespace demand of its Pods
- ``batch``: Job, CronJob
- ``policy``: ResourceQuota, LimitRange, PodDisruptionBudget, PriorityClass
- ``rbac``: Role, ClusterRole, RoleBinding, ClusterRoleBinding
- ``certificates``: CertificateSigningRequest
- ``workloads``: Deployment, ReplicaSet, ReplicationController, StatefulSet, DaemonSet, ControllerRevision

A new kind is one module with a subclass of ``kind.Kind``, and one row in ``table``.  A kind that comes at run
time is an instance of ``dynamic.DynamicKind`` instead.
"""
