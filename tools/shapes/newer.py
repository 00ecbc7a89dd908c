"""What is known about fields younger than the Go sources the generator reads, kept by hand.

Young fields follow the API conventions closely, so :func:`by_convention` is right for nearly all of them;
``EXCEPTIONS`` lists the rest, and ``GO_TYPES`` the named types that appear in decoding errors.
"""

from __future__ import annotations

CORE = "io.k8s.api.core.v1."

EXCEPTIONS = {
    # optional strings that are pointers in Go, so that an empty one stays
    CORE + "AppArmorProfile.localhostProfile": "keep",
    CORE + "ClusterTrustBundleProjection.name": "keep",
    CORE + "ClusterTrustBundleProjection.signerName": "keep",
    CORE + "Container.restartPolicy": "keep",
    CORE + "ContainerStatus.stopSignal": "keep",
    CORE + "EphemeralContainer.restartPolicy": "keep",
    CORE + "GRPCAction.mode": "keep",
    CORE + "HTTPGetAction.protocol": "keep",
    CORE + "Lifecycle.stopSignal": "keep",
    CORE + "LoadBalancerIngress.ipMode": "keep",
    CORE + "PersistentVolumeClaimSpec.volumeAttributesClassName": "keep",
    CORE + "PersistentVolumeClaimStatus.currentVolumeAttributesClassName": "keep",
    CORE + "PodResourceClaim.resourceClaimName": "keep",
    CORE + "PodResourceClaim.resourceClaimTemplateName": "keep",
    CORE + "PodResourceClaimStatus.resourceClaimName": "keep",
    CORE + "PodSchedulingGroup.podGroupName": "keep",
    CORE + "PodSecurityContext.seLinuxChangePolicy": "keep",
    CORE + "PodSecurityContext.supplementalGroupsPolicy": "keep",
    CORE + "PodSpec.hostnameOverride": "keep",
    CORE + "ResourceHealth.message": "keep",
    CORE + "ServiceSpec.internalTrafficPolicy": "keep",
    CORE + "ServiceSpec.loadBalancerClass": "keep",
    CORE + "ServiceSpec.trafficDistribution": "keep",
    CORE + "TopologySpreadConstraint.nodeAffinityPolicy": "keep",
    CORE + "TopologySpreadConstraint.nodeTaintsPolicy": "keep",
    CORE + "TypedObjectReference.namespace": "keep",
    CORE + "VolumeMount.recursiveReadOnly": "keep",
    CORE + "VolumeMountStatus.recursiveReadOnly": "keep",
    "io.k8s.api.coordination.v1.LeaseSpec.preferredHolder": "keep",
    "io.k8s.api.coordination.v1.LeaseSpec.strategy": "keep",
    "io.k8s.api.discovery.v1.Endpoint.zone": "keep",
    # optional numbers and booleans that are plain values
    CORE + "PodCondition.observedGeneration": "drop",
    CORE + "PodStatus.observedGeneration": "drop",
    CORE + "VolumeMountStatus.readOnly": "drop",
    "io.k8s.api.apps.v1.StatefulSetSpec.minReadySeconds": "drop",
    # plain values without omitempty, though optional
    CORE + "NodeRuntimeHandler.name": "fill",
    "io.k8s.api.apps.v1.StatefulSetOrdinals.start": "fill",
    "io.k8s.api.apps.v1.StatefulSetStatus.availableReplicas": "fill",
    # pointers without omitempty
    CORE + "GRPCAction.service": "null",
    CORE + "TypedObjectReference.apiGroup": "null",
    # required, yet omitempty
    CORE + "PodCertificateProjection.keyType": "drop",
    CORE + "PodCertificateProjection.signerName": "drop",
    "io.k8s.api.networking.v1.ParentReference.name": "drop",
    "io.k8s.api.networking.v1.ParentReference.resource": "drop",
    "io.k8s.api.networking.v1.IPAddressSpec.parentRef": "keep",
    # structs that are plain values
    "io.k8s.api.authentication.v1.SelfSubjectReviewStatus.userInfo": "fill",
    # ``omitzero``, since 1.34
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.creationTimestamp": "drop",
}

