package load

import (
	"encoding/binary"
	"fmt"
	"io"

	"xroce/roce/gen"
	"xroce/roce/wire"
)

// A trace is a capture of connections that never were: long WRITEs and short SENDs, each with its
// acknowledge, whose PSNs and ICRCs are right.

const (
	tracePairs = 8    // queue pairs, which take turns
	traceGap   = 2000 // nanoseconds from one packet to the next
	traceMTU   = 1514 // longest frame

	pcapMagic    = 0xa1b2c3d4 // with microseconds
	pcapEthernet = 1          // LINKTYPE_ETHERNET
	pcapSnap     = 256 << 10
)

// traceOpcodes are the packets of a connection, one turn after the other.
var traceOpcodes = []wire.Opcode{
	wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteMiddle, wire.RCWriteLast, wire.RCSendOnly,
}

// tracePair is a connection of a trace.
type tracePair struct {
	flow *gen.Flow
	back wire.Template
	n    int    // packets of the requester
	msn  uint32 // messages
}

func newTracePair(i int) (*tracePair, error) {
	path := microPath
	path.SrcPort += uint16(i)
	flow, err := gen.NewFlow(gen.Config{
		Kind: gen.KindRoCE, Path: path, MaxFrame: traceMTU,
		Sizes: gen.List(1082, 128, 594, 256, 842, 98), Fill: gen.FillRandom, Seed: uint64(i),
		RoCE: gen.RoCE{
			Opcodes: traceOpcodes, DestQP: 0x100 + uint32(i), MTU: wire.MTU1024, VA: 0x7f0000000000,
			RKey: 0x1234, AckReq: true,
		},
	})
	if err != nil {
		return nil, err
	}
	p := &tracePair{flow: flow}
	path.SrcMAC, path.DstMAC, path.Src, path.Dst = path.DstMAC, path.SrcMAC, path.Dst, path.Src
	return p, p.back.Init(path)
}

// request writes the next packet of the requester, and says whether it asks for an acknowledge.
func (p *tracePair) request(frame []byte, now int64) (length int, ask bool) {
	length = p.flow.Next(frame, now)
	ask = traceOpcodes[p.n%len(traceOpcodes)].Spec().Is(wire.ClassLast)
	p.n++
	return length, ask
}

// answer writes the acknowledge of the last packet.
func (p *tracePair) answer(frame []byte, i int) int {
	p.msn++
	b := frame[p.back.Len():]
	wire.BTH{
		Opcode: wire.RCAck, M: true, PKey: wire.DefaultPKey, DestQP: 0x200 + uint32(i),
		PSN: wire.PSN(p.n-1) & wire.PSN(1<<24-1),
	}.Put(b)
	wire.AETH{Syndrome: wire.ACKNoCredits, MSN: p.msn}.Put(b[wire.BTHLen:])
	return p.back.Seal(frame, wire.BTHLen+wire.AETHLen, uint16(p.n))
}

// WriteTrace writes a pcap file of about so many bytes, and returns how many packets it has. It is
// the same each time.
func WriteTrace(w io.Writer, bytes int64) (packets uint64, err error) {
	pairs := make([]*tracePair, tracePairs)
	for i := range pairs {
		if pairs[i], err = newTracePair(i); err != nil {
			return 0, err
		}
	}
	head := binary.LittleEndian.AppendUint32(nil, pcapMagic)
	head = binary.LittleEndian.AppendUint16(head, 2) // version 2.4
	head = binary.LittleEndian.AppendUint16(head, 4)
	head = append(head, make([]byte, 8)...)
	head = binary.LittleEndian.AppendUint32(head, pcapSnap)
	head = binary.LittleEndian.AppendUint32(head, pcapEthernet)
	if _, err := w.Write(head); err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	t := &trace{w: w, now: 1_700_000_000e9}
	for turn := 0; t.bytes < bytes && t.err == nil; turn++ {
		i := turn % len(pairs)
		p := pairs[i]
		n, ask := p.request(t.frame[:], t.now)
		t.put(n)
		if ask {
			t.put(p.answer(t.frame[:], i))
		}
	}
	return t.packets, t.err
}

// trace is one that is written.
type trace struct {
	w       io.Writer
	frame   [traceMTU]byte
	record  []byte
	now     int64
	bytes   int64
	packets uint64
	err     error
}

// put writes the first n bytes of the frame as a packet.
func (t *trace) put(n int) {
	if t.err != nil {
		return
	}
	t.now += traceGap
	b := binary.LittleEndian.AppendUint32(t.record[:0], uint32(t.now/1e9))
	b = binary.LittleEndian.AppendUint32(b, uint32(t.now%1e9/1000))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	t.record = append(b, t.frame[:n]...)
	if _, err := t.w.Write(t.record); err != nil {
		t.err = fmt.Errorf("load: %w", err)
		return
	}
	t.packets++
	t.bytes += int64(len(t.record))
}
