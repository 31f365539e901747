package interop

import (
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

const scopes = "/buckets/default/scopes"

func TestTheSameKeyInTwoCollectionsIsTwoDocuments(t *testing.T) {
	outside, key := shared.open(t)
	bucket := outside.Bucket()
	shared.call(t, "POST", scopes, object{"name": "s"}, nil)
	defer shared.call(t, "DELETE", scopes+"/s", nil, nil)
	shared.call(t, "POST", scopes+"/s/collections", object{"name": "c"}, nil)
	inside := bucket.Scope("s").Collection("c")
	_, err := inside.Upsert(key, "inside", nil)
	must(t, err)
	_, err = outside.Upsert(key, "outside", nil)
	must(t, err)
	var found string
	read(t, inside, key, &found)
	if found != "inside" {
		t.Errorf("read %q", found)
	}

	// A collection that is dropped and made again is another one.
	shared.call(t, "DELETE", scopes+"/s/collections/c", nil, nil)
	shared.call(t, "POST", scopes+"/s/collections", object{"name": "c"}, nil)
	_, err = inside.Get(key, &gocb.GetOptions{Timeout: patient})
	expect(t, err, gocb.ErrDocumentNotFound)
}

func TestAnUnknownCollectionIsLookedForUntilTheTimeIsUp(t *testing.T) {
	collection, key := shared.open(t)
	none := collection.Bucket().DefaultScope().Collection("none")
	_, err := none.Get(key, &gocb.GetOptions{Timeout: 500 * time.Millisecond})
	expect(t, err, gocb.ErrTimeout)
	expectReason(t, err, gocb.KVCollectionOutdatedRetryReason)
}

func TestCollectionsAreManaged(t *testing.T) {
	manager := shared.connect(t).Bucket(bucketName).CollectionsV2()
	must(t, manager.CreateScope("managed", nil))
	defer func() { must(t, manager.DropScope("managed", nil)) }()
	expect(t, manager.CreateScope("managed", nil), gocb.ErrScopeExists)
	must(t, manager.CreateCollection("managed", "c", nil, nil))
	expect(t, manager.CreateCollection("managed", "c", nil, nil), gocb.ErrCollectionExists)
	all, err := manager.GetAllScopes(nil)
	must(t, err)
	for _, scope := range all {
		if scope.Name == "managed" && len(scope.Collections) == 1 {
			return
		}
	}
	t.Errorf("the new scope is not in %v", all)
}
