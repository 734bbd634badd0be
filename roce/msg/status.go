package msg

import "fmt"

// Status says what came of something: in ATS of a transfer, in PROVISION_NAK of a request for
// memory, in BYE of the connection, and in the Hello of a refusal of the attempt to connect.
// Which of them each may have is a column of the table of types.
type Status uint8

// The statuses.
const (
	StatusOK            Status = 0  // done
	StatusTruncated     Status = 1  // the receive was shorter: the first part was delivered
	StatusCancelled     Status = 2  // taken back by the application, at either end
	StatusNoMemory      Status = 3  // memory was not to be had
	StatusQuota         Status = 4  // more than this peer is granted
	StatusTooLarge      Status = 5  // more than is ever granted
	StatusProtocolError Status = 6  // the peer broke the protocol
	StatusTimeout       Status = 7  // the peer was silent for too long
	StatusClosed        Status = 8  // the application closed
	StatusVersion       Status = 9  // no version is spoken by both
	StatusBusy          Status = 10 // not now
	StatusCapability    Status = 11 // a capability that is required is missing
	StatusService       Status = 12 // another service is spoken
	StatusSession       Status = 13 // there is no such session

	statusEnd Status = 14
)

var statusNames = [statusEnd]string{
	StatusOK:            "ok",
	StatusTruncated:     "truncated",
	StatusCancelled:     "cancelled",
	StatusNoMemory:      "no memory",
	StatusQuota:         "quota",
	StatusTooLarge:      "too large",
	StatusProtocolError: "protocol error",
	StatusTimeout:       "timeout",
	StatusClosed:        "closed",
	StatusVersion:       "version",
	StatusBusy:          "busy",
	StatusCapability:    "capability",
	StatusService:       "service",
	StatusSession:       "session",
}

// String returns the status in words.
func (s Status) String() string {
	if s < statusEnd {
		return statusNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// statusSet is a set of statuses.
type statusSet uint16

// statuses makes a set.
func statuses(list ...Status) statusSet {
	var set statusSet
	for _, s := range list {
		set |= 1 << s
	}
	return set
}

// has reports whether a status is in the set. A shift by more than the width of the set gives 0.
func (set statusSet) has(s Status) bool { return set>>s&1 != 0 }
