package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

// faultCase is a fault, and the facts that hold for every correct client.
type faultCase struct {
	Name      string
	Operation string
	Fault     object
	Script    object
	TimeoutMs int `json:"timeout_ms"`
	// Succeeds is how the operation ends, if every correct client ends it so.
	Succeeds *bool
	// Applied is how often the write is applied, if the fault alone decides it.
	Applied *int
	// Sent is how often the request is sent, if the fault alone decides it.
	Sent *int
}

func TestEveryFault(t *testing.T) {
	var file struct {
		ErrorMap map[string]object `json:"error_map"`
		Cases    []faultCase
	}
	text, err := os.ReadFile("../faults/cases.json")
	must(t, err)
	must(t, json.Unmarshal(text, &file))
	own := start(t, "--nodes", "2", "--vbuckets", "64")
	for code, definition := range file.ErrorMap {
		own.call(t, "PUT", "/error-map/"+code, definition, nil)
	}
	cluster := own.connect(t)
	for at, fault := range file.Cases {
		t.Run(fault.Operation+": "+fault.Name, func(t *testing.T) {
			fault.check(t, own, cluster, fmt.Sprintf("fault:%d", at))
		})
		if fault.spoils() {
			cluster = own.connect(t)
		}
	}
}

// spoils tells whether the fault leaves a connection that the SDK goes on to use for long: it sends
// no probes on a connection that does not answer.
func (c *faultCase) spoils() bool {
	effect := c.Fault["effect"]
	return effect == "silent" || effect == "mute" || effect == "garble"
}

func (c *faultCase) check(t *testing.T, own *server, cluster *gocb.Cluster, key string) {
	collection := cluster.Bucket(bucketName).DefaultCollection()
	writes := c.Operation == "upsert"
	if c.Operation == "get" {
		_, err := collection.Upsert(key, 1, &gocb.UpsertOptions{Timeout: patient})
		must(t, err)
	}
	path, rule := "/scripts", c.Script
	if c.Fault != nil {
		path, rule = "/faults", c.Fault
		if opcode := map[string]string{"get": "GET", "upsert": "SET"}[c.Operation]; opcode != "" {
			rule["opcode"], rule["key"] = opcode, key
		}
	}
	var added struct{ ID int }
	own.call(t, "POST", path, rule, &added)

	err := c.run(cluster, collection, key)

	path = fmt.Sprintf("%s/%d", path, added.ID)
	var counts struct{ Seen, Fired, Answered int }
	own.call(t, "GET", path, nil, &counts)
	// Before the rule is removed: a held request would be applied then.
	applied := own.applied(t, key)
	own.call(t, "DELETE", path, nil, nil)

	if counts.Fired+counts.Answered == 0 {
		t.Error("the fault did not fire")
	}
	if c.Succeeds != nil && (err == nil) != *c.Succeeds {
		t.Errorf("ended with %v", err)
	}
	if c.Sent != nil && counts.Seen != *c.Sent {
		t.Errorf("was sent %d times, not %d", counts.Seen, *c.Sent)
	}
	if writes {
		if c.Applied != nil && applied != *c.Applied {
			t.Errorf("was applied %d times, not %d", applied, *c.Applied)
		}
		if errors.Is(err, gocb.ErrUnambiguousTimeout) && applied > 0 {
			t.Errorf("was applied, and ended with %v", err)
		}
	}
	if !c.spoils() {
		_, err = collection.Upsert("after", 1, &gocb.UpsertOptions{Timeout: patient})
		must(t, err)
	}
}

func (c *faultCase) run(cluster *gocb.Cluster, collection *gocb.Collection, key string) error {
	timeout := time.Duration(c.TimeoutMs) * time.Millisecond
	switch c.Operation {
	case "get":
		_, err := collection.Get(key, &gocb.GetOptions{Timeout: timeout})
		return err
	case "upsert":
		_, err := collection.Upsert(key, 1, &gocb.UpsertOptions{Timeout: timeout})
		return err
	case "query", "query, read-only":
		result, err := cluster.Query("SELECT RAW 1", &gocb.QueryOptions{
			Adhoc: true, Timeout: timeout, Readonly: c.Operation == "query, read-only",
		})
		if err != nil {
			return err
		}
		for result.Next() {
		}
		return result.Err()
	default:
		return fmt.Errorf("%q is not an operation", c.Operation)
	}
}
