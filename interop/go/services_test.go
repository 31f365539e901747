package interop

import (
	"errors"
	"testing"

	"github.com/couchbase/gocb/v2"
	"github.com/couchbase/gocb/v2/search"
)

func rows(t *testing.T, cluster *gocb.Cluster, statement string, options *gocb.QueryOptions) []any {
	t.Helper()
	result, err := cluster.Query(statement, options)
	must(t, err)
	var all []any
	for result.Next() {
		var row any
		must(t, result.Row(&row))
		all = append(all, row)
	}
	must(t, result.Err())
	return all
}

func TestQueriesReadAndWriteDocuments(t *testing.T) {
	cluster := shared.connect(t)
	collection, key := shared.open(t)
	_, err := collection.Upsert(key, object{"n": 1}, nil)
	must(t, err)
	byKey := &gocb.QueryOptions{PositionalParameters: []any{[]string{key}}}
	statement := "SELECT RAW d.n FROM `default` AS d USE KEYS $1"
	if found := rows(t, cluster, statement, byKey); len(found) != 1 || found[0] != 1.0 {
		t.Errorf("found %v", found)
	}
	byKey.NamedParameters = nil
	byKey.PositionalParameters = []any{key}
	rows(t, cluster, "UPDATE `default` AS d SET d.n = 2 WHERE META(d).id = $1", byKey)
	var document map[string]any
	read(t, collection, key, &document)
	if document["n"] != 2.0 {
		t.Errorf("read %v", document)
	}
	// A second time with a prepared statement.
	prepared := &gocb.QueryOptions{NamedParameters: map[string]any{"n": 5}, Adhoc: false}
	for range 2 {
		if found := rows(t, cluster, "SELECT RAW $n", prepared); len(found) != 1 || found[0] != 5.0 {
			t.Errorf("found %v", found)
		}
	}
}

func TestQueryErrorsHaveTheirKind(t *testing.T) {
	cluster := shared.connect(t)
	_, err := cluster.Query("SELEC 1", nil)
	expect(t, err, gocb.ErrParsingFailure)
	_, err = cluster.Query("SELECT * FROM nope", nil)
	var refused *gocb.QueryError
	if !errors.As(err, &refused) || refused.Errors[0].Code != 12003 {
		t.Errorf("%v is not 12003", err)
	}
}

func TestAScopeIsTheContextOfItsQueries(t *testing.T) {
	cluster := shared.connect(t)
	collection, key := shared.open(t)
	_, err := collection.Upsert(key, object{"n": 3}, nil)
	must(t, err)
	result, err := cluster.Bucket(bucketName).DefaultScope().Query(
		"SELECT RAW n FROM `_default` USE KEYS $1", &gocb.QueryOptions{PositionalParameters: []any{key}},
	)
	must(t, err)
	var n int
	must(t, result.One(&n))
	if n != 3 {
		t.Errorf("found %d", n)
	}
}

func TestAnalyticsAndSearchAnswer(t *testing.T) {
	cluster := shared.connect(t)
	result, err := cluster.AnalyticsQuery("SELECT VALUE 1", nil)
	must(t, err)
	var one int
	must(t, result.One(&one))
	if one != 1 {
		t.Errorf("analytics found %d", one)
	}
	index := gocb.SearchIndex{Name: "idx", Type: "fulltext-index", SourceName: bucketName, SourceType: "couchbase"}
	if err := cluster.SearchIndexes().UpsertIndex(index, nil); err != nil {
		t.Fatal(err)
	}
	found, err := cluster.SearchQuery("idx", search.NewTermQuery("x"), &gocb.SearchOptions{Timeout: patient})
	must(t, err)
	for found.Next() {
		t.Error("a search has found something")
	}
	must(t, found.Err())
}

func TestEveryServiceAnswersAPing(t *testing.T) {
	bucket := shared.connect(t).Bucket(bucketName)
	must(t, bucket.WaitUntilReady(patient, nil))
	report, err := bucket.Ping(&gocb.PingOptions{Timeout: patient})
	must(t, err)
	for _, service := range []gocb.ServiceType{
		gocb.ServiceTypeKeyValue, gocb.ServiceTypeQuery, gocb.ServiceTypeSearch, gocb.ServiceTypeAnalytics,
	} {
		if len(report.Services[service]) != 3 {
			t.Errorf("%d endpoints of service %v", len(report.Services[service]), service)
		}
		for _, endpoint := range report.Services[service] {
			if endpoint.State != gocb.PingStateOk {
				t.Errorf("service %v: %v", service, endpoint.Error)
			}
		}
	}
}

func TestATransactionIsAppliedWholeOrNotAtAll(t *testing.T) {
	own := start(t, "--nodes", "3", "--replicas", "1", "--vbuckets", "64")
	cluster := own.connect(t)
	collection, _ := own.open(t)
	_, err := collection.Upsert("a", object{"n": 1}, nil)
	must(t, err)
	transact := func(fail error) error {
		_, err := cluster.Transactions().Run(func(attempt *gocb.TransactionAttemptContext) error {
			document, err := attempt.Get(collection, "a")
			if err != nil {
				return err
			}
			if _, err := attempt.Replace(document, object{"n": 2}); err != nil {
				return err
			}
			if _, err := attempt.Insert(collection, "b", object{"n": 2}); err != nil {
				return err
			}
			return fail
		}, &gocb.TransactionOptions{Timeout: patient})
		return err
	}
	if err := transact(errors.New("changed my mind")); err == nil {
		t.Error("a transaction with an error was committed")
	}
	var document map[string]int
	read(t, collection, "a", &document)
	if _, err := collection.Get("b", nil); document["n"] != 1 || !errors.Is(err, gocb.ErrDocumentNotFound) {
		t.Errorf("a rolled back transaction left %v and %v", document, err)
	}
	own.call(t, "POST", "/faults", object{"times": 3, "opcode": "SUBDOC_MULTI_MUTATION", "effect": "answer", "status": "ETMPFAIL"}, nil)
	must(t, transact(nil))
	for _, key := range []string{"a", "b"} {
		read(t, collection, key, &document)
		if document["n"] != 2 {
			t.Errorf("%s has %v", key, document)
		}
	}
}
