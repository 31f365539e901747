// Package clustertest starts a Couchbase test cluster with faults, for tests in Go.
//
//	cluster := clustertest.Start(t, "--nodes", "3")
//	connect(cluster.ConnectionString, cluster.Username, cluster.Password)
//
// The cluster ends with its test. Every method fails the test if the cluster rejects it.
//
// One cluster for all tests of a package starts in TestMain, with Launch, and ends with Stop.
// A test uses the methods of cluster.For(t).
package clustertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Cluster is a running cluster.
type Cluster struct {
	ConnectionString    string
	TLSConnectionString string
	// Authority is the file of the authority's certificate, with --tls.
	Authority string
	Username  string
	Password  string
	// Bucket is the first bucket.
	Bucket string

	t       testing.TB
	command *exec.Cmd
	control string
	token   string
	begin   uint64
}

// Write is a write that the cluster has applied.
type Write struct {
	Sequence  uint64 `json:"sequence"`
	Node      int    `json:"node"`
	Bucket    string `json:"bucket"`
	Key       string `json:"key"`
	Operation string `json:"operation"`
	CAS       string `json:"cas"`
}

// Pace says how fast a rebalance moves documents. Its zero value is the cluster's default.
type Pace struct {
	VbucketsPerStep int  `json:"vbuckets_per_step,omitempty"`
	PauseMs         *int `json:"pause_ms,omitempty"`
	// NoWait returns at once, while documents move.
	NoWait bool `json:"-"`
}

// Start starts a cluster for a test, with options of `steadfast cluster`. The program is the
// one that STEADFAST names, or the one on the PATH.
func Start(t testing.TB, options ...string) *Cluster {
	t.Helper()
	cluster, err := Launch(options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil && !t.Failed() {
			t.Error(err)
		}
	})
	return cluster.For(t)
}

// Launch starts a cluster that does not belong to a test. The caller stops it.
func Launch(options ...string) (*Cluster, error) {
	binary := os.Getenv("STEADFAST")
	if binary == "" {
		binary = "steadfast"
	}
	command := exec.Command(binary, append([]string{"cluster", "--json"}, options...)...)
	var said bytes.Buffer
	command.Stderr = io.MultiWriter(os.Stderr, &said)
	printed, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("cannot run steadfast: %w; install it, or set STEADFAST", err)
	}
	cluster := &Cluster{command: command}
	if err := cluster.learn(bufio.NewReader(printed)); err != nil {
		// The first error says more. After the end, all is read that the program said.
		_ = cluster.Stop()
		return nil, fmt.Errorf("%w: %s", err, messageOf(said.String()))
	}
	return cluster, nil
}

// messageOf returns what the program says about its failure: JSON on one line.
func messageOf(said string) string {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	last := lines[len(lines)-1]
	var failure struct{ Message string }
	if json.Unmarshal([]byte(last), &failure) == nil && failure.Message != "" {
		return failure.Message
	}
	return last
}

// For returns the cluster for a test: its methods fail this test.
func (c *Cluster) For(t testing.TB) *Cluster {
	of := *c
	of.t = t
	return &of
}

// learn reads what the cluster prints about itself.
func (c *Cluster) learn(printed *bufio.Reader) error {
	line, err := printed.ReadBytes('\n')
	if err != nil {
		return errors.New("the cluster did not start")
	}
	var facts struct {
		Connect      string
		ConnectTLS   string `json:"connect_tls"`
		Authority    string
		Username     string
		Password     string
		Buckets      []string
		Control      string
		ControlToken string `json:"control_token"`
	}
	if err := json.Unmarshal(line, &facts); err != nil {
		return fmt.Errorf("steadfast printed %q: %w", line, err)
	}
	c.ConnectionString = facts.Connect
	c.TLSConnectionString = facts.ConnectTLS
	c.Authority = facts.Authority
	c.Username = facts.Username
	c.Password = facts.Password
	c.Bucket = facts.Buckets[0]
	c.control = "http://" + facts.Control
	c.token = facts.ControlToken
	var status struct {
		Applied uint64 `json:"applied_mutations"`
	}
	err = c.TryCall("GET", "/status", nil, &status)
	c.begin = status.Applied
	return err
}

// Stop asks the cluster to end, and kills it if that takes long. Start does it by itself.
func (c *Cluster) Stop() error {
	// It may have ended already.
	_ = c.command.Process.Signal(syscall.SIGTERM)
	killer := time.AfterFunc(10*time.Second, func() { _ = c.command.Process.Kill() })
	defer killer.Stop()
	if err := c.command.Wait(); err != nil {
		return fmt.Errorf("the cluster ended with an error: %w", err)
	}
	return nil
}

