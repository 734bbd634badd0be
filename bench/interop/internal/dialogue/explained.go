package dialogue

import "slices"

// An Explanation is of a difference that is known.
type Explanation struct {
	What string // which field, or what of a stream
	// Reference and Ours are the two values, "" for any.
	Reference, Ours string
	Tools           []string // of these alone, nil for all
	Why             string
}

// Explained are the differences that are known, with the reason that
// docs/interop.md gives. A case with another difference fails.
var Explained = []Explanation{
	{
		"BTH.M", "false", "true", nil,
		"The bit (MigReq) is the state of automatic path migration, and 1 is \"migrated\", " +
			"the normal one. rdma_rxe always sends 0 and takes either. We send 1, because " +
			"adapters have been reported to take packets with 0 on a slower way.",
	},
	{
		ackReqOfQP1, "true", "false", nil,
		"rdma_rxe asks for an acknowledgement of each message of the connection manager, " +
			"and of no other datagram. Nothing acknowledges a datagram, so we never ask.",
	},
	{
		"BTH.AckReq", "true", "false",
		[]string{"ucmatose"},
		"ucmatose sends its messages at once. rdma_rxe asks for an acknowledgement of each, " +
			"we of the last one, which covers all (IBA 9.7.5.1.2 leaves it to the requester).",
	},
	{
		"IP.FlowLabel", "0x00000", "of the ports", nil,
		"The REQ names the flow label that follows from the ports of rdma_cm, and the IPv6 " +
			"header has it in the packets that we send. rdma_rxe always leaves it 0 there.",
	},
	{
		firstPSN, "0", notTold,
		[]string{"udaddy"},
		"librdmacm makes the PSN of a datagram's QP begin with 0, and we draw one. Nobody " +
			"compares PSNs of datagrams (IBA 9.8.3).",
	},
	{
		"AETH.Credits", "not counted", "", nil,
		"An acknowledgement tells how many receives are posted (IBA 9.7.7.2), so that a " +
			"requester need not run into RNR NAKs. rdma_rxe says that it does not count, " +
			"and ignores the count of others.",
	},
	{
		coalescedAcks, "", "", nil,
		"An acknowledgement covers all packets before its own (IBA 9.7.5.1), so their " +
			"number depends on time: we send one for all that came in a burst, and either " +
			"end sends one more for a packet that was repeated. It may differ from run to " +
			"run; the last one must be the same.",
	},
	{
		whoHangsUp, "", "",
		[]string{"rdma_client", "ib_send_lat"},
		"Both programs hang up when they have what they wait for, at about the same time. " +
			"Who is first sends the DREQ and the other one the DREP, or both send both. Each " +
			"connection must be ended all the same. Our client of perftest lets the " +
			"server be first.",
	},
	{
		"REQ.FlowControl", "false", "true", nil,
		"The bit says whether the sender counts its receives in acknowledgements (IBA 12.7.26). " +
			"librdmacm sends what the program says, and these leave it 0. We count, and say so.",
	},
	{
		"REP.FlowControl", "false", "true", nil,
		"The same of who accepts.",
	},
	{
		"REQ.RNRRetryCount", "0", "7",
		[]string{"ucmatose"},
		"ucmatose leaves the count of its rdma_connect at 0, and a receive that is late by " +
			"one packet then ends the connection. Ours asks for 7, which has no end.",
	},
	{
		"REQ.ResponderRes", "128", "16",
		[]string{"rdma_client"},
		"Without numbers of the program rdma_connect asks for what the device has: rdma_rxe " +
			"128 READs and atomics at once, we 16.",
	},
	{
		"REQ.InitiatorDepth", "128", "16",
		[]string{"rdma_client"},
		"The same for READs and atomics of its own.",
	},
	{
		"REQ.ResponderRes", "0", "16",
		[]string{"ib_send_lat"},
		"perftest does no READs on the connection of its exchange and says 0. We say what we " +
			"have; the server answers with 0, and that is what holds.",
	},
	{
		"REQ.InitiatorDepth", "0", "16",
		[]string{"ib_send_lat"},
		"The same for READs and atomics of its own.",
	},
	{
		"REP.ResponderRes", "128", "16",
		[]string{"rdma_client"},
		"Without numbers of the program rdma_accept takes those of the request. We take no " +
			"more than we have.",
	},
	{
		"REP.InitiatorDepth", "128", "16",
		[]string{"rdma_client"},
		"The same for READs and atomics of its own.",
	},
}

// ExplainedBy is the place of what explains a difference in a case of a tool, -1 for
// nothing.
func ExplainedBy(tool string, d Difference) int {
	return slices.IndexFunc(Explained, func(e Explanation) bool { return e.explains(tool, d) })
}

// explains reports whether an explanation is one of a difference in a case of a tool.
func (e Explanation) explains(tool string, d Difference) bool {
	return e.What == d.What && (e.Tools == nil || slices.Contains(e.Tools, tool)) &&
		(e.Reference == "" || e.Reference == d.Reference) && (e.Ours == "" || e.Ours == d.Ours)
}

// Unexplained is the first difference in a case of a tool that nobody knows, nil when
// there is none.
func Unexplained(tool string, list []Difference) *Difference {
	for i, d := range list {
		if ExplainedBy(tool, d) < 0 {
			return &list[i]
		}
	}
	return nil
}
