package roce_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// A talk is a captured conversation of two Soft-RoCE hosts on one RC connection:
// A requests, B responds.
type talk struct {
	t          *testing.T
	frames     [][]byte
	times      []roce.Time
	packets    []*wire.Packet
	qpnA, qpnB uint32
	psn        wire.PSN // of A's first request
	timeout    uint8
	mtu        wire.MTU
}

const captureDir = "wire/testdata/captures/"

// connectLine is what the capturing program did to connect A.
var connectLine = regexp.MustCompile(
	`^A> connect .*qpn=(0x\w+) .* psn=(0x\w+) .*mtu=(0x\w+) .*timeout=(0x\w+)`)

// loadTalk reads a capture; side is "" for what A saw, ".B" for what B saw.
func loadTalk(t *testing.T, name, side string) *talk {
	t.Helper()
	file, err := os.ReadFile(captureDir + name + side + ".pcap")
	must(t, err)
	frames, err := roctest.Pcap(file)
	must(t, err)
	doc, err := os.ReadFile(captureDir + name + ".json")
	must(t, err)
	var about struct {
		Dialogue []string
		PacketsA []string `json:"packets_A"`
		PacketsB []string `json:"packets_B"`
	}
	must(t, json.Unmarshal(doc, &about))
	tk := &talk{t: t, frames: frames}
	for _, line := range about.Dialogue {
		if m := connectLine.FindStringSubmatch(line); m != nil {
			mtu, _ := wire.MTUFromBytes(int(number(t, m[3])))
			tk.qpnB, tk.psn, tk.mtu = number(t, m[1]), wire.PSN(number(t, m[2])), mtu
			tk.timeout = uint8(number(t, m[4]))
		}
	}
	lines := about.PacketsA
	if side == ".B" {
		lines = about.PacketsB
	}
	for i, frame := range frames {
		p := new(wire.Packet)
		if r := p.Decode(frame, nil); r != wire.OK {
			t.Fatalf("%s packet %d: %s", name, i, r)
		}
		tk.packets = append(tk.packets, p)
		seconds, err := strconv.ParseFloat(strings.Fields(lines[i])[0], 64)
		must(t, err)
		tk.times = append(tk.times, roce.Time(seconds*1e9)+roce.Second)
		if p.BTH.DestQP != tk.qpnB {
			tk.qpnA = p.BTH.DestQP
		}
	}
	return tk
}

func number(t *testing.T, s string) uint32 {
	t.Helper()
	n, err := strconv.ParseUint(s, 0, 32)
	must(t, err)
	return uint32(n)
}

// path is the path of A's packets.
func (tk *talk) path() wire.Path {
	for _, p := range tk.packets {
		if p.BTH.DestQP == tk.qpnB {
			return wire.Path{
				Framing: p.Framing, SrcMAC: p.SrcMAC, DstMAC: p.DstMAC, Src: p.Src,
				Dst: p.Dst, HopLimit: p.HopLimit, SrcPort: p.SrcPort,
			}
		}
	}
	tk.t.Fatal("no request in the capture")
	return wire.Path{}
}

// endpoint makes one of our endpoints take the place of A or B.
func (tk *talk) endpoint(asA bool, memory int) *endpoint {
	tk.t.Helper()
	num, peer := tk.qpnB, tk.qpnA
	if asA {
		num, peer = peer, num
	}
	o := options{
		MTU: tk.mtu, SQPSN: tk.psn, RQPSN: tk.psn, Timeout: tk.timeout, RetryCnt: 7,
		RNRRetry: 7, MaxRd: 16, Memory: memory, Depth: 128,
	}.filled()
	o.Attr = func(a *roce.Attr) {
		a.Path = tk.path()
		if !asA {
			a.Path.Src, a.Path.Dst = a.Path.Dst, a.Path.Src
		}
	}
	e := newEndpoint(tk.t, num, o)
	e.connect(peer, o, roce.StateRTS)
	return e
}

