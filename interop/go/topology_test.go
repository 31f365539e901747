package interop

import (
	"io"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

// inFlight are the errors of writes that were in flight when their node went.
var inFlight = []error{gocb.ErrAmbiguousTimeout, gocb.ErrRequestCanceled, io.EOF}

func changing(t *testing.T) (*server, *gocb.Collection) {
	t.Helper()
	own := start(t, "--nodes", "3", "--replicas", "1", "--vbuckets", "64")
	collection, _ := own.open(t)
	return own, collection
}

func TestARebalanceInAndOutUnderLoadGivesNoError(t *testing.T) {
	own, collection := changing(t)
	running := startLoad(t, collection)
	own.topology(t, "rebalance-in", object{"vbuckets_per_step": 1, "pause_ms": 20})
	running.progress(t)
	own.topology(t, "rebalance-out", object{"node": 0, "vbuckets_per_step": 1, "pause_ms": 20})
	running.progress(t)
	running.stop(t, own)
}

func TestACrashAndAReturnUnderLoadLoseAndDoubleNothing(t *testing.T) {
	own, collection := changing(t)
	running := startLoad(t, collection)
	own.topology(t, "crash", object{"node": 1})
	own.topology(t, "restart", object{"node": 1})
	running.progress(t)
	running.stop(t, own, inFlight...)
}

// The node is down before it is failed over. Otherwise its last not-my-vbucket response has a config
// without itself. gocbcore 10.8.1 applies that config on the task that reads the connection, closes the
// connection there, and waits for the task to end: forever.
func TestAFailoverUnderLoadLosesAndDoublesNothing(t *testing.T) {
	own, collection := changing(t)
	running := startLoad(t, collection)
	own.topology(t, "crash", object{"node": 1})
	own.topology(t, "fail-over", object{"node": 1})
	running.progress(t)
	own.topology(t, "rebalance-in", object{"vbuckets_per_step": 4, "pause_ms": 10})
	running.progress(t)
	running.stop(t, own, inFlight...)
}

func TestANodeThatIsDownCostsItsDocumentsATimeout(t *testing.T) {
	own, collection := changing(t)
	_, err := collection.Upsert("k", 1, nil)
	must(t, err)
	entries, _ := own.journal(t, 0)
	node := entries[len(entries)-1].Node
	own.topology(t, "crash", object{"node": node})
	_, err = collection.Get("k", &gocb.GetOptions{Timeout: time.Second})
	expect(t, err, gocb.ErrUnambiguousTimeout)
	own.topology(t, "restart", object{"node": node})
	var found int
	read(t, collection, "k", &found)
	if found != 1 {
		t.Errorf("read %d", found)
	}
}
