"""What is known about fields younger than the Go sources the generator reads, kept by hand.

Young fields follow the API conventions closely, so :func:`by_convention` is right for nearly all of them;
``EXCEPTIONS`` lists the rest, and ``GO_TYPES`` the named types that appear in decoding errors.
"""

from __future__ import annotations

AUTOSCALING = "io.k8s.api.autoscaling.v2."
CERTIFICATES = "io.k8s.api.certificates.v1."
CORE = "io.k8s.api.core.v1."
EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
STORAGE = "io.k8s.api.storage.v1."

EXCEPTIONS = {
    # optional strings that are pointers in Go, so that an empty one stays
    CORE + "GRPCAction.mode": "keep",
    CORE + "HTTPGetAction.protocol": "keep",
    CORE + "PodSchedulingGroup.podGroupName": "keep",
    CORE + "PodSpec.hostnameOverride": "keep",
    CORE + "ResourceHealth.message": "keep",
    STORAGE + "StorageHealthCondition.accessMode": "keep",
    STORAGE + "StorageHealthCondition.volumeMode": "keep",
    # required, yet a pointer
    "io.k8s.api.resource.v1.CapacityRequestPolicyRange.min": "keep",
    # optional numbers that are plain values
    AUTOSCALING + "HorizontalPodAutoscalerCondition.observedGeneration": "drop",
    EXTENSIONS + "CustomResourceDefinitionCondition.observedGeneration": "drop",
    EXTENSIONS + "CustomResourceDefinitionStatus.observedGeneration": "drop",
    # required, yet omitempty
    CORE + "PodCertificateProjection.keyType": "drop",
    CORE + "PodCertificateProjection.signerName": "drop",
    # Kubernetes' message about an empty list differs from that about none, so the kind itself drops it.
    "io.k8s.api.networking.v1.IngressSpec.rules": "keep",
    # ``omitzero``, since 1.34
    STORAGE + "CSINode.status": "keep",
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta.creationTimestamp": "drop",
}

GO_TYPES: dict[str, str] = {}

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

# Protobuf numbers that neither the Go source nor the descriptors have.
NUMBERS: dict[str, tuple[int, ...]] = {
    AUTOSCALING + "HorizontalPodAutoscalerCondition.observedGeneration": (6,),
    CERTIFICATES + "PodCertificateRequest.metadata": (1,),
    CERTIFICATES + "PodCertificateRequest.spec": (2,),
    CERTIFICATES + "PodCertificateRequest.status": (3,),
    CERTIFICATES + "PodCertificateRequestList.metadata": (1,),
    CERTIFICATES + "PodCertificateRequestList.items": (2,),
    CERTIFICATES + "PodCertificateRequestSpec.signerName": (1,),
    CERTIFICATES + "PodCertificateRequestSpec.podName": (2,),
    CERTIFICATES + "PodCertificateRequestSpec.podUID": (3,),
    CERTIFICATES + "PodCertificateRequestSpec.serviceAccountName": (4,),
    CERTIFICATES + "PodCertificateRequestSpec.serviceAccountUID": (5,),
    CERTIFICATES + "PodCertificateRequestSpec.nodeName": (6,),
    CERTIFICATES + "PodCertificateRequestSpec.nodeUID": (7,),
    CERTIFICATES + "PodCertificateRequestSpec.maxExpirationSeconds": (8,),
    CERTIFICATES + "PodCertificateRequestSpec.unverifiedUserAnnotations": (11,),
    CERTIFICATES + "PodCertificateRequestSpec.stubPKCS10Request": (12,),
    CERTIFICATES + "PodCertificateRequestStatus.conditions": (1,),
    CERTIFICATES + "PodCertificateRequestStatus.certificateChain": (2,),
    CERTIFICATES + "PodCertificateRequestStatus.notBefore": (4,),
    CERTIFICATES + "PodCertificateRequestStatus.beginRefreshAt": (5,),
    CERTIFICATES + "PodCertificateRequestStatus.notAfter": (6,),
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
    CORE + "PodExtendedResourceClaimStatus.requestMappings": (1,),
    CORE + "PodExtendedResourceClaimStatus.resourceClaimName": (2,),
    CORE + "PodSchedulingGroup.podGroupName": (1,),
    CORE + "PodSpec.hostnameOverride": (41,),
    CORE + "PodSpec.schedulingGroup": (43,),
    CORE + "PodSpec.evictionResponders": (44,),
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
    EXTENSIONS + "CustomResourceDefinitionCondition.observedGeneration": (6,),
    EXTENSIONS + "CustomResourceDefinitionStatus.observedGeneration": (4,),
    EXTENSIONS + "CustomResourceDefinitionVersion.selectableFields": (9,),
    EXTENSIONS + "JSONSchemaProps.x-kubernetes-validations": (44,),
    EXTENSIONS + "SelectableField.jsonPath": (1,),
    EXTENSIONS + "ValidationRule.rule": (1,),
    EXTENSIONS + "ValidationRule.message": (2,),
    EXTENSIONS + "ValidationRule.messageExpression": (3,),
    EXTENSIONS + "ValidationRule.reason": (4,),
    EXTENSIONS + "ValidationRule.fieldPath": (5,),
    EXTENSIONS + "ValidationRule.optionalOldSelf": (6,),
    STORAGE + "CSIDriverSpec.serviceAccountTokenInSecrets": (10,),
    STORAGE + "CSIDriverSpec.preventPodSchedulingIfMissing": (11,),
    STORAGE + "CSINode.status": (3,),
    STORAGE + "CSINodeStatus.storageHealth": (1,),
    STORAGE + "StorageHealth.name": (1,),
    STORAGE + "StorageHealth.healthConditions": (2,),
    STORAGE + "StorageHealthCondition.status": (1,),
    STORAGE + "StorageHealthCondition.reason": (2,),
    STORAGE + "StorageHealthCondition.message": (3,),
    STORAGE + "StorageHealthCondition.accessMode": (4,),
    STORAGE + "StorageHealthCondition.volumeMode": (5,),
    STORAGE + "StorageHealthCondition.lastTransitionTime": (6,),
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