// answersOnly are captures whose requests our responder must answer as rxe did.
var answersOnly = []string{
	"rc_send_v4", "rc_send_v6", "rc_send_v4_mtu4096", "rc_send_imm_v4", "rc_send_burst_v4",
	"rc_write_v4", "rc_write_v6", "rc_write_v4_mtu4096", "rc_write_imm_v4", "rc_write_burst_v4",
	"rc_read_v4", "rc_read_v6_mtu4096", "rc_read_pipe_v4", "rc_psn_wrap_v4",
	"loss_ack_v4.B", "loss_acks_coalesced_v4.B", "loss_nak_v4.B", "loss_random_v4.B",
	"loss_read_last_v4.B", "loss_read_middle_v4.B", "loss_read_request_v4.B",
	"loss_send_first_v4.B", "loss_send_only_v4.B", "loss_write_last_v4.B",
	"loss_write_middle_v4.B", "dup_request_v4.B", "reorder_read_v4.B", "reorder_write_v4.B",
	"corrupt_icrc_v4.B", "corrupt_payload_v4.B", "ecn_ce_v4.B",
}

// TestReplayToResponder gives our responder the requests that an rxe requester
// sent, and compares our answers with those of the rxe responder.
func TestReplayToResponder(t *testing.T) {
	for _, name := range answersOnly {
		t.Run(name, func(t *testing.T) {
			base, isB := strings.CutSuffix(name, ".B")
			side := ""
			if isB {
				side = ".B"
			}
			tk := loadTalk(t, base, side)
			e, base0 := tk.responder()
			var ours, theirs []string
			frame := make([]byte, 8192)
			for i, p := range tk.packets {
				if p.BTH.DestQP == tk.qpnA {
					theirs = append(theirs, answerText(p))
					continue
				}
				in := tk.withKey(i, e, base0)
				e.qp.HandlePacket(tk.times[i], in)
				for n := e.qp.NextPacket(tk.times[i], frame); n > 0; {
					must(t, roctest.Frame(frame[:n], roctest.DestQP(tk.qpnA)))
					var out wire.Packet
					out.Decode(frame[:n], nil)
					ours = append(ours, answerText(&out))
					n = e.qp.NextPacket(tk.times[i], frame)
				}
			}
			if !slices.Equal(ours, theirs) {
				t.Errorf("ours\n%s\ntheirs\n%s", strings.Join(ours, "\n"),
					strings.Join(theirs, "\n"))
			}
		})
	}
}

// responder is our QP in the place of B: its memory holds what B's held, as far
// as READ responses show it, and many receives are posted.
func (tk *talk) responder() (e *endpoint, low uint64) {
	low, high := ^uint64(0), uint64(0)
	for _, p := range tk.packets {
		if p.Spec.Has(wire.HasRETH) && p.RETH().DMALen > 0 {
			low = min(low, p.RETH().VA)
			high = max(high, p.RETH().VA+uint64(p.RETH().DMALen))
		}
	}
	size := 0
	if high > low {
		size = int(high - low)
	}
	const receives = 1 << 16
	e = tk.endpoint(false, size+receives)
	for _, p := range tk.packets {
		if p.BTH.Opcode == wire.RCReadRequest {
			tk.learn(p, func(off int, data []byte) {
				copy(e.buf[p.RETH().VA-low+uint64(off):], data)
			})
		}
	}
	for i := range 64 {
		must(tk.t, e.qp.PostRecv(&roce.RecvWR{WRID: uint64(i), SGList: e.sge(size, receives)}))
	}
	return e, low
}

// learn visits the data that the responses to a READ brought.
func (tk *talk) learn(req *wire.Packet, visit func(off int, data []byte)) {
	mtu := tk.mtu.Bytes()
	packets := uint32(max(1, (int(req.RETH().DMALen)+mtu-1)/mtu))
	for _, p := range tk.packets {
		if p.Spec.Is(wire.ClassResponse|wire.ClassRead) &&
			p.BTH.PSN.InWindow(req.BTH.PSN, packets) {
			visit(int(p.BTH.PSN.Diff(req.BTH.PSN))*mtu, p.Payload)
		}
	}
}

