"""Kubernetes Dynamic Resource Allocation as a library."""
