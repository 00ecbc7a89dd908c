"""Kubernetes service discovery as a Python package."""
