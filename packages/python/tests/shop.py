"""The application under test: a shop that stores orders."""

from couchbase.exceptions import (
    AmbiguousTimeoutException,
    DocumentExistsException,
    RequestCanceledException,
    UnAmbiguousTimeoutException,
)
from couchbase.options import GetOptions

TIMEOUTS = (AmbiguousTimeoutException, UnAmbiguousTimeoutException)


def place_order(orders, key, order):
    """Stores an order once, also if an answer is lost.

    An insert may fail after it was applied. It is safe to repeat: then the order exists.
    """
    for _ in range(5):
        try:
            orders.insert(key, order)
            return
        except DocumentExistsException:
            return
        except (*TIMEOUTS, RequestCanceledException) as error:
            last = error
    raise last


def status_of(orders, key, patience):
    """The status of an order, or "unknown" if the database is too slow."""
    try:
        return orders.get(key, GetOptions(timeout=patience)).content_as[dict]["status"]
    except TIMEOUTS:
        return "unknown"
