package shop

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
	"steadfast.test/clustertest"
)

func TestOptionsAndDocuments(t *testing.T) {
	documents := t.TempDir() + "/documents.json"
	check(t, os.WriteFile(documents, []byte(`{"k": {"status": "old"}}`), 0o600))
	cluster := clustertest.Start(t, "--bucket", "travel", "--collection", "inventory.airline",
		"--user", "app:secret", "--tls", "--load", documents)
	if cluster.Username != "app" || cluster.Bucket != "travel" || cluster.TLSConnectionString == "" {
		t.Fatalf("%+v", cluster)
	}
	if _, err := os.Stat(cluster.Authority); err != nil {
		t.Fatal(err)
	}
	connection, err := gocb.Connect(cluster.ConnectionString, gocb.ClusterOptions{
		Username: cluster.Username,
		Password: cluster.Password,
	})
	check(t, err)
	defer connection.Close(nil)
	bucket := connection.Bucket("travel")
	check(t, bucket.WaitUntilReady(time.Minute, nil))
	expectStatus(t, bucket.DefaultCollection(), "k", time.Minute, "old")
	_, err = bucket.Scope("inventory").Collection("airline").Upsert("a", 1, nil)
	check(t, err)
	// Documents from the start are not writes of the application.
	if writes := cluster.Writes(""); len(writes) != 1 || writes[0].Key != "a" {
		t.Fatalf("%+v", writes)
	}
}

func TestNodesJoinCrashReturnAndLeave(t *testing.T) {
	cluster := clustertest.Start(t, "--vbuckets", "64")
	up := func() (up int) {
		var status struct{ Nodes []struct{ Up bool } }
		cluster.Call("GET", "/status", nil, &status)
		for _, node := range status.Nodes {
			if node.Up {
				up++
			}
		}
		return up
	}
	now := 0
	pace := clustertest.Pace{PauseMs: &now}
	if node := cluster.RebalanceIn(pace); node != 1 || up() != 2 {
		t.Fatalf("node %d, %d are up", node, up())
	}
	cluster.Crash(1)
	if up() != 1 {
		t.Fatal("node 1 is up")
	}
	cluster.Restart(1)
	cluster.FailOver(1)
	cluster.Recover(1)
	cluster.Rebalance(pace)
	cluster.RebalanceOut(0, pace)
	if cluster.IsRebalancing() {
		t.Fatal("it still moves documents")
	}
	cluster.AdvanceClock(time.Hour)
}

func TestErrorsAreTheClustersSentences(t *testing.T) {
	cluster := clustertest.Start(t)
	err := cluster.TryCall("POST", "/topology/crash", map[string]int{"node": 9}, nil)
	if err == nil || !strings.Contains(err.Error(), "there is no node 9") {
		t.Fatal(err)
	}
}
