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
	Shrunk
	ProtocolErrors

	CounterCount // the number of counters, not one of them
)

// A CounterSet is the counters of an endpoint.
type CounterSet [CounterCount]uint64
