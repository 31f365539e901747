package interop

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

func expect(t *testing.T, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Errorf("%v, not %v", err, expected)
	}
}

func TestInsertReplaceAndRemoveSayWhetherTheDocumentIsThere(t *testing.T) {
	collection, key := shared.open(t)
	_, err := collection.Get(key, nil)
	expect(t, err, gocb.ErrDocumentNotFound)
	_, err = collection.Replace(key, 1, nil)
	expect(t, err, gocb.ErrDocumentNotFound)
	_, err = collection.Remove(key, nil)
	expect(t, err, gocb.ErrDocumentNotFound)
	_, err = collection.Insert(key, 1, nil)
	must(t, err)
	_, err = collection.Insert(key, 2, nil)
	expect(t, err, gocb.ErrDocumentExists)
	there, err := collection.Exists(key, nil)
	must(t, err)
	if !there.Exists() {
		t.Error("an inserted document does not exist")
	}
	_, err = collection.Remove(key, nil)
	must(t, err)
	there, err = collection.Exists(key, nil)
	must(t, err)
	if there.Exists() {
		t.Error("a removed document exists")
	}
}

func TestAnOldCASIsRefused(t *testing.T) {
	collection, key := shared.open(t)
	first, err := collection.Upsert(key, 1, nil)
	must(t, err)
	second, err := collection.Replace(key, 2, &gocb.ReplaceOptions{Cas: first.Cas()})
	must(t, err)
	_, err = collection.Replace(key, 3, &gocb.ReplaceOptions{Cas: first.Cas()})
	expect(t, err, gocb.ErrCasMismatch)
	_, err = collection.Remove(key, &gocb.RemoveOptions{Cas: first.Cas()})
	expect(t, err, gocb.ErrCasMismatch)
	_, err = collection.Remove(key, &gocb.RemoveOptions{Cas: second.Cas()})
	must(t, err)
}

func TestDocumentsExpireAndAreTouched(t *testing.T) {
	own := start(t)
	collection, key := own.open(t)
	_, err := collection.Upsert(key, 1, &gocb.UpsertOptions{Expiry: time.Minute})
	must(t, err)
	_, err = collection.Upsert("touched", 1, &gocb.UpsertOptions{Expiry: time.Minute})
	must(t, err)
	_, err = collection.Touch("touched", time.Hour, nil)
	must(t, err)
	own.call(t, "POST", "/clock", object{"advance_ms": 61_000}, nil)
	_, err = collection.Get(key, nil)
	expect(t, err, gocb.ErrDocumentNotFound)
	found, err := collection.Get("touched", &gocb.GetOptions{WithExpiry: true})
	must(t, err)
	if found.ExpiryTime().IsZero() {
		t.Error("a touched document does not expire")
	}
	_, err = collection.GetAndTouch("touched", time.Minute, nil)
	must(t, err)
	own.call(t, "POST", "/clock", object{"advance_ms": 61_000}, nil)
	_, err = collection.Get("touched", nil)
	expect(t, err, gocb.ErrDocumentNotFound)
}

func TestALockKeepsOthersOutUntilItEnds(t *testing.T) {
	collection, key := shared.open(t)
	_, err := collection.Upsert(key, 1, nil)
	must(t, err)
	locked, err := collection.GetAndLock(key, 30*time.Second, nil)
	must(t, err)
	_, err = collection.Upsert(key, 2, &gocb.UpsertOptions{Timeout: 300 * time.Millisecond})
	expect(t, err, gocb.ErrTimeout)
	expectReason(t, err, gocb.KVLockedRetryReason)
	must(t, collection.Unlock(key, locked.Cas(), nil))
	_, err = collection.Upsert(key, 3, nil)
	must(t, err)
	if applied := shared.applied(t, key); applied != 2 {
		t.Errorf("%d writes were applied, not 2", applied)
	}
}

func TestCountersAppendAndPrepend(t *testing.T) {
	collection, key := shared.open(t)
	counted, err := collection.Binary().Increment(key, &gocb.IncrementOptions{Initial: 10, Delta: 1})
	must(t, err)
	if counted.Content() != 10 {
		t.Errorf("began at %d", counted.Content())
	}
	counted, err = collection.Binary().Decrement(key, &gocb.DecrementOptions{Delta: 20})
	must(t, err)
	if counted.Content() != 0 {
		t.Errorf("went to %d, not to zero", counted.Content())
	}
	raw := gocb.NewRawBinaryTranscoder()
	_, err = collection.Upsert(key, []byte("b"), &gocb.UpsertOptions{Transcoder: raw})
	must(t, err)
	_, err = collection.Binary().Append(key, []byte("c"), nil)
	must(t, err)
	_, err = collection.Binary().Prepend(key, []byte("a"), nil)
	must(t, err)
	found, err := collection.Get(key, &gocb.GetOptions{Transcoder: raw})
	must(t, err)
	var value []byte
	must(t, found.Content(&value))
	if string(value) != "abc" {
		t.Errorf("read %q", value)
	}
}

func TestLargeValuesSurviveAndTooLargeOnesAreRefused(t *testing.T) {
	collection, key := shared.open(t)
	raw := gocb.NewRawBinaryTranscoder()
	large := make([]byte, 1<<20)
	for at := range large {
		large[at] = byte(at % 251)
	}
	_, err := collection.Upsert(key, large, &gocb.UpsertOptions{Transcoder: raw, Timeout: patient})
	must(t, err)
	found, err := collection.Get(key, &gocb.GetOptions{Transcoder: raw, Timeout: patient})
	must(t, err)
	var value []byte
	must(t, found.Content(&value))
	if !bytes.Equal(value, large) {
		t.Error("a large value was changed")
	}
	var random uint64 = 1
	huge := make([]byte, 20<<20+1)
	for at := range huge {
		random = random*6364136223846793005 + 1442695040888963407
		huge[at] = byte(random >> 56)
	}
	_, err = collection.Upsert(key, huge, &gocb.UpsertOptions{Transcoder: raw, Timeout: patient})
	expect(t, err, gocb.ErrValueTooLarge)
}

func TestARangeScanReturnsEveryDocument(t *testing.T) {
	own := start(t, "--vbuckets", "64")
	collection, _ := own.open(t)
	for _, key := range []string{"a:1", "a:2", "a:3", "b:1"} {
		_, err := collection.Upsert(key, 1, nil)
		must(t, err)
	}
	scanned, err := collection.Scan(gocb.NewRangeScanForPrefix("a:"), &gocb.ScanOptions{IDsOnly: true})
	must(t, err)
	count := 0
	for scanned.Next() != nil {
		count++
	}
	must(t, scanned.Err())
	if count != 3 {
		t.Errorf("found %d documents", count)
	}
}

// expectReason checks the reasons for which the SDK says that it has retried.
func expectReason(t *testing.T, err error, expected gocb.RetryReason) {
	t.Helper()
	var timedOut *gocb.TimeoutError
	if !errors.As(err, &timedOut) {
		t.Errorf("no reasons in %v", err)
		return
	}
	for _, reason := range timedOut.RetryReasons {
		if reason == expected {
			return
		}
	}
	t.Errorf("%s is not among %v", expected.Description(), timedOut.RetryReasons)
}
