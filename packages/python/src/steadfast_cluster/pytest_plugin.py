"""The fixture `couchbase_cluster` and its marker."""

import pytest

from .cluster import Cluster

MARKER = "couchbase_cluster(**options): options of `steadfast cluster` for the fixture of this name"


def pytest_configure(config):
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def couchbase_cluster(request):
    """A cluster for this test alone.

    `@pytest.mark.couchbase_cluster(nodes=3)` sets its options; markers on a class or a module
    count too, and the nearest one wins.
    """
    options = {}
    for marker in reversed(list(request.node.iter_markers("couchbase_cluster"))):
        if marker.args:
            raise pytest.UsageError("couchbase_cluster takes options by name, as in nodes=3")
        options.update(marker.kwargs)
    with Cluster(**options) as cluster:
        yield cluster