// withKey is packet i with our key and address in place of B's, which were other
// numbers on that host.
func (tk *talk) withKey(i int, e *endpoint, low uint64) *wire.Packet {
	p := tk.packets[i]
	if !p.Spec.Has(wire.HasRETH) || !p.VerifyICRC() {
		return p
	}
	frame := bytes.Clone(tk.frames[i])
	transport := frame[len(frame)-p.TransportLen():]
	h := p.RETH()
	h.RKey, h.VA = e.region.RKey(), e.region.Addr()+h.VA-low
	h.Put(transport[p.Spec.Offsets[wire.HeaderRETH]:])
	end := len(frame) - wire.ICRCLen
	binary.LittleEndian.PutUint32(frame[end:],
		wire.ICRC(p.Framing, frame[len(frame)-p.NetworkLen():end], nil))
	var patched wire.Packet
	if r := patched.Decode(frame, nil); r != wire.OK || !patched.VerifyICRC() {
		tk.t.Fatalf("patched packet %d: %s", i, r)
	}
	return &patched
}

// answerText is what must be equal in two answers. A repeated READ is answered
// by rxe with MIDDLE and LAST and by us with FIRST or ONLY, so that the place in
// the message is left out, with the AETH that goes with it.
func answerText(p *wire.Packet) string {
	if p.Spec.Is(wire.ClassRead) {
		return fmt.Sprintf("READ response psn %06x %x", uint32(p.BTH.PSN), p.Payload)
	}
	if s := p.AETH().Syndrome; p.Spec.Has(wire.HasAETH) && s.IsACK() {
		// rxe does not count credits.
		return fmt.Sprintf("%s psn %06x ACK msn %d", p.Spec.Name, uint32(p.BTH.PSN), p.AETH().MSN)
	}
	return roctest.Describe(p)
}

// requestsOnly are captures whose requests our requester must send as rxe did.
var requestsOnly = []string{
	"rc_send_v4", "rc_send_v6", "rc_send_v4_mtu4096", "rc_send_imm_v4", "rc_send_burst_v4",
	"rc_write_v4", "rc_write_v6", "rc_write_v4_mtu4096", "rc_write_imm_v4", "rc_write_burst_v4",
	"rc_read_v4", "rc_read_v6_mtu4096", "rc_psn_wrap_v4", "rc_rnr_v4",
	"loss_ack_v4", "loss_acks_coalesced_v4", "loss_nak_v4", "loss_random_v4",
	"loss_read_last_v4", "loss_read_middle_v4", "loss_read_request_v4", "loss_send_first_v4",
	"loss_send_only_v4", "loss_write_last_v4", "loss_write_middle_v4", "dup_request_v4",
	"reorder_read_v4", "reorder_write_v4", "corrupt_icrc_v4", "corrupt_payload_v4", "ecn_ce_v4",
}

// TestReplayToRequester posts to our requester what an rxe requester was given,
// gives it the rxe responder's answers at their times, and wants the same
// requests from it.
func TestReplayToRequester(t *testing.T) {
	for _, name := range requestsOnly {
		t.Run(name, func(t *testing.T) {
			tk := loadTalk(t, name, "")
			e := tk.endpoint(true, 1<<18)
			frame := make([]byte, 8192)
			next, off := tk.psn, 0
			var want []roce.Completion
			for i, p := range tk.packets {
				now := tk.times[i]
				if at, ok := e.qp.NextDeadline(); ok && at <= now {
					e.qp.HandleDeadline(now)
				}
				if p.BTH.DestQP == tk.qpnA {
					e.qp.HandlePacket(now, p)
					continue
				}
				if p.BTH.PSN == next {
					m := tk.message(i)
					want = append(want, m.post(e, off, uint64(len(want))))
					next, off = m.next, off+m.length+guard
				}
				if p.BTH.PSN.Before(e.qp.Snapshot().UnackedPSN) {
					// rxe sends to the end what it began to send again, we leave
					// out what was acknowledged meanwhile.
					continue
				}
				n := e.qp.NextPacket(now, frame)
				if n == 0 {
					t.Fatalf("packet %d: nothing to send, want %s", i, roctest.Describe(p))
				}
				must(t, roctest.Frame(frame[:n], sameRequest(p)))
			}
			sameCompletions(t, drain(t, e.send), want)
			if e.qp.NextPacket(tk.times[len(tk.times)-1], frame) != 0 {
				t.Error("more to send than rxe had")
			}
			tk.checkReads(e)
		})
	}
}

