package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

func TestEveryMutationCanAskForEveryLevel(t *testing.T) {
	collection, key := shared.open(t)
	for _, level := range []gocb.DurabilityLevel{
		gocb.DurabilityLevelMajority,
		gocb.DurabilityLevelMajorityAndPersistOnMaster,
		gocb.DurabilityLevelPersistToMajority,
	} {
		_, err := collection.Insert(key, 1, &gocb.InsertOptions{DurabilityLevel: level})
		must(t, err)
		_, err = collection.Upsert(key, 2, &gocb.UpsertOptions{DurabilityLevel: level})
		must(t, err)
		_, err = collection.Replace(key, object{"n": 3}, &gocb.ReplaceOptions{DurabilityLevel: level})
		must(t, err)
		increment := []gocb.MutateInSpec{gocb.IncrementSpec("n", 1, nil)}
		_, err = collection.MutateIn(key, increment, &gocb.MutateInOptions{DurabilityLevel: level})
		must(t, err)
		_, err = collection.Remove(key, &gocb.RemoveOptions{DurabilityLevel: level})
		must(t, err)
	}
}

func TestDurabilityThatTheBucketCannotGiveIsImpossible(t *testing.T) {
	shared.call(t, "POST", "/buckets", object{"name": "three", "replicas": 3, "vbuckets": 64}, nil)
	defer shared.call(t, "DELETE", "/buckets/three", nil, nil)
	bucket := shared.connect(t).Bucket("three")
	must(t, bucket.WaitUntilReady(patient, nil))
	majority := &gocb.UpsertOptions{DurabilityLevel: gocb.DurabilityLevelMajority}
	_, err := bucket.DefaultCollection().Upsert("k", 1, majority)
	expect(t, err, gocb.ErrDurabilityImpossible)
}

func TestADurableWriteWhoseReplicaIsSilentIsAmbiguous(t *testing.T) {
	own := start(t, "--nodes", "2", "--replicas", "1", "--vbuckets", "64")
	collection, key := own.open(t)
	_, err := collection.Upsert(key, 0, nil)
	must(t, err)
	for node := range 2 {
		own.call(t, "POST", "/holds", object{"what": "replication", "node": node}, nil)
	}
	_, err = collection.Upsert(key, 1, &gocb.UpsertOptions{
		DurabilityLevel: gocb.DurabilityLevelMajority,
		Timeout:         1500 * time.Millisecond,
	})
	if !errors.Is(err, gocb.ErrAmbiguousTimeout) && !errors.Is(err, gocb.ErrDurabilityAmbiguous) {
		t.Error(err)
	}
}

func TestReplicasHaveTheDocumentToo(t *testing.T) {
	own := start(t, "--nodes", "3", "--replicas", "1", "--vbuckets", "64")
	collection, key := own.open(t)
	_, err := collection.Upsert(key, 7, nil)
	must(t, err)
	copies, err := collection.GetAllReplicas(key, nil)
	must(t, err)
	count := 0
	for copy := copies.Next(); copy != nil; copy = copies.Next() {
		count++
	}
	if count != 2 {
		t.Errorf("%d copies, not 2", count)
	}
	entries, _ := own.journal(t, 0)
	own.topology(t, "crash", object{"node": entries[len(entries)-1].Node})
	found, err := collection.GetAnyReplica(key, &gocb.GetAnyReplicaOptions{Timeout: patient})
	must(t, err)
	if !found.IsReplica() {
		t.Error("a node that is down has answered")
	}
}
