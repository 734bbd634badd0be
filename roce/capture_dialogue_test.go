package roce_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"xroce/roce/wire"
)

// A call is one verbs call of the dialogue in a capture, with what it returned:
//
//	A> poll n=1 timeout=0x2710
//	A< ok n=1
//	A<   wc wr_id=0 status=0 opcode=2 qpn=0x4c len=1500 text=success
type call struct {
	line  int // where in the dialogue
	host  byte
	verb  string
	args  words
	reply words
	wcs   []words // of poll
}

// Words are the arguments of a call, or its results.
type words map[string]string

var wordPattern = regexp.MustCompile(`(\w+)=(\S*)`)

func parseWords(s string) words {
	w := words{}
	for _, m := range wordPattern.FindAllStringSubmatch(s, -1) {
		w[m[1]] = m[2]
	}
	return w
}

// has reports whether there is such a word.
func (w words) has(key string) bool { _, ok := w[key]; return ok }

// num is a number, or a default when the word is missing.
func (w words) num(key string, missing uint64) uint64 {
	s, ok := w[key]
	if !ok {
		return missing
	}
	n, err := strconv.ParseUint(s, 0, 64)
	if err != nil {
		panic(err) // the captures never change
	}
	return n
}

// parseDialogue reads the calls of both hosts, in their order.
func parseDialogue(t *testing.T, lines []string) (calls []*call) {
	t.Helper()
	last := map[byte]*call{}
	for i, line := range lines {
		host, text := line[0], line[3:]
		verb, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch {
		case line[1] == '>':
			last[host] = &call{line: i, host: host, verb: verb, args: parseWords(rest)}
			calls = append(calls, last[host])
		case verb == "wc":
			last[host].wcs = append(last[host].wcs, parseWords(rest))
		case verb == "ok":
			last[host].reply = parseWords(rest)
		default:
			t.Fatalf("dialogue line %d: %s", i, line)
		}
	}
	return calls
}

// A posted work request takes its place in the PSNs of its queue pair.
type posted struct {
	*call
	qp    uint64
	qpn   uint32 // of the queue pair, and its peer's, 0 for datagrams
	peer  uint32
	first wire.PSN
	next  wire.PSN // of the request behind it
	begun bool
}

// silentPosts are operations that send nothing.
var silentPosts = map[string]bool{"bind_mw": true, "local_inv": true}

// findPosts gives all posted requests that send packets their PSNs.
func findPosts(t *testing.T, calls []*call) (posts []*posted) {
	t.Helper()
	type queue struct {
		qpn, peer uint32
		psn       wire.PSN
		mtu       uint64
	}
	queues := map[string]*queue{}
	for _, c := range calls {
		key := string(c.host) + c.args["qp"]
		switch {
		case c.verb == "qp":
			queues[string(c.host)+c.reply["qp"]] = &queue{qpn: uint32(c.reply.num("qpn", 0))}
		case c.verb == "connect":
			q := queues[key]
			q.peer, q.psn = uint32(c.args.num("qpn", 0)), wire.PSN(c.args.num("psn", 0))
			q.mtu = c.args.num("mtu", 4096)
		case c.verb == "post" && !silentPosts[c.args["op"]]:
			q := queues[key]
			n := uint32(1)
			if length := c.args.num("len", 0); length > q.mtu {
				n = uint32((length + q.mtu - 1) / q.mtu)
			}
			posts = append(posts, &posted{
				call: c, qp: c.args.num("qp", 0), qpn: q.qpn, peer: q.peer,
				first: q.psn, next: q.psn.Add(n),
			})
			q.psn = q.psn.Add(n)
		}
	}
	return posts
}

// covers reports whether a request packet that host sent is of this request.
func (p *posted) covers(host byte, pkt *wire.Packet) bool {
	if p.host != host || !pkt.BTH.PSN.InWindow(p.first, uint32(p.next.Diff(p.first))) {
		return false
	}
	if pkt.Spec.Has(wire.HasDETH) {
		return p.peer == 0 && p.qpn == pkt.DETH().SrcQP
	}
	return p.peer == pkt.BTH.DestQP
}

// pattern are n bytes, from the skipped ones on, with which the capturing
// program filled a region that has this seed.
func pattern(seed, skip, n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		at := skip + uint64(i)
		word := uint32(seed)*0x9e3779b1 + uint32(at/4)*0x85ebca6b
		word ^= word >> 15
		b[i] = byte(word >> (8 * (at % 4)))
	}
	return b
}