GO_TYPES = {
    CORE + "AppArmorProfile.type": "v1.AppArmorProfileType",
    CORE + "Container.restartPolicy": "v1.ContainerRestartPolicy",
    CORE + "EphemeralContainer.restartPolicy": "v1.ContainerRestartPolicy",
    CORE + "ContainerResizePolicy.resourceName": "v1.ResourceName",
    CORE + "ContainerResizePolicy.restartPolicy": "v1.ResourceResizeRestartPolicy",
    CORE + "Lifecycle.stopSignal": "v1.Signal",
    CORE + "LoadBalancerIngress.ipMode": "v1.LoadBalancerIPMode",
    CORE + "PodOS.name": "v1.OSName",
    CORE + "PodSecurityContext.seLinuxChangePolicy": "v1.PodSELinuxChangePolicy",
    CORE + "PodSecurityContext.supplementalGroupsPolicy": "v1.SupplementalGroupsPolicy",
    CORE + "ServiceSpec.internalTrafficPolicy": "v1.ServiceInternalTrafficPolicy",
    CORE + "ServiceSpec.externalTrafficPolicy": "v1.ServiceExternalTrafficPolicy",
    CORE + "ServiceSpec.ipFamilyPolicy": "v1.IPFamilyPolicy",
    CORE + "TopologySpreadConstraint.nodeAffinityPolicy": "v1.NodeInclusionPolicy",
    CORE + "TopologySpreadConstraint.nodeTaintsPolicy": "v1.NodeInclusionPolicy",
    CORE + "VolumeMount.recursiveReadOnly": "v1.RecursiveReadOnlyMode",
    "io.k8s.api.coordination.v1.LeaseSpec.strategy": "v1.CoordinatedLeaseStrategy",
}

# Values OpenAPI documents (the JSON schemas leave them out); zero values are not listed.
DEFAULTS: dict[str, str] = {
    CORE + "AzureDiskVolumeSource.cachingMode": "ReadWrite",
    CORE + "AzureDiskVolumeSource.fsType": "ext4",
    CORE + "AzureDiskVolumeSource.kind": "Shared",
    CORE + "ContainerPort.protocol": "TCP",
    CORE + "ISCSIVolumeSource.iscsiInterface": "default",
    CORE + "RBDVolumeSource.keyring": "/etc/ceph/keyring",
    CORE + "RBDVolumeSource.pool": "rbd",
    CORE + "RBDVolumeSource.user": "admin",
    CORE + "ScaleIOVolumeSource.fsType": "xfs",
    CORE + "ScaleIOVolumeSource.storageMode": "ThinProvisioned",
    CORE + "ServicePort.protocol": "TCP",
}


APPS = "io.k8s.api.apps.v1."
AUTHENTICATION = "io.k8s.api.authentication.v1."
AUTHORIZATION = "io.k8s.api.authorization.v1."
DISCOVERY = "io.k8s.api.discovery.v1."
NETWORKING = "io.k8s.api.networking.v1."

