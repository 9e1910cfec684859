"""gpufabric: the RDMA network of a GPU cluster, from a question to a running, watched service."""

__all__ = ["__version__"]

__version__ = "0.1.0"
