"""Connecting: plain and TLS, with right and wrong credentials."""

from datetime import timedelta

import pytest
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import (
    AuthenticationException,
    BucketNotFoundException,
    UnAmbiguousTimeoutException,
)
from couchbase.options import ClusterOptions

from conftest import BUCKET, PASSWORD, USER


@pytest.mark.parametrize("tls", [False, True])
def test_the_right_credentials_work(server, tls):
    cluster = server.connect(tls=tls)
    try:
        collection = cluster.bucket(BUCKET).default_collection()
        collection.upsert("k", tls)
        assert collection.get("k").content_as[bool] is tls
    finally:
        cluster.close()


@pytest.mark.parametrize("tls", [False, True])
def test_a_wrong_password_is_refused(server, tls):
    with pytest.raises(AuthenticationException):
        server.connect(password="wrong", tls=tls)


@pytest.mark.parametrize("tls", [False, True])
def test_an_unknown_user_is_refused(server, tls):
    with pytest.raises(AuthenticationException):
        server.connect(user="nobody", tls=tls)


def test_tls_without_the_authority_does_not_work(server):
    options = ClusterOptions(
        PasswordAuthenticator(USER, PASSWORD), bootstrap_timeout=timedelta(seconds=2)
    )
    with pytest.raises(UnAmbiguousTimeoutException):
        Cluster(server.tls_connection_string, options)


def test_a_bucket_that_does_not_exist_times_out_for_an_administrator(cluster):
    # A server tells only users without rights on all buckets that they may not open it.
    with pytest.raises(UnAmbiguousTimeoutException):
        cluster.bucket("none")


def test_a_user_without_rights_on_the_bucket_does_not_find_it(server):
    server.call("POST", "/buckets", {"name": "elsewhere", "replicas": 0, "vbuckets": 16})
    server.call("POST", "/users", {"name": "limited", "password": "l", "buckets": ["elsewhere"]})
    cluster = server.connect(user="limited", password="l")
    try:
        with pytest.raises(BucketNotFoundException):
            cluster.bucket(BUCKET)
    finally:
        cluster.close()
        server.call("DELETE", "/users/limited")
        server.call("DELETE", "/buckets/elsewhere")


def test_a_user_who_may_only_read_cannot_write(server, collection):
    collection.upsert("k", 1)
    rights = {"name": "reader", "password": "r", "buckets": [BUCKET], "read_only": True}
    server.call("POST", "/users", rights)
    cluster = server.connect(user="reader", password="r")
    try:
        reading = cluster.bucket(BUCKET).default_collection()
        assert reading.get("k").content_as[int] == 1
        with pytest.raises(AuthenticationException):
            reading.upsert("k", 2)
    finally:
        cluster.close()
        server.call("DELETE", "/users/reader")


def test_a_bucket_that_comes_while_the_client_is_connected_can_be_opened(server, cluster):
    server.call("POST", "/buckets", {"name": "new", "replicas": 0, "vbuckets": 16})
    try:
        collection = cluster.bucket("new").default_collection()
        collection.upsert("k", 1)
        assert collection.get("k").content_as[int] == 1
    finally:
        server.call("DELETE", "/buckets/new")
