// Package interop runs the official Go SDK against the cluster.
package interop

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
	"steadfast.test/clustertest"
)

const (
	user       = "Administrator"
	password   = "password"
	bucketName = "default"
	// patient is for operations that must end well while the cluster changes.
	patient = 10 * time.Second
)

// server is a running cluster, seen from outside.
type server struct {
	*clustertest.Cluster
}

// shared is the cluster of all tests that leave it as they found it.
var shared *server

func TestMain(m *testing.M) {
	cluster, err := clustertest.Launch("--nodes", "3", "--replicas", "1", "--tls")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	shared = &server{cluster}
	status := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// start runs a cluster for a test that changes its nodes.
func start(t *testing.T, arguments ...string) *server {
	t.Helper()
	cluster, err := clustertest.Launch(arguments...)
	must(t, err)
	own := &server{cluster}
	t.Cleanup(func() {
		if err := own.stop(); err != nil {
			t.Error(err)
		}
	})
	return own
}

func (s *server) stop() error {
	if err := s.Stop(); err != nil {
		return err
	}
	if s.Authority != "" {
		if _, err := os.Stat(s.Authority); err == nil {
			return fmt.Errorf("the cluster left %s behind", s.Authority)
		}
	}
	return nil
}

type object map[string]any

// call sends a request to the control endpoint and reads its response into result, if given.
func (s *server) call(t *testing.T, method, path string, body object, result any) {
	t.Helper()
	var sent any
	if body != nil {
		sent = body
	}
	s.For(t).Call(method, path, sent, result)
}

func (s *server) topology(t *testing.T, action string, body object) (node int) {
	t.Helper()
	if body == nil {
		body = object{}
	}
	var changed struct{ Node int }
	s.call(t, "POST", "/topology/"+action, body, &changed)
	return changed.Node
}

// journal returns the mutations from a number on, and the number after the last.
func (s *server) journal(t *testing.T, since int) ([]clustertest.Write, int) {
	t.Helper()
	var all []clustertest.Write
	for {
		var page struct {
			Entries   []clustertest.Write
			Forgotten int
			Next      int
		}
		s.call(t, "GET", fmt.Sprintf("/journal?since=%d&limit=50000", since), nil, &page)
		if page.Forgotten > since {
			t.Fatalf("the journal has forgotten %d entries", page.Forgotten)
		}
		all = append(all, page.Entries...)
		since = page.Next
		if len(page.Entries) == 0 {
			return all, since
		}
	}
}

// applied counts the applied writes of a key.
func (s *server) applied(t *testing.T, key string) int {
	t.Helper()
	return len(s.For(t).Writes(key))
}

// connect returns a cluster object that can serve operations. It is closed at the end of the test.
func (s *server) connect(t *testing.T) *gocb.Cluster {
	t.Helper()
	cluster, err := s.dial(t, s.ConnectionString, user, password, gocb.SecurityConfig{})
	must(t, err)
	return cluster
}

func (s *server) dial(
	t *testing.T, address, user, password string, security gocb.SecurityConfig,
) (*gocb.Cluster, error) {
	t.Helper()
	cluster, err := gocb.Connect(address, gocb.ClusterOptions{
		Authenticator:  gocb.PasswordAuthenticator{Username: user, Password: password},
		SecurityConfig: security,
	})
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Close(nil)) })
	return cluster, cluster.WaitUntilReady(patient, nil)
}

// trust returns the settings for TLS with the cluster's authority.
func (s *server) trust(t *testing.T) gocb.SecurityConfig {
	t.Helper()
	certificate, err := os.ReadFile(s.Authority)
	must(t, err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(certificate) {
		t.Fatal("the authority's certificate cannot be read")
	}
	return gocb.SecurityConfig{TLSRootCAs: roots}
}

// open returns the default collection, and the test's name as a key of its own.
func (s *server) open(t *testing.T) (*gocb.Collection, string) {
	t.Helper()
	bucket := s.connect(t).Bucket(bucketName)
	must(t, bucket.WaitUntilReady(patient, nil))
	return bucket.DefaultCollection(), t.Name()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Errorf("%v, not %v", err, expected)
	}
}
