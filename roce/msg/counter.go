package msg

// A CounterID names one counter of an endpoint.
type CounterID uint8

// The counters.
const (
	Unexpected CounterID = iota
	ProvisionRequests
	ProvisionRefused
	ProvisionFailed
	ProvisionAsked
	ProvisionDenied
	ProvisionStale
	ProvisionLate
	Shrunk
	ProtocolErrors
	RenewFailed
	ActiveUnknown

	CounterCount // the number of counters, not one of them
)

// A CounterSet is the counters of an endpoint.
type CounterSet [CounterCount]uint64

// Counters returns the values.
func (e *Endpoint) Counters() CounterSet { return e.count }
