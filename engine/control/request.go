package control

import (
	"errors"
	"fmt"
)

// version is that of requests and answers. Who speaks another one is told so.
const version = 1

// Bounds of what a client can ask.
const (
	maxRequest  = 8 << 10 // bytes
	maxClients  = 4       // that are answered at once
	maxWaiting  = 64      // that have not asked yet, or wait for their turn
	maxCaptures = 4       // at once, besides
	maxSnap     = 1 << 18 // bytes of a packet
	// MaxRows is how many objects of a kind of a device an answer has at most.
	MaxRows = 1 << 16
)

// What can be asked for.
const (
	getResources  = "resources"  // the objects of all devices
	getStatistics = "statistics" // and their counters
	getPackets    = "packets"    // those of one device, behind the answer
)

// A Request is what a client asks.
type Request struct {
	Version int    `json:"version"`
	Get     string `json:"get"`
	Rows    int    `json:"rows,omitempty"` // objects of a kind and device, at most
	Keys    bool   `json:"keys,omitempty"` // with memory keys and addresses

	// Of statistics: has those queue pairs that are told of count by themselves from now on, or
	// ends that of all.
	CountQPs   bool `json:"count_qps,omitempty"`
	CountNoQPs bool `json:"count_no_qps,omitempty"`

	// Of packets:
	Device string `json:"device,omitempty"` // its name, "" when there is but one
	Snap   int    `json:"snap,omitempty"`   // bytes of each packet, 0 for all
	Filter string `json:"filter,omitempty"` // see package filter
}

// check says what is wrong with a request, nil for nothing.
func (q *Request) check() error {
	switch {
	case q.Version != version:
		return fmt.Errorf("version %d, this process speaks %d", q.Version, version)
	case q.Get != getResources && q.Get != getStatistics && q.Get != getPackets:
		return fmt.Errorf("no %q, there are %s, %s and %s", q.Get, getResources, getStatistics,
			getPackets)
	case (q.CountQPs || q.CountNoQPs) && q.Get != getStatistics:
		return fmt.Errorf("queue pairs are to count for %s", getStatistics)
	case q.CountQPs && q.CountNoQPs:
		return errors.New("queue pairs are to count, and not to")
	case q.Rows < 0 || q.Rows > MaxRows:
		return fmt.Errorf("%d rows are not in 0..%d", q.Rows, MaxRows)
	case q.Snap < 0 || q.Snap > maxSnap:
		return fmt.Errorf("%d bytes of a packet are not in 0..%d", q.Snap, maxSnap)
	}
	return nil
}
