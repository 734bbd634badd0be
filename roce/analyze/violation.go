package analyze

// Clause is a rule of the architecture that a packet of a capture can break.
type Clause uint8

// The rules that are looked at.
const (
	FullPayload      Clause = iota // all packets of a message but the last are as long as the MTU
	MessageOrder                   // middle and last only inside of a message
	MessageLength                  // what a WRITE carries is as long as it says
	DMALength                      // a READ or WRITE is of at most 2^31 bytes
	ZeroPad                        // padding is zero
	AckOfSent                      // what is acknowledged was sent
	MSNForward                     // the message sequence number does not go back
	AtomicAligned                  // atomics are for addresses that are multiples of 8
	AckReqOfAnswer                 // an answer asks for no acknowledgement
	SolicitedInside                // only the last packet of a message solicits an event
	ReservedSyndrome               // the kind of a syndrome is one that is defined
	ZeroPKey                       // a partition key is not 0
	ZeroCNP                        // what a CNP reserves is zero
	FragmentedRoCE                 // packets of RoCE v2 are not fragmented

	numClauses = int(iota)
)

// clauses are the places and the words of the rules. Those of annex A17 are from its text. Of
// volume 1, which was not at hand, Soft-RoCE of Linux and its mailing list name C9-92 and C9-94
// (drivers/infiniband/sw/rxe/rxe_resp.c, rxe_resp_check_length), the section of both, and C9-148,
// word by word; the others are sections by their subject. docs/decode.md says which is which.
var clauses = [numClauses]struct{ where, rule string }{
	FullPayload:      {"IBA 9.7.4.1.6, C9-92", "a first or middle packet is not of the path MTU"},
	MessageOrder:     {"IBA 9.7.4.1.2", "a packet does not go on with the message before it"},
	MessageLength:    {"IBA 9.7.4.1.6", "a WRITE is not as long as its RETH says"},
	DMALength:        {"IBA 9.7.4.1.6, C9-94", "a READ or WRITE is longer than 2^31 bytes"},
	ZeroPad:          {"IBA 9.2", "padding is not zero"},
	AckOfSent:        {"IBA 9.7.5.1.1", "a PSN is acknowledged that was not sent"},
	MSNForward:       {"IBA 9.7.7.1, C9-148", "the message sequence number goes back"},
	AtomicAligned:    {"IBA 9.4.5", "the address of an atomic is no multiple of 8"},
	AckReqOfAnswer:   {"IBA 9.2", "an answer asks for an acknowledgement"},
	SolicitedInside:  {"IBA 9.2", "a packet that does not end a message solicits an event"},
	ReservedSyndrome: {"IBA 9.7.5.2", "a syndrome is of a reserved kind"},
	ZeroPKey:         {"IBA 9.6", "the partition key is invalid"},
	ZeroCNP:          {"IBA A17.9.3", "the reserved bytes of a CNP are not zero"},
	FragmentedRoCE:   {"IBA A17.3.1, CA17-8, CA17-16", "a packet of RoCE v2 is fragmented"},
}

// Where names the clause.
func (c Clause) Where() string { return clauses[c%Clause(numClauses)].where }

// String says what is wrong when the rule is broken.
func (c Clause) String() string { return clauses[c%Clause(numClauses)].rule }

// maxNumbers is how many packet numbers are kept of anything.
const maxNumbers = 10

// Numbers are the packets that something was seen in: how many, and the first of them.
type Numbers struct {
	Count   int   `json:"count"`
	Packets []int `json:"packets,omitempty"`
}

func (n *Numbers) add(packet int) {
	n.Count++
	if len(n.Packets) < maxNumbers {
		n.Packets = append(n.Packets, packet)
	}
}

// A Violation is a rule that was broken.
type Violation struct {
	Clause string `json:"clause"`
	Rule   string `json:"rule"`
	Numbers
}