// Writes returns the writes that the cluster has applied since its start, oldest first: those
// of a key, or all if the key is empty.
func (c *Cluster) Writes(key string) []Write {
	c.t.Helper()
	var found []Write
	since := c.begin
	for {
		var page struct {
			Entries   []Write
			Forgotten uint64
			Next      uint64
		}
		c.Call("GET", fmt.Sprintf("/journal?since=%d&limit=10000", since), nil, &page)
		if page.Forgotten > c.begin {
			c.t.Fatal("the journal is full: start the cluster with a larger --journal")
		}
		if len(page.Entries) == 0 {
			return found
		}
		for _, write := range page.Entries {
			if key == "" || write.Key == key {
				found = append(found, write)
			}
		}
		since = page.Next
	}
}

// RebalanceIn adds a node and returns its number.
func (c *Cluster) RebalanceIn(pace Pace) int {
	c.t.Helper()
	return c.move("rebalance-in", pace, nil)
}

// RebalanceOut moves all documents off a node and removes it.
func (c *Cluster) RebalanceOut(node int, pace Pace) {
	c.t.Helper()
	c.move("rebalance-out", pace, &node)
}

// Rebalance spreads documents evenly over the nodes as they are.
func (c *Cluster) Rebalance(pace Pace) {
	c.t.Helper()
	c.move("rebalance", pace, nil)
}

// move starts a rebalance, and waits as long as documents move. It returns the node that joined.
func (c *Cluster) move(change string, pace Pace, node *int) int {
	c.t.Helper()
	var started struct {
		Node      int
		Rebalance uint64
	}
	c.Call("POST", "/topology/"+change, pace.body(node), &started)
	patience := time.Minute
	if pace.PauseMs != nil {
		patience += time.Duration(*pace.PauseMs) * time.Millisecond
	}
	moved, since := -1, time.Now()
	for !pace.NoWait {
		var last struct {
			ID           uint64
			State        string
			Moved, Total int
		}
		c.Call("GET", "/topology/rebalance", nil, &last)
		if last.ID != started.Rebalance || last.State == "done" {
			break
		}
		if last.State == "cancelled" {
			c.t.Fatal("the rebalance was cancelled: another one continues from there")
		}
		if last.Moved != moved {
			moved, since = last.Moved, time.Now()
		}
		if time.Since(since) > patience {
			c.t.Fatalf("the rebalance goes on, but nothing has moved for %v: %d of %d vbuckets; NoWait does not wait for it",
				patience, last.Moved, last.Total)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return started.Node
}

// IsRebalancing returns whether documents are moving.
func (c *Cluster) IsRebalancing() bool {
	c.t.Helper()
	var last struct{ State string }
	c.Call("GET", "/topology/rebalance", nil, &last)
	return last.State == "running"
}

// Crash breaks the connections of a node. The cluster map still has it.
func (c *Cluster) Crash(node int) { c.t.Helper(); c.change("crash", node) }

// Restart starts a crashed node, on the same ports and with its documents.
func (c *Cluster) Restart(node int) { c.t.Helper(); c.change("restart", node) }

// FailOver removes a node at once, and promotes replicas in its place.
func (c *Cluster) FailOver(node int) { c.t.Helper(); c.change("fail-over", node) }

// Recover brings a failed-over node back, empty. A rebalance gives it documents.
func (c *Cluster) Recover(node int) { c.t.Helper(); c.change("recover", node) }

// AdvanceClock lets time pass for the cluster: documents expire, locks end.
func (c *Cluster) AdvanceClock(by time.Duration) {
	c.t.Helper()
	c.Call("POST", "/clock", map[string]any{"advance_ms": by.Milliseconds()}, nil)
}

func (c *Cluster) change(action string, node int) {
	c.t.Helper()
	c.Call("POST", "/topology/"+action, map[string]any{"node": node}, nil)
}

// Call sends any request to the control endpoint, and decodes its JSON response if result is
// not nil. `GET /` on the endpoint lists what there is.
func (c *Cluster) Call(method, path string, body, result any) {
	c.t.Helper()
	if err := c.TryCall(method, path, body, result); err != nil {
		c.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// TryCall is Call with an error, for requests that the cluster may reject.
func (c *Cluster) TryCall(method, path string, body, result any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequest(method, c.control+path, &sent)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= 400 {
		var refused struct{ Error string }
		if json.Unmarshal(read, &refused) != nil || refused.Error == "" {
			return fmt.Errorf("%s: %s", response.Status, read)
		}
		return fmt.Errorf("%s", refused.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(read, result)
}

// client uses no proxy of the environment.
var client = &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}

func (p Pace) body(node *int) any {
	return struct {
		Pace
		Node *int `json:"node,omitempty"`
		Wait bool `json:"wait"`
	}{p, node, false}
}
