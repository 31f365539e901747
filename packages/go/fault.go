package clustertest

import "fmt"

// Condition selects the requests that a fault hits, and has the values of its effect. A field
// that is empty matches everything.
type Condition struct {
	Opcode      string  `json:"opcode,omitempty"`
	Key         string  `json:"key,omitempty"`
	KeyPrefix   string  `json:"key_prefix,omitempty"`
	Bucket      string  `json:"bucket,omitempty"`
	Service     string  `json:"service,omitempty"`
	Node        *int    `json:"node,omitempty"`
	Skip        int     `json:"skip,omitempty"`
	Times       int     `json:"times,omitempty"`
	Probability float64 `json:"probability,omitempty"`
	Seed        *uint64 `json:"seed,omitempty"`
	// Status is for the effect "answer": ETMPFAIL, 0x86, or 503 for HTTP.
	Status  string `json:"status,omitempty"`
	Body    string `json:"body,omitempty"`
	Context string `json:"context,omitempty"`
	// DelayMs is for the effects "delay" and "delay-answer".
	DelayMs int `json:"delay_ms,omitempty"`
	// Garble is for the effect "garble": magic, opaque, length or body.
	Garble string `json:"garble,omitempty"`
}

// Fault is a rule that hits requests, until it is removed.
type Fault struct {
	cluster *Cluster
	removed bool
	last    struct {
		ID    uint64
		Fired int
	}
}

// Fault injects a fault until Remove, or until the test ends.
func (c *Cluster) Fault(effect string, condition Condition) *Fault {
	c.t.Helper()
	spec := struct {
		Condition
		Effect string `json:"effect"`
	}{condition, effect}
	fault := &Fault{cluster: c}
	c.Call("POST", "/faults", spec, &fault.last)
	return fault
}

// WithFault injects a fault while a function runs, and returns the fault.
func (c *Cluster) WithFault(effect string, condition Condition, action func()) *Fault {
	c.t.Helper()
	fault := c.Fault(effect, condition)
	defer fault.Remove()
	action()
	return fault
}

// Fired returns how many requests the fault has hit.
func (f *Fault) Fired() int {
	f.cluster.t.Helper()
	if !f.removed {
		f.cluster.Call("GET", f.path(), nil, &f.last)
	}
	return f.last.Fired
}

// Remove removes the rule, and releases what it holds. It does nothing the second time.
func (f *Fault) Remove() {
	f.cluster.t.Helper()
	if !f.removed {
		f.Fired()
		f.cluster.Call("DELETE", f.path(), nil, nil)
		f.removed = true
	}
}

func (f *Fault) path() string { return fmt.Sprintf("/faults/%d", f.last.ID) }