# Protobuf numbers that neither the Go source nor the descriptors have.
NUMBERS: dict[str, tuple[int, ...]] = {
    APPS + "DeploymentStatus.terminatingReplicas": (9,),
    APPS + "ReplicaSetStatus.terminatingReplicas": (7,),
    APPS + "RollingUpdateDaemonSet.maxSurge": (2,),
    APPS + "RollingUpdateStatefulSetStrategy.maxUnavailable": (2,),
    APPS + "StatefulSetOrdinals.start": (1,),
    APPS + "StatefulSetPersistentVolumeClaimRetentionPolicy.whenDeleted": (1,),
    APPS + "StatefulSetPersistentVolumeClaimRetentionPolicy.whenScaled": (2,),
    APPS + "StatefulSetSpec.minReadySeconds": (9,),
    APPS + "StatefulSetSpec.persistentVolumeClaimRetentionPolicy": (10,),
    APPS + "StatefulSetSpec.ordinals": (11,),
    APPS + "StatefulSetStatus.availableReplicas": (11,),
    AUTHENTICATION + "SelfSubjectReview.metadata": (1,),
    AUTHENTICATION + "SelfSubjectReview.status": (2,),
    AUTHENTICATION + "SelfSubjectReviewStatus.userInfo": (1,),
    AUTHORIZATION + "FieldSelectorAttributes.rawSelector": (1,),
    AUTHORIZATION + "FieldSelectorAttributes.requirements": (2,),
    AUTHORIZATION + "LabelSelectorAttributes.rawSelector": (1,),
    AUTHORIZATION + "LabelSelectorAttributes.requirements": (2,),
    AUTHORIZATION + "ResourceAttributes.fieldSelector": (8,),
    AUTHORIZATION + "ResourceAttributes.labelSelector": (9,),
    "io.k8s.api.coordination.v1.LeaseSpec.strategy": (6,),
    "io.k8s.api.coordination.v1.LeaseSpec.preferredHolder": (7,),
    CORE + "ClusterTrustBundleProjection.user": (6,),
    CORE + "ConfigMapVolumeSource.defaultUser": (5,),
    CORE + "Container.restartPolicyRules": (25,),
    CORE + "ContainerExtendedResourceRequest.containerName": (1,),
    CORE + "ContainerExtendedResourceRequest.resourceName": (2,),
    CORE + "ContainerExtendedResourceRequest.requestName": (3,),
    CORE + "ContainerRestartRule.action": (1,),
    CORE + "ContainerRestartRule.exitCodes": (2,),
    CORE + "ContainerRestartRuleOnExitCodes.operator": (1,),
    CORE + "ContainerRestartRuleOnExitCodes.values": (2,),
    CORE + "ContainerStatus.stopSignal": (15,),
    CORE + "DownwardAPIVolumeFile.user": (5,),
    CORE + "DownwardAPIVolumeSource.defaultUser": (3,),
    CORE + "EmptyDirVolumeSource.mode": (3,),
    CORE + "EnvVarSource.fileKeyRef": (5,),
    CORE + "EphemeralContainer.restartPolicyRules": (1, 25),
    CORE + "EvictionResponder.name": (1,),
    CORE + "EvictionResponder.priority": (2,),
    CORE + "FileKeySelector.volumeName": (1,),
    CORE + "FileKeySelector.path": (2,),
    CORE + "FileKeySelector.key": (3,),
    CORE + "FileKeySelector.optional": (4,),
    CORE + "GRPCAction.mode": (3,),
    CORE + "HTTPGetAction.protocol": (6,),
    CORE + "ImageVolumeStatus.imageRef": (1,),
    CORE + "KeyToPath.user": (4,),
    CORE + "Lifecycle.stopSignal": (3,),
    CORE + "NodeAllocatableMappedResources.name": (1,),
    CORE + "NodeAllocatableMappedResources.quantity": (2,),
    CORE + "NodeAllocatableOverheadResources.name": (1,),
    CORE + "NodeAllocatableOverheadResources.perPod": (2,),
    CORE + "NodeAllocatableOverheadResources.perContainer": (3,),
    CORE + "NodeAllocatableResourceClaimStatus.resourceClaimName": (1,),
    CORE + "NodeAllocatableResourceClaimStatus.containers": (2,),
    CORE + "NodeAllocatableResourceClaimStatus.mapping": (4,),
    CORE + "NodeAllocatableResourceClaimStatus.overhead": (5,),
    CORE + "NodePodPreemptionPolicy.disableResizePreemption": (1,),
    CORE + "NodeSpec.podPreemptionPolicy": (8,),
    CORE + "NodeStatus.declaredFeatures": (14,),
    CORE + "NodeSwapStatus.capacity": (1,),
    CORE + "NodeSystemInfo.swap": (11,),
    CORE + "NodeSystemInfo.runningInUserNamespace": (12,),
    CORE + "PersistentVolumeClaimStatus.healthStatus": (10,),
    CORE + "PodCertificateProjection.signerName": (1,),
    CORE + "PodCertificateProjection.keyType": (2,),
    CORE + "PodCertificateProjection.maxExpirationSeconds": (3,),
    CORE + "PodCertificateProjection.credentialBundlePath": (4,),
    CORE + "PodCertificateProjection.keyPath": (5,),
    CORE + "PodCertificateProjection.certificateChainPath": (6,),
    CORE + "PodCertificateProjection.userAnnotations": (7,),
    CORE + "PodCertificateProjection.user": (8,),
    CORE + "PodCondition.observedGeneration": (7,),
    CORE + "PodExtendedResourceClaimStatus.requestMappings": (1,),
    CORE + "PodExtendedResourceClaimStatus.resourceClaimName": (2,),
    CORE + "PodSchedulingGroup.podGroupName": (1,),
    CORE + "PodSpec.hostnameOverride": (41,),
    CORE + "PodSpec.schedulingGroup": (43,),
    CORE + "PodSpec.evictionResponders": (44,),
    CORE + "PodStatus.observedGeneration": (17,),
    CORE + "PodStatus.extendedResourceClaimStatus": (18,),
    CORE + "PodStatus.allocatedResources": (19,),
    CORE + "PodStatus.resources": (20,),
    CORE + "PodStatus.nodeAllocatableResourceClaimStatuses": (21,),
    CORE + "PodStatus.volumeHealth": (22,),
    CORE + "PodVolumeHealth.name": (1,),
    CORE + "PodVolumeHealth.healthConditions": (2,),
    CORE + "PodVolumeHealth.lastTransitionTime": (3,),
    CORE + "ProjectedVolumeSource.defaultUser": (3,),
    CORE + "ResourceHealth.message": (6,),
    CORE + "SecretVolumeSource.defaultUser": (5,),
    CORE + "ServiceAccountTokenProjection.user": (4,),
    CORE + "VolumeHealthCondition.status": (1,),
    CORE + "VolumeHealthCondition.reason": (2,),
    CORE + "VolumeHealthCondition.message": (3,),
    CORE + "VolumeHealthStatus.healthConditions": (1,),
    CORE + "VolumeHealthStatus.lastTransitionTime": (2,),
    CORE + "VolumeMount.bindMountOptions": (8,),
    CORE + "VolumeMountStatus.volumeStatus": (5,),
    CORE + "VolumeProjection.podCertificate": (6,),
    CORE + "VolumeStatus.image": (1,),
    DISCOVERY + "Endpoint.deprecatedTopology": (5,),
    DISCOVERY + "Endpoint.zone": (7,),
    DISCOVERY + "Endpoint.hints": (8,),
    DISCOVERY + "EndpointHints.forZones": (1,),
    DISCOVERY + "EndpointHints.forNodes": (2,),
    DISCOVERY + "ForNode.name": (1,),
    DISCOVERY + "ForZone.name": (1,),
    NETWORKING + "IPAddress.metadata": (1,),
    NETWORKING + "IPAddress.spec": (2,),
    NETWORKING + "IPAddressList.metadata": (1,),
    NETWORKING + "IPAddressList.items": (2,),
    NETWORKING + "IPAddressSpec.parentRef": (1,),
    NETWORKING + "ParentReference.group": (1,),
    NETWORKING + "ParentReference.resource": (2,),
    NETWORKING + "ParentReference.namespace": (3,),
    NETWORKING + "ParentReference.name": (4,),
    NETWORKING + "ServiceCIDR.metadata": (1,),
    NETWORKING + "ServiceCIDR.spec": (2,),
    NETWORKING + "ServiceCIDR.status": (3,),
    NETWORKING + "ServiceCIDRList.metadata": (1,),
    NETWORKING + "ServiceCIDRList.items": (2,),
    NETWORKING + "ServiceCIDRSpec.cidrs": (1,),
    NETWORKING + "ServiceCIDRStatus.conditions": (1,),
}


def by_convention(field: str, kind: str, *, required: bool) -> str:
    """The zero rule of a young field; ``kind`` is one of struct, list, map, or a scalar's name."""
    name = field.rsplit(".", 1)[-1]
    if kind in ("list", "map"):
        return "fill" if required else "drop"
    if kind == "struct":
        # Only a kind's own parts are plain structs; those nested deeper are pointers.
        return "fill" if required or name in ("metadata", "spec", "status") else "keep"
    if required:
        return "fill"
    return "drop" if kind == "string" else "keep"
