"""Kinds by which parts of a cluster register with the API server.

- ``expressions``: what the expressions of admission policies can name, and what they have to evaluate to
- ``apiservice``: APIService: which server answers for a version of a group
- ``webhooks``: ValidatingWebhookConfiguration, MutatingWebhookConfiguration
- ``webhook_client``: where a webhook is called
- ``policies``: ValidatingAdmissionPolicy, MutatingAdmissionPolicy and their bindings
- ``judge``: what is wrong with the expressions of a policy
- ``type_checks``: which expressions of a policy do not fit the types of what it matches
- ``matching_rules``: which requests webhooks and policies are asked about, and what can be wrong with that
- ``selecting``: whether their rules and selectors select a request
- ``conditions``: match conditions in CEL
"""
