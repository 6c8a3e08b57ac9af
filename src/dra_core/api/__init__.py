"""The vocabulary of resource.k8s.io: identities, objects, wire forms, validation."""
