package roce_test

import "strings"

// A difference is where we do not do what Soft-RoCE did, on purpose.
type difference struct {
	capture   string
	rxe, ours string // in a line of the dialogue, or in the text of an answer
	why       string
}

const (
	localNAK   = "a SEND that is too long for its receive is an invalid request (docs/decisions.md)"
	quiet      = "what follows a refused SEND is dropped in silence (rnr_refuses.txt)"
	hops       = "the RDMA core of Linux puts the route's hop limit into an address handle"
	anew       = "a repeated READ is answered from FIRST or ONLY on (docs/decisions.md)"
	management = "management datagrams only, which are not for these queue pairs"
	unheard    = "nothing reaches B"
	ucLost     = "Soft-RoCE drops the message behind a broken one too"
)

var differences = []difference{
	{"nak_invalid_v4", "NAK(remote_operational_error)", "NAK(invalid_request)", localNAK},
	{"rc_rnr_v4", "RC_ACK psn 0x5fa488 msn 0 NAK(PSN_sequence_error)", "", quiet},
	{"srq_v4", "RC_ACK psn 0xb0c2de msn 1 NAK(PSN_sequence_error)", "", quiet},
	{"ud_send_v4", " hop=0x21 ", " hop=0x40 ", hops},
	{"ud_send_v6", " hop=0x21 ", " hop=0x40 ", hops},
	{"uc_loss_v4", "len=4096 flags=3 src_qp=0x0 imm=0x3", "len=4096 imm=0x2", ucLost},
	{"uc_loss_v4", "len=4096 flags=3 src_qp=0x0 imm=0x4", "len=4096 imm=0x3", ucLost},
	{
		"uc_loss_v4", "len=4096 flags=3 src_qp=0x0 imm=0x5",
		"len=4096 imm=0x4\nB<   wc wr_id=4 status=0 opcode=128 qpn=0x193 len=4096 imm=0x5",
		ucLost,
	},
}

// differencesOf are the known ones of a capture, none of them found yet.
func differencesOf(name string) map[difference]bool {
	found := map[difference]bool{}
	for _, d := range differences {
		if d.capture == name {
			found[d] = false
		}
	}
	return found
}

// asWeDo turns a line about Soft-RoCE into what we want of ourselves.
func (c *capture) asWeDo(line string) string {
	for d := range c.differ {
		if strings.Contains(line, d.rxe) {
			c.differ[d] = true
			return strings.Replace(line, d.rxe, d.ours, 1)
		}
	}
	return line
}