// checkReads compares the memory behind each READ with what the responses held.
func (tk *talk) checkReads(e *endpoint) {
	tk.t.Helper()
	next, off := tk.psn, 0
	for i, p := range tk.packets {
		if p.BTH.DestQP == tk.qpnA || p.BTH.PSN != next {
			continue
		}
		m := tk.message(i)
		if m.wr.Opcode == roce.OpRead {
			tk.learn(p, func(at int, data []byte) {
				if !bytes.Equal(e.buf[off+at:off+at+len(data)], data) {
					tk.t.Errorf("READ at PSN 0x%06x: data at %d differs", uint32(next), at)
				}
			})
		}
		next, off = m.next, off+m.length+guard
	}
}

// sameRequest wants the request of a capture. We ask for acknowledges as rxe
// does at the end of messages, and less often inside.
func sameRequest(p *wire.Packet) roctest.Check {
	checks := []roctest.Check{
		roctest.Opcode(p.BTH.Opcode), roctest.PSN(p.BTH.PSN),
		roctest.DestQP(p.BTH.DestQP), roctest.RETH(p.RETH()), roctest.Imm(p.ImmDt().Data),
		roctest.Payload(p.Payload), roctest.Solicited(p.BTH.SE),
	}
	if p.Spec.Is(wire.ClassLast) {
		checks = append(checks, roctest.AckReq(p.BTH.AckReq))
	}
	return roctest.All(checks...)
}

// A message is one work request of A, put together from its packets.
type message struct {
	wr     roce.SendWR
	data   []byte
	length int
	next   wire.PSN // of the message behind it
}

// message is the one that begins with packet i.
func (tk *talk) message(i int) message {
	p := tk.packets[i]
	m := message{next: p.BTH.PSN}
	m.wr.RemoteAddr, m.wr.RKey = p.RETH().VA, p.RETH().RKey
	if p.Spec.Is(wire.ClassRead) {
		m.wr.Opcode, m.length = roce.OpRead, int(p.RETH().DMALen)
		m.next = m.next.Add(uint32(max(1, (m.length+tk.mtu.Bytes()-1)/tk.mtu.Bytes())))
		m.data = make([]byte, m.length)
		return m
	}
	for _, p := range tk.packets[i:] {
		if p.BTH.DestQP != tk.qpnB || p.BTH.PSN != m.next {
			continue
		}
		m.data, m.next = append(m.data, p.Payload...), m.next.Add(1)
		if p.Spec.Is(wire.ClassLast) {
			m.finish(p)
			break
		}
	}
	m.length = len(m.data)
	return m
}

// finish sets what the last packet tells.
func (m *message) finish(p *wire.Packet) {
	m.wr.Opcode = roce.OpSend
	if p.Spec.Is(wire.ClassWrite) {
		m.wr.Opcode = roce.OpWrite
	}
	if p.Spec.Has(wire.HasImmDt) {
		m.wr.Imm = p.ImmDt().Data
		m.wr.Opcode = map[roce.Opcode]roce.Opcode{
			roce.OpSend: roce.OpSendImm, roce.OpWrite: roce.OpWriteImm,
		}[m.wr.Opcode]
	}
	if p.BTH.SE {
		m.wr.Flags |= roce.SendSolicited
	}
}

// post posts the message with its data at off, and returns its completion.
func (m *message) post(e *endpoint, off int, id uint64) roce.Completion {
	e.tb.Helper()
	copy(e.buf[off:], m.data)
	m.wr.WRID, m.wr.SGList = id, e.sge(off, m.length)
	must(e.tb, e.qp.PostSend(&m.wr))
	wc := roce.Completion{WRID: id, QPN: e.qp.Num(), Opcode: wcOpcode[m.wr.Opcode]}
	if m.wr.Opcode == roce.OpRead {
		wc.ByteLen = uint32(m.length)
	}
	return wc
}
