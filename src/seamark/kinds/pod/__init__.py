"""Pod, and the PodSpec that Pods and workloads share.

- ``pod``: the kind: which rules apply to create, update, status and deletion
- ``defaults``: defaults of a PodSpec
- ``admission``: tolerations and topology labels that the cluster adds
- ``validation``: validation of a Pod or Pod template, which calls the modules below
- ``containers``: containers, init containers, ephemeral containers
- ``environment``: environment variables, references to fields of the Pod, relative paths
- ``probes``: probes and lifecycle hooks
- ``mounts``: volume mounts and block devices
- ``resources``: resource names, amounts and sums, and the QoS class
- ``volumes``: volumes and claim templates
- ``security``: security contexts and ``spec.os``
- ``scheduling``: tolerations, affinity, spreading, gates
- ``annotations``: annotations that Kubernetes itself reads
- ``update``: which changes of a Pod are allowed
- ``status``: updates of the status
- ``binding``: assigning a Pod to a node, and evicting it
- ``warnings``: warnings about a PodSpec
- ``row``: the row of ``kubectl get pods``
- ``selector_fields``: the values for field selectors
"""
