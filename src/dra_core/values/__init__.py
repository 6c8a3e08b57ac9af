"""Numbers with a specification. Nothing here knows an API object."""
