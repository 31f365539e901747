package shop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
	"steadfast.test/clustertest"
)

var paid = Order{Status: "paid"}

func start(t *testing.T) (*clustertest.Cluster, *gocb.Collection) {
	cluster := clustertest.Start(t, "--nodes", "3", "--vbuckets", "64")
	connection, err := gocb.Connect(cluster.ConnectionString, gocb.ClusterOptions{
		Username: cluster.Username,
		Password: cluster.Password,
	})
	check(t, err)
	t.Cleanup(func() { check(t, connection.Close(nil)) })
	bucket := connection.Bucket(cluster.Bucket)
	check(t, bucket.WaitUntilReady(time.Minute, nil))
	return cluster, bucket.DefaultCollection()
}

func TestARebalanceLosesNoOrder(t *testing.T) {
	cluster, orders := start(t)
	pause := 20
	cluster.RebalanceIn(clustertest.Pace{NoWait: true, VbucketsPerStep: 1, PauseMs: &pause})
	var placed, written []string
	for cluster.IsRebalancing() {
		key := fmt.Sprintf("order:%d", len(placed))
		check(t, PlaceOrder(orders, key, paid))
		placed = append(placed, key)
	}
	for _, write := range cluster.Writes("") {
		written = append(written, write.Key)
	}
	if len(placed) == 0 || !slices.Equal(slices.Sorted(slices.Values(placed)), slices.Sorted(slices.Values(written))) {
		t.Fatalf("placed %v, written %v", placed, written)
	}
}

func TestOrdersSurviveAFailover(t *testing.T) {
	cluster, orders := start(t)
	for n := range 50 {
		check(t, PlaceOrder(orders, fmt.Sprintf("before:%d", n), paid))
	}
	cluster.FailOver(1)
	for n := range 50 {
		check(t, PlaceOrder(orders, fmt.Sprintf("after:%d", n), paid))
		expectStatus(t, orders, fmt.Sprintf("before:%d", n), time.Minute, "paid")
	}
}

func TestAnOrderIsStoredOnceIfTheAnswerIsLost(t *testing.T) {
	cluster, orders := start(t)
	condition := clustertest.Condition{Opcode: "ADD", Key: "o:1", Times: 1}
	lost := cluster.WithFault("cut-after-applying", condition, func() {
		check(t, PlaceOrder(orders, "o:1", paid))
	})
	if fired, writes := lost.Fired(), cluster.Writes("o:1"); fired != 1 || len(writes) != 1 {
		t.Fatalf("%d answers lost, %d writes", fired, len(writes))
	}
}

func TestABusyServerIsAskedAgain(t *testing.T) {
	cluster, orders := start(t)
	condition := clustertest.Condition{Status: "ETMPFAIL", Opcode: "ADD", Times: 2}
	busy := cluster.WithFault("answer", condition, func() {
		check(t, PlaceOrder(orders, "o:2", paid))
	})
	if fired, writes := busy.Fired(), cluster.Writes("o:2"); fired != 2 || len(writes) != 1 {
		t.Fatalf("refused %d times, %d writes", fired, len(writes))
	}
}

func TestAnOrderThatCannotBeStoredIsReported(t *testing.T) {
	cluster, orders := start(t)
	cluster.WithFault("cut-before-applying", clustertest.Condition{Opcode: "ADD", Key: "o:4"}, func() {
		if err := PlaceOrder(orders, "o:4", paid); err == nil {
			t.Fatal("it was reported as placed")
		}
	})
	if writes := cluster.Writes("o:4"); len(writes) != 0 {
		t.Fatalf("%d writes", len(writes))
	}
}

func TestASlowServerDoesNotBlockThePage(t *testing.T) {
	cluster, orders := start(t)
	check(t, PlaceOrder(orders, "o:3", paid))
	cluster.WithFault("hold", clustertest.Condition{Opcode: "GET", Key: "o:3"}, func() {
		expectStatus(t, orders, "o:3", 200*time.Millisecond, "unknown")
	})
	expectStatus(t, orders, "o:3", time.Minute, "paid")
}

func expectStatus(t *testing.T, orders *gocb.Collection, key string, patience time.Duration, want string) {
	t.Helper()
	status, err := StatusOf(orders, key, patience)
	check(t, err)
	if status != want {
		t.Fatalf("%s is %q, not %q", key, status, want)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
