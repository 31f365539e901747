package interop

import (
	"errors"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

func TestTheRightCredentialsWork(t *testing.T) {
	for _, tls := range []bool{false, true} {
		address, security := shared.ConnectionString, gocb.SecurityConfig{}
		if tls {
			address, security = shared.TLSConnectionString, shared.trust(t)
		}
		cluster, err := shared.dial(t, address, user, password, security)
		must(t, err)
		collection := cluster.Bucket(bucketName).DefaultCollection()
		_, err = collection.Upsert(t.Name(), tls, nil)
		must(t, err)
		var found bool
		read(t, collection, t.Name(), &found)
		if found != tls {
			t.Errorf("read %v, wrote %v", found, tls)
		}
	}
}

func TestWrongCredentialsAreRejected(t *testing.T) {
	for _, login := range [][2]string{{user, "wrong"}, {"stranger", password}} {
		for _, tls := range []bool{false, true} {
			address, security := shared.ConnectionString, gocb.SecurityConfig{}
			if tls {
				address, security = shared.TLSConnectionString, shared.trust(t)
			}
			cluster, err := gocb.Connect(address, gocb.ClusterOptions{
				Authenticator:  gocb.PasswordAuthenticator{Username: login[0], Password: login[1]},
				SecurityConfig: security,
			})
			must(t, err)
			// With its usual strategy, the SDK tries again until the time is up.
			err = cluster.WaitUntilReady(patient, &gocb.WaitUntilReadyOptions{
				RetryStrategy: failFast{},
			})
			expect(t, err, gocb.ErrAuthenticationFailure)
			must(t, cluster.Close(nil))
		}
	}
}

// failFast is a strategy that never retries.
type failFast struct{}

func (failFast) RetryAfter(gocb.RetryRequest, gocb.RetryReason) gocb.RetryAction {
	return &gocb.NoRetryRetryAction{}
}

func TestTLSWithoutTheAuthorityDoesNotWork(t *testing.T) {
	cluster, err := gocb.Connect(shared.TLSConnectionString, gocb.ClusterOptions{
		Authenticator: gocb.PasswordAuthenticator{Username: user, Password: password},
	})
	must(t, err)
	defer cluster.Close(nil)
	if err := cluster.WaitUntilReady(time.Second, nil); err == nil {
		t.Error("an unknown authority was trusted")
	}
}

func TestAMissingBucketIsNotFound(t *testing.T) {
	bucket := shared.connect(t).Bucket("none")
	_, err := bucket.DefaultCollection().Get("k", &gocb.GetOptions{Timeout: time.Second})
	// The SDK looks for the bucket until the time is up.
	if !errors.Is(err, gocb.ErrTimeout) && !errors.Is(err, gocb.ErrBucketNotFound) &&
		!errors.Is(err, gocb.ErrAuthenticationFailure) {
		t.Error(err)
	}
}

func TestAUserWhoMayOnlyReadCannotWrite(t *testing.T) {
	collection, key := shared.open(t)
	_, err := collection.Upsert(key, 1, nil)
	must(t, err)
	shared.call(t, "POST", "/users", object{
		"name": "reader", "password": "r", "buckets": []string{bucketName}, "read_only": true,
	}, nil)
	defer shared.call(t, "DELETE", "/users/reader", nil, nil)
	cluster, err := shared.dial(t, shared.ConnectionString, "reader", "r", gocb.SecurityConfig{})
	must(t, err)
	reading := cluster.Bucket(bucketName).DefaultCollection()
	var found int
	read(t, reading, key, &found)
	if _, err := reading.Upsert(key, 2, nil); !errors.Is(err, gocb.ErrAuthenticationFailure) {
		t.Error(err)
	}
	if shared.applied(t, key) != 1 {
		t.Error("the reader has written")
	}
}

func TestABucketThatComesLaterCanBeOpened(t *testing.T) {
	cluster := shared.connect(t)
	shared.call(t, "POST", "/buckets", object{"name": "new", "replicas": 0, "vbuckets": 16}, nil)
	defer shared.call(t, "DELETE", "/buckets/new", nil, nil)
	bucket := cluster.Bucket("new")
	must(t, bucket.WaitUntilReady(patient, nil))
	_, err := bucket.DefaultCollection().Upsert("k", 1, nil)
	must(t, err)
}

// read reads a document into value.
func read(t *testing.T, collection *gocb.Collection, key string, value any) {
	t.Helper()
	found, err := collection.Get(key, &gocb.GetOptions{Timeout: patient})
	must(t, err)
	must(t, found.Content(value))
}
