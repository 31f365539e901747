// A driver for `steadfast audit couchbase`: the official SDK for Go.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/couchbase/gocb/v2"
)

type command struct {
	ID               int    `json:"id"`
	Do               string `json:"do"`
	ConnectionString string `json:"connection_string"`
	Username         string
	Password         string
	Bucket           string
	Key              string
	Value            any
	Text             string
	Path             string
	Statement        string
	Readonly         bool
	ExpirySeconds    int `json:"expiry_seconds"`
	TimeoutMs        int `json:"timeout_ms"`
}

type object map[string]any

var cluster *gocb.Cluster

var errUnsupported = errors.New("unsupported")

func main() {
	lines := bufio.NewScanner(os.Stdin)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked command
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		answer := describe(run(asked))
		answer["id"] = asked.ID
		if err := answers.Encode(answer); err != nil {
			panic(err)
		}
	}
}

func describe(err error) object {
	switch {
	case err == nil:
		return object{"ok": true, "sdk": "gocb " + gocb.Version() + " for Go"}
	case errors.Is(err, errUnsupported):
		return object{"unsupported": true}
	case errors.Is(err, gocb.ErrAmbiguousTimeout):
		return object{"error": "ambiguous timeout", "ambiguous": true}
	case errors.Is(err, gocb.ErrUnambiguousTimeout):
		return object{"error": "unambiguous timeout", "ambiguous": false}
	}
	// The innermost error is the kind.
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return object{"error": err.Error()}
}

func connect(c command) error {
	if cluster != nil {
		if err := cluster.Close(nil); err != nil {
			return err
		}
	}
	var err error
	cluster, err = gocb.Connect(c.ConnectionString, gocb.ClusterOptions{Username: c.Username, Password: c.Password})
	if err != nil {
		return err
	}
	return cluster.Bucket(c.Bucket).WaitUntilReady(time.Duration(c.TimeoutMs)*time.Millisecond, nil)
}

func run(c command) error {
	if c.Do == "connect" {
		return connect(c)
	}
	documents := cluster.Bucket("default").DefaultCollection()
	timeout := time.Duration(c.TimeoutMs) * time.Millisecond
	var err error
	switch c.Do {
	case "get":
		_, err = documents.Get(c.Key, &gocb.GetOptions{Timeout: timeout})
	case "exists":
		_, err = documents.Exists(c.Key, &gocb.ExistsOptions{Timeout: timeout})
	case "upsert":
		_, err = documents.Upsert(c.Key, c.Value, &gocb.UpsertOptions{Timeout: timeout})
	case "insert":
		_, err = documents.Insert(c.Key, c.Value, &gocb.InsertOptions{Timeout: timeout})
	case "replace":
		_, err = documents.Replace(c.Key, c.Value, &gocb.ReplaceOptions{Timeout: timeout})
	case "remove":
		_, err = documents.Remove(c.Key, &gocb.RemoveOptions{Timeout: timeout})
	case "append":
		_, err = documents.Binary().Append(c.Key, []byte(c.Text), &gocb.AppendOptions{Timeout: timeout})
	case "increment":
		_, err = documents.Binary().Increment(c.Key, &gocb.IncrementOptions{Timeout: timeout, Delta: 1})
	case "touch":
		expiry := time.Duration(c.ExpirySeconds) * time.Second
		_, err = documents.Touch(c.Key, expiry, &gocb.TouchOptions{Timeout: timeout})
	case "lookup":
		specs := []gocb.LookupInSpec{gocb.GetSpec(c.Path, nil)}
		_, err = documents.LookupIn(c.Key, specs, &gocb.LookupInOptions{Timeout: timeout})
	case "mutate":
		specs := []gocb.MutateInSpec{gocb.UpsertSpec(c.Path, c.Value, nil)}
		_, err = documents.MutateIn(c.Key, specs, &gocb.MutateInOptions{Timeout: timeout})
	case "query":
		return query(c, timeout)
	default:
		return errUnsupported
	}
	return err
}

func query(c command, timeout time.Duration) error {
	rows, err := cluster.Query(c.Statement, &gocb.QueryOptions{Adhoc: true, Readonly: c.Readonly, Timeout: timeout})
	if err != nil {
		return err
	}
	for rows.Next() {
	}
	return rows.Err()
}
