"""A Couchbase test cluster with faults, for tests in Python.

Under pytest, the fixture `couchbase_cluster` starts one for each test. Elsewhere:

    with Cluster(nodes=3, bucket="travel") as cluster:
        connect(cluster.connection_string, cluster.username, cluster.password)
"""

from .cluster import Cluster, ControlError, Fault

__all__ = ["Cluster", "ControlError", "Fault"]
