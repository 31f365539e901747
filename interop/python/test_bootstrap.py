"""Connecting: plain and TLS, with the right credentials and the wrong ones."""

from datetime import timedelta

import pytest
from couchbase.auth import PasswordAuthenticator
from couchbase.cluster import Cluster
from couchbase.exceptions import AuthenticationException, BucketNotFoundException, CouchbaseException
from couchbase.options import ClusterOptions, GetOptions

from conftest import BUCKET, PASSWORD, USER


def test_a_wrong_password_is_refused(server):
    with pytest.raises(AuthenticationException):
        server.connect(password="wrong")


def test_an_unknown_user_is_refused(server):
    with pytest.raises(AuthenticationException):
        server.connect(user="nobody")


def test_tls_with_the_authority_works(server):
    options = ClusterOptions(PasswordAuthenticator(USER, PASSWORD, cert_path=server.authority))
    cluster = Cluster(server.tls_connection_string, options)
    try:
        cluster.wait_until_ready(timedelta(seconds=10))
        collection = cluster.bucket(BUCKET).default_collection()
        collection.upsert("tls", 1)
        assert collection.get("tls").content_as[int] == 1
    finally:
        cluster.close()


def test_tls_without_the_authority_does_not(server):
    options = ClusterOptions(PasswordAuthenticator(USER, PASSWORD))
    with pytest.raises(CouchbaseException):
        cluster = Cluster(server.tls_connection_string, options)
        cluster.wait_until_ready(timedelta(seconds=2))


def test_a_bucket_that_does_not_exist(cluster):
    with pytest.raises((BucketNotFoundException, CouchbaseException)):
        collection = cluster.bucket("none").default_collection()
        collection.get("k", GetOptions(timeout=timedelta(seconds=2)))


def test_a_user_without_rights_on_the_bucket(server):
    server.call("POST", "/users", {"name": "limited", "password": "l", "buckets": ["other"]})
    try:
        cluster = server.connect(user="limited", password="l")
        with pytest.raises(CouchbaseException):
            collection = cluster.bucket(BUCKET).default_collection()
            collection.get("k", GetOptions(timeout=timedelta(seconds=2)))
        cluster.close()
    finally:
        server.call("DELETE", "/users/limited")
