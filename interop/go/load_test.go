package interop

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/couchbase/gocb/v2"
)

// load is a workload during topology changes. Each worker upserts and reads its own keys, and counts
// on its own counter. It records the CAS of every acknowledged write, to compare with the journal.
type load struct {
	collection *gocb.Collection
	stopping   chan struct{}
	done       sync.WaitGroup
	operations atomic.Int64
	workers    [4]worker
}

type worker struct {
	acknowledged map[string][]string
	unsure       map[string]int
	last         map[string]int
	errors       []error
}

func startLoad(t *testing.T, collection *gocb.Collection) *load {
	t.Helper()
	running := &load{collection: collection, stopping: make(chan struct{})}
	for number := range running.workers {
		running.workers[number] = worker{
			acknowledged: map[string][]string{}, unsure: map[string]int{}, last: map[string]int{},
		}
		running.done.Add(1)
		go running.work(number)
	}
	running.progress(t)
	return running
}

func (l *load) work(number int) {
	defer l.done.Done()
	own := &l.workers[number]
	counter := counterOf(number)
	for at := 0; ; at++ {
		select {
		case <-l.stopping:
			return
		default:
		}
		key := fmt.Sprintf("load:%d:%d", number, at%100)
		written, err := l.collection.Upsert(key, at, &gocb.UpsertOptions{Timeout: patient})
		if own.note(key, written, err) {
			own.last[key] = at
			var found int
			if result, err := l.collection.Get(key, &gocb.GetOptions{Timeout: patient}); err != nil {
				own.errors = append(own.errors, err)
			} else if err := result.Content(&found); err != nil || found != at {
				own.errors = append(own.errors, fmt.Errorf("%s: read %d, wrote %d", key, found, at))
			}
		}
		counted, err := l.collection.Binary().Increment(counter, &gocb.IncrementOptions{
			Initial: 1, Delta: 1, Timeout: patient,
		})
		if err == nil {
			own.note(counter, &counted.MutationResult, nil)
		} else {
			own.note(counter, nil, err)
		}
		l.operations.Add(3)
	}
}

func counterOf(number int) string { return fmt.Sprintf("load:%d:counter", number) }

func (w *worker) note(key string, written *gocb.MutationResult, err error) bool {
	if err != nil {
		w.unsure[key]++
		w.errors = append(w.errors, err)
		return false
	}
	w.acknowledged[key] = append(w.acknowledged[key], fmt.Sprintf("0x%016x", uint64(written.Cas())))
	return true
}

// progress waits until 200 operations more are done.
func (l *load) progress(t *testing.T) {
	t.Helper()
	goal, deadline := l.operations.Load()+200, time.Now().Add(30*time.Second)
	for l.operations.Load() < goal {
		if time.Now().After(deadline) {
			t.Fatal("no progress")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// stop ends the load and compares it with the journal. allowed are the errors that may have happened.
func (l *load) stop(t *testing.T, own *server, allowed ...error) {
	t.Helper()
	close(l.stopping)
	l.done.Wait()
	applied := map[string]map[string]bool{}
	entries, _ := own.journal(t, 0)
	for _, entry := range entries {
		if applied[entry.Key] == nil {
			applied[entry.Key] = map[string]bool{}
		}
		if applied[entry.Key][entry.CAS] {
			t.Errorf("%s: a CAS was given twice", entry.Key)
		}
		applied[entry.Key][entry.CAS] = true
	}
	for number := range l.workers {
		own := &l.workers[number]
		for _, err := range own.errors {
			if !isAny(err, allowed) {
				t.Error(err)
			}
		}
		for key, acknowledged := range own.acknowledged {
			for _, cas := range acknowledged {
				if !applied[key][cas] {
					t.Errorf("%s: acknowledged and not applied", key)
				}
			}
			if most := len(acknowledged) + own.unsure[key]; len(applied[key]) > most {
				t.Errorf("%s: %d applied, at most %d expected", key, len(applied[key]), most)
			}
		}
		for key, at := range own.last {
			var found int
			read(t, l.collection, key, &found)
			if found != at && (own.unsure[key] == 0 || found < at) {
				t.Errorf("%s: has %d, %d was acknowledged last", key, found, at)
			}
		}
		var count int
		read(t, l.collection, counterOf(number), &count)
		least := len(own.acknowledged[counterOf(number)])
		if count < least || count > least+own.unsure[counterOf(number)] {
			t.Errorf("counter %d: has %d, %d were acknowledged", number, count, least)
		}
	}
}

func isAny(err error, allowed []error) bool {
	for _, one := range allowed {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}
