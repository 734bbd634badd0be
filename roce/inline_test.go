package roce_test

import (
	"bytes"
	"testing"

	"xroce/roce"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// TestInline: the buffer is free when PostSend returns, no key is looked at, and
// what is sent again is what was posted.
func TestInline(t *testing.T) {
	for _, op := range []roce.Opcode{
		roce.OpSend, roce.OpSendImm, roce.OpSendInv, roce.OpWrite, roce.OpWriteImm,
	} {
		for _, n := range []int{0, 1, 255, 256, 257, 1000} {
			s := newScript(t, options{Inline: 1000})
			data := make([]byte, n)
			fill(data, uint64(n))
			want := bytes.Clone(data)
			s.Post(roce.SendWR{WRID: 1, Opcode: op, Flags: roce.SendInline, Inline: data})
			clear(data)
			for range 2 { // and again after a timeout
				for rest := want; ; {
					m := min(len(rest), s.mtu())
					s.Expect(roctest.Payload(rest[:m]))
					if rest = rest[m:]; len(rest) == 0 {
						break
					}
				}
				s.ExpectNothing()
				s.Advance(68 * roce.Millisecond)
			}
			s.Recv(ack(s.us(uint32(max(n-1, 0) / s.mtu()))))
			s.ExpectCQE(done(1, wcOpcode[op]))
		}
	}
}

// TestInlineOfNothing: an empty message may be inline also where nothing else may.
func TestInlineOfNothing(t *testing.T) {
	for _, op := range []roce.Opcode{
		roce.OpSend, roce.OpSendImm, roce.OpSendInv, roce.OpWrite, roce.OpWriteImm,
	} {
		s := newScript(t, options{})
		s.Post(roce.SendWR{WRID: 1, Opcode: op, Flags: roce.SendInline})
		s.Expect(roctest.Payload(nil))
		s.Recv(ack(s.us(0)))
		s.ExpectCQE(done(1, wcOpcode[op]))
	}
	s := newUD(t, options{})
	gram := s.gram(1, 0, 0)
	gram.SGList, gram.Flags = nil, gram.Flags|roce.SendInline
	s.Post(gram)
	s.Expect(roctest.Payload(nil))
	s.ExpectCQE(done(1, roce.WCSend))
}

// TestInlineRefused: what cannot be inline is an error at post.
func TestInlineRefused(t *testing.T) {
	s := newScript(t, options{Inline: 16})
	for name, wr := range map[string]roce.SendWR{
		"17 bytes inline": {Flags: roce.SendInline, Inline: make([]byte, 17)},
		"SGEs":            {Flags: roce.SendInline, Inline: make([]byte, 1), SGList: s.sge(0, 1)},
		"SendInline":      {Inline: make([]byte, 1)},
	} {
		wr.Opcode = roce.OpSend
		wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, name)
	}
	for _, op := range []roce.Opcode{
		roce.OpRead, roce.OpFetchAdd, roce.OpCmpSwap, roce.OpLocalInv, roce.OpFlush,
	} {
		wr := roce.SendWR{Opcode: op, Flags: roce.SendInline, Inline: make([]byte, 8), Flush: 1}
		wantErr(t, s.qp.PostSend(&wr), roce.ErrInvalid, "inline")
	}
	s.ExpectNothing()
	none := newScript(t, options{})
	wantErr(t, none.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline, Inline: []byte{1},
	}), roce.ErrInvalid, "takes 0")
}

// TestInlineWraps: entries of the ring are used again, each with its own data.
func TestInlineWraps(t *testing.T) {
	s := newScript(t, options{Inline: 8, Depth: 4})
	for i := range uint32(20) {
		s.Post(roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline, Inline: bytes.Repeat([]byte{byte(i)}, 8),
		})
		s.Post(roce.SendWR{Opcode: roce.OpSend, SGList: s.sge(int(i), 3)})
		s.Expect(roctest.Payload(bytes.Repeat([]byte{byte(i)}, 8)))
		s.Expect(roctest.Payload(s.buf[i:][:3]))
		s.Recv(ack(s.us(2*i + 1)))
	}
}

