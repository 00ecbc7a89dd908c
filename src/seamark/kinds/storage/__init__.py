"""Kinds about storage: volumes, the claims that take them, and what the drivers of storage say of themselves.

- ``claim_spec``: the spec of a PersistentVolumeClaim, which Pods and StatefulSets have in templates
- ``persistentvolumeclaim``: PersistentVolumeClaim
- ``volume_sources``: where the data of a PersistentVolume is: validation of each kind of source
- ``persistentvolume``: PersistentVolume
- ``storageclass``: StorageClass
- ``volumeattributesclass``: VolumeAttributesClass
- ``csidriver``: CSIDriver
- ``csinode``: CSINode
- ``csistoragecapacity``: CSIStorageCapacity
- ``volumeattachment``: VolumeAttachment
- ``storageversionmigration``: StorageVersionMigration
- ``admission``: the finalizers that guard volumes and claims, the default StorageClass, and who may grow a claim
"""
