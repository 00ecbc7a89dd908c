"""Cluster DNS."""