// TestManyPieces: lists of 32 pieces with empty ones anywhere, to send, to read
// into and to receive into.
func TestManyPieces(t *testing.T) {
	lengths := map[string]func(i int) uint32{
		"even":    func(int) uint32 { return 16 },
		"growing": func(i int) uint32 { return uint32(i) },
		"holes":   func(i int) uint32 { return uint32(i%3) * 20 },
		"ends":    func(i int) uint32 { return map[int]uint32{0: 0, 31: 0}[i] + uint32(i%31)*3 },
		"one":     func(i int) uint32 { return map[int]uint32{17: 700}[i] },
		"none":    func(int) uint32 { return 0 },
	}
	for name, length := range lengths {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, options{SGE: 32})
			var list []roce.SGE
			var whole []byte
			for i := range 32 {
				sge := s.sge(1000*i, int(length(i)))[0]
				if sge.Length == 0 {
					sge = roce.SGE{Addr: 1, LKey: 2} // nothing is looked at
				}
				list = append(list, sge)
				whole = append(whole, s.buf[1000*i:][:sge.Length]...)
			}
			s.Post(roce.SendWR{WRID: 1, Opcode: roce.OpSend, SGList: list})
			s.Post(roce.SendWR{WRID: 2, Opcode: roce.OpRead, SGList: list})
			must(t, s.qp.PostRecv(&roce.RecvWR{WRID: 3, SGList: list}))
			for rest, more := whole, true; more; {
				m := min(len(rest), s.mtu())
				s.Expect(roctest.Payload(rest[:m]))
				rest = rest[m:]
				more = len(rest) > 0
			}
			s.Expect(roctest.Opcode(wire.RCReadRequest))
			n := uint32(max(1, (len(whole)+s.mtu()-1)/s.mtu()))
			data := make([]byte, len(whole))
			fill(data, 9)
			feed(s, data, func(first, last bool, i uint32, b []byte) roctest.Packet {
				op := [2][2]wire.Opcode{
					{wire.RCReadRespMiddle, wire.RCReadRespLast},
					{wire.RCReadRespFirst, wire.RCReadRespOnly},
				}[bit(first)][bit(last)]
				return response(op, s.us(n+i), b)
			})
			s.ExpectCQE(done(1, roce.WCSend),
				roce.Completion{WRID: 2, Opcode: roce.WCRead, ByteLen: uint32(len(whole))})
			s.sameScattered(list, data)
			fill(data, 10)
			feed(s, data, func(first, last bool, i uint32, b []byte) roctest.Packet {
				op := [2][2]wire.Opcode{
					{wire.RCSendMiddle, wire.RCSendLast}, {wire.RCSendFirst, wire.RCSendOnly},
				}[bit(first)][bit(last)]
				return request(op, s.it(i), b)
			})
			s.ExpectRecvCQE(roce.Completion{
				WRID: 3, Opcode: roce.WCRecv, ByteLen: uint32(len(whole)),
			})
			s.sameScattered(list, data)
			one := append(list, roce.SGE{})
			err := s.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend, SGList: one})
			wantErr(t, err, roce.ErrInvalid, "33")
			wantErr(t, s.qp.PostRecv(&roce.RecvWR{SGList: one}), roce.ErrInvalid, "33")
		})
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// feed gives a message to the QP packet by packet.
func feed(s *script, data []byte,
	packet func(first, last bool, i uint32, b []byte) roctest.Packet,
) {
	s.t.Helper()
	for i, off := uint32(0), 0; i == 0 || off < len(data); i++ {
		m := min(len(data)-off, s.mtu())
		s.Recv(packet(i == 0, off+m == len(data), i, data[off:off+m]))
		off += m
	}
}

// sameScattered wants the pieces of a list to hold the data.
func (s *script) sameScattered(list []roce.SGE, data []byte) {
	s.t.Helper()
	for i, sge := range list {
		if sge.Length == 0 {
			continue
		}
		off := int(sge.Addr - s.region.Addr())
		if !bytes.Equal(s.buf[off:][:sge.Length], data[:sge.Length]) {
			s.t.Errorf("piece %d has other data", i)
		}
		data = data[sge.Length:]
	}
}
