package msg

import "fmt"

// A Protocol is how a message travels. Auto leaves the choice to the machine.
type Protocol uint8

// The protocols. The numbers are those of traces.
const (
	Auto        Protocol = iota
	Eager                // in a slot of the peer, header and data in one WRITE
	Provisioned          // the same in a large slot, which the peer made for it
	Get                  // the peer READs it from our memory
	Put                  // the peer names memory, and we WRITE there
	Fragments            // through slots, a part at a time
	protocolCount
)

var protocolNames = [protocolCount]string{
	"auto", "eager", "provision", "get", "put", "frag",
}

// String returns the protocol as commands spell it.
func (p Protocol) String() string {
	if p < protocolCount {
		return protocolNames[p]
	}
	return fmt.Sprintf("Protocol(%d)", uint8(p))
}

// ParseProtocol reads what String returns. The error is ErrInvalid.
func ParseProtocol(s string) (Protocol, error) {
	for p, name := range protocolNames {
		if s == name {
			return Protocol(p), nil
		}
	}
	return 0, fmt.Errorf("%w: %q is no protocol: want auto, eager, get, put, frag or provision",
		ErrInvalid, s)
}

// A Reason is why a protocol was chosen.
type Reason uint8

// The reasons.
const (
	Forced           Reason = iota // the caller or the configuration asks for it
	Fits                           // no longer than the threshold, as a whole and in each piece
	ElementTooLong                 // a piece is longer than the threshold
	TooLong                        // the message is longer than the threshold
	HasLarge                       // a large slot is there that it fits
	Enlarge                        // the policy says to make a large slot
	BeyondLarge                    // longer than the largest slot there may be
	PolicyNever                    // the policy says to make none
	PolicyWaits                    // the policy says to make one later
	Refused                        // the peer has no memory for a large slot, or this end
	NoKeys                         // memory of one of the ends cannot be named by a key
	NoReads                        // the peer lets nobody READ
	Measured                       // it has cost the least until now
	Crowded                        // too long without a free slot
	InUse                          // all large slots are in use, and it would share none
	Unregistered                   // a device here did not register its memory
	PeerUnregistered               // a device of the peer did not register that of the receive
	reasonCount
)

var reasonTexts = [reasonCount]string{
	"forced",
	"fits a slot",
	"a piece is longer than the threshold",
	"longer than the threshold",
	"fits the large slot that is there",
	"longer than the threshold: a large slot is made",
	"longer than the largest slot",
	"no large slots by policy",
	"a large slot is made later by policy",
	"there is no memory for a large slot",
	"memory without a key",
	"the peer allows no READ",
	"cheapest as measured",
	"no slot was free for long",
	"all large slots are in use",
	"its memory could not be registered",
	"the peer could not register memory for it",
}

// String returns the reason in a few words.
func (r Reason) String() string {
	if r < reasonCount {
		return reasonTexts[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}
