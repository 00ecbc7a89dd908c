"""Controllers that a cluster of our own needs, because no kube-controller-manager runs beside it.

None of them runs against a foreign cluster, which has its own control plane.

- ``standalone``: creates all of them, and the workload controllers
- ``everything``: follows the metadata of all objects of all kinds, for the next two
- ``garbage``: deletes objects when the last of their owners is gone
- ``namespaces``: empties namespaces that are being deleted, then removes them
- ``surroundings``: creates the controllers below, as far as the settings ask for them
- ``namespace_contents``: gives every namespace its ``default`` ServiceAccount and the CA certificate
- ``loadbalancers``: gives addresses to Services of type LoadBalancer
- ``loadbalancer_pool``: keeps track of which of these addresses are free (pure)
- ``service_cidrs``: reports when a ServiceCIDR is ready, and keeps it while an address depends on it
- ``address_repair``: makes IPAddresses agree with the cluster IPs of Services
- ``role_aggregation``: gives aggregated ClusterRoles the rules of those that they gather
- ``flow_schemas``: says of FlowSchemas whether their priority level exists
- ``policy_types``: says which expressions of admission policies do not fit what they match
- ``event_expiry``: deletes Events that have not changed for an hour
"""
