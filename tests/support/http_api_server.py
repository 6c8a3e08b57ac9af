"""The API server double behind a socket; the shell is the one that the examples use."""

from examples.support.http_api_server import HttpApiServer

__all__ = ["HttpApiServer"]
