"""Causes, told to people and programs that did not ask.

- ``notices``: keeps Events about Services that need attention
- ``gauges``: the same as metrics for Prometheus
"""
