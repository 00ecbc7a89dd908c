"""Causes, told to people and programs that did not ask.

- ``following``: looks again whenever a cluster has changed
- ``notices``: keeps Events about Services that need attention
- ``gauges``: the same as metrics for Prometheus
"""
