"""The parts that kinds share: parsing, printing and validation of single values.

- ``fields``: errors about fields, with Kubernetes' messages
- ``differences``: what differs between two values
- ``refusals``: errors about objects: not found, already there, changed meanwhile
- ``metadata``: names, labels, annotations, owners, finalizers
- ``selectors``: label selectors and field selectors: parsing and matching
- ``conditions``: the conditions of a status
- ``label_selector``: the LabelSelector inside objects: validation and printing
- ``hosts``: a host before a port, IPv6 in brackets
- ``addresses``: IP addresses and CIDRs
- ``numbers``: whole numbers in texts
- ``keys``: private keys and certificate requests, without those that take long to read
- ``ports``: port numbers, port names and protocols
- ``quantity``: resource quantities such as ``100m`` and ``1Gi``
- ``times``: timestamps and durations
- ``plain_yaml``: plain YAML, such as that of kubeconfig files, without a YAML library
"""
