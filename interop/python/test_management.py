"""The SDK's managers of buckets, collections and users."""

from datetime import timedelta

import pytest
from couchbase.exceptions import (
    BucketAlreadyExistsException,
    BucketDoesNotExistException,
    BucketNotFlushableException,
    CollectionAlreadyExistsException,
    CollectionNotFoundException,
    CouchbaseException,
    ScopeAlreadyExistsException,
    ScopeNotFoundException,
    UserNotFoundException,
)
from couchbase.management.buckets import BucketSettings, BucketType, CreateBucketSettings
from couchbase.management.collections import CreateCollectionSettings
from couchbase.management.users import Role, User

from conftest import BUCKET


def settings(name, **more):
    return CreateBucketSettings(name=name, ram_quota_mb=100, bucket_type=BucketType.COUCHBASE, **more)


def test_buckets_are_created_listed_flushed_and_dropped(cluster):
    buckets = cluster.buckets()
    buckets.create_bucket(settings("made", flush_enabled=True, num_replicas=0))
    try:
        with pytest.raises(BucketAlreadyExistsException):
            buckets.create_bucket(settings("made"))
        made = buckets.get_bucket("made")
        assert (made.ram_quota_mb, made.num_replicas, made.flush_enabled) == (100, 0, True)
        assert {bucket.name for bucket in buckets.get_all_buckets()} >= {BUCKET, "made"}
        bucket = cluster.bucket("made")
        collection = bucket.default_collection()
        collection.upsert("k", 1)
        buckets.flush_bucket("made")
        assert not collection.exists("k").exists
        buckets.update_bucket(BucketSettings(name="made", ram_quota_mb=128, flush_enabled=False))
        assert buckets.get_bucket("made").ram_quota_mb == 128
        with pytest.raises(BucketNotFlushableException):
            buckets.flush_bucket("made")
    finally:
        buckets.drop_bucket("made")
    for missing in (buckets.drop_bucket, buckets.get_bucket, buckets.flush_bucket):
        with pytest.raises(BucketDoesNotExistException):
            missing("made")


def test_a_bucket_that_cannot_be_is_refused(cluster):
    with pytest.raises(CouchbaseException):
        cluster.buckets().create_bucket(CreateBucketSettings(name="small", ram_quota_mb=1))
    with pytest.raises(CouchbaseException):
        cluster.buckets().create_bucket(settings("bad name"))


def test_scopes_and_collections_are_created_listed_and_dropped(cluster):
    manager = cluster.bucket(BUCKET).collections()
    manager.create_scope("s")
    try:
        with pytest.raises(ScopeAlreadyExistsException):
            manager.create_scope("s")
        manager.create_collection("s", "c", CreateCollectionSettings(max_expiry=timedelta(hours=1)))
        with pytest.raises(CollectionAlreadyExistsException):
            manager.create_collection("s", "c")
        with pytest.raises(ScopeNotFoundException):
            manager.create_collection("nope", "c")
        scope = next(scope for scope in manager.get_all_scopes() if scope.name == "s")
        assert [(c.name, c.max_expiry) for c in scope.collections] == [("c", timedelta(hours=1))]
        collection = cluster.bucket(BUCKET).scope("s").collection("c")
        collection.upsert("k", 1)
        assert collection.get("k").content_as[int] == 1
        manager.drop_collection("s", "c")
        with pytest.raises(CollectionNotFoundException):
            manager.drop_collection("s", "c")
    finally:
        manager.drop_scope("s")
    with pytest.raises(ScopeNotFoundException):
        manager.drop_scope("s")


def test_users_are_created_used_changed_and_dropped(server, cluster):
    users = cluster.users()
    role = Role(name="bucket_full_access", bucket=BUCKET)
    users.upsert_user(User(username="u", display_name="A user", password="secret-1", roles=[role]))
    try:
        found = users.get_user("u")
        assert (found.user.username, found.user.display_name) == ("u", "A user")
        assert [(r.name, r.bucket) for r in found.user.roles] == [("bucket_full_access", BUCKET)]
        assert "u" in {entry.user.username for entry in users.get_all_users()}
        connected = server.connect(user="u", password="secret-1")
        collection = connected.bucket(BUCKET).default_collection()
        collection.upsert("by-u", 1)
        assert collection.get("by-u").content_as[int] == 1
        with pytest.raises(CouchbaseException):
            connected.buckets().drop_bucket(BUCKET)
        connected.close()
        with pytest.raises(CouchbaseException):
            users.upsert_user(User(username="v", password="secret-1", roles=[Role(name="king")]))
        assert users.get_roles()
    finally:
        users.drop_user("u")
    for missing in (users.get_user, users.drop_user):
        with pytest.raises(UserNotFoundException):
            missing("u")
