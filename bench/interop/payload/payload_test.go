package payload

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"xroce/bench/softroce"
	"xroce/cmd/perfdump"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// What a scene is made of.
const (
	sceneMTU    = 256
	sceneAddr   = 0x7f0000001000 // of our memory
	sceneTheirs = 0x55550000     // of that of the peer
	sceneRKey   = 0x1100
	sceneKey    = 0x2200 // of the peer's memory
	ourQPN      = 0x11
	theirQPN    = 0x22
	ourPSN      = wire.PSN(0xfffffe) // wraps
	theirPSN    = wire.PSN(100)
	sceneIn     = 2048 // where our receives are
	sceneLen    = 4096
)

// A scene is a conversation that a test makes up: packets, and the memory that we say
// to have had.
type scene struct {
	t       *testing.T
	payload Payload
	dump    perfdump.Dump
	paths   [2]wire.Template
}

func newScene(t *testing.T, name string) *scene {
	t.Helper()
	s := &scene{t: t}
	s.dump.Head = perfdump.Head{
		Test: name, PathMTU: sceneMTU, Address: sceneAddr, Length: sceneLen, RKey: sceneRKey,
		QPs: []perfdump.QP{{
			QPN: ourQPN, RemoteQPN: theirQPN, RemoteAddress: sceneTheirs, RemoteRKey: sceneKey,
			Send:    perfdump.Places{Offset: 0, Count: 2, Stride: 1024},
			Receive: perfdump.Places{Offset: sceneIn, Count: 2, Stride: 1024},
		}},
	}
	s.dump.Before = pattern(1, sceneLen)
	s.dump.After = slices.Clone(s.dump.Before)
	a, b := wire.GIDFromIPv4([4]byte{192, 0, 2, 1}), wire.GIDFromIPv4([4]byte{192, 0, 2, 2})
	for i, ends := range [][2]wire.GID{{a, b}, {b, a}} {
		err := s.paths[i].Init(wire.Path{
			Framing: wire.FramingV2IPv4, Src: ends[0], Dst: ends[1], HopLimit: 64,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// pattern makes bytes that differ from place to place.
func pattern(seed uint64, n int) []byte {
	b := make([]byte, 0, n+8)
	for x := seed; len(b) < n; x++ {
		b = binary.LittleEndian.AppendUint64(b, (x+seed<<32)*0x9e3779b97f4a7c15)
	}
	return b[:n]
}

// out and in have the cable carry a packet from us and to us.
func (s *scene) out(p roctest.Packet) { s.carry(softroce.A, p, false) }
func (s *scene) in(p roctest.Packet)  { s.carry(softroce.B, p, false) }

func (s *scene) carry(from softroce.End, p roctest.Packet, lost bool) {
	s.t.Helper()
	p.DestQP = map[softroce.End]uint32{softroce.A: theirQPN, softroce.B: ourQPN}[from]
	frame := p.Frame(&s.paths[from])
	var decoded wire.Packet
	if reason := decoded.Decode(frame, nil); reason != wire.OK {
		s.t.Fatalf("%s: %s", p.Opcode, reason)
	}
	s.payload.Add(from, frame, &decoded, lost)
}

// expect compares and wants one fault that has a text, or none for "".
func (s *scene) expect(compared int, text string) {
	s.t.Helper()
	n, faults := s.payload.Compare(&s.dump)
	switch {
	case text == "" && (len(faults) > 0 || n != compared):
		s.t.Errorf("%d bytes were compared, not %d: %q", n, compared, faults)
	case text != "" && (len(faults) != 1 || !strings.Contains(faults[0], text)):
		s.t.Errorf("%q, not %q", faults, text)
	}
}

// A play is what happens in a scene: what went right, in every byte, and how many
// bytes that is about.
type play struct {
	name     string
	test     string
	act      func(s *scene)
	compared int
}

// inMessage is what came for us in a play: 600 bytes, three packets.
var inMessage = pattern(7, 600)

// cut is a packet's part of a message.
func cut(message []byte, i int) []byte {
	return message[i*sceneMTU : min(len(message), (i+1)*sceneMTU)]
}

// three are the opcodes of three packets of a message.
var (
	threeSends  = []wire.Opcode{wire.RCSendFirst, wire.RCSendMiddle, wire.RCSendLast}
	threeWrites = []wire.Opcode{wire.RCWriteFirst, wire.RCWriteMiddle, wire.RCWriteLast}
	threeReads  = []wire.Opcode{wire.RCReadRespFirst, wire.RCReadRespMiddle, wire.RCReadRespLast}
)

// three are the packets of a message, of which the first has a RETH if it is a WRITE.
func three(ops []wire.Opcode, psn wire.PSN, message []byte, reth wire.RETH) []roctest.Packet {
	var list []roctest.Packet
	for i, op := range ops {
		list = append(list, roctest.Packet{
			Opcode: op, PSN: psn.Add(uint32(i)), Payload: cut(message, i), RETH: reth,
		})
	}
	return list
}

// ourWrite is a WRITE of 600 bytes of ours, 64 bytes from the beginning, and theirs is
// one of the peer to the same place of our receives.
func ourWrite(s *scene) []roctest.Packet {
	return three(threeWrites, ourPSN, s.dump.Before[64:][:600],
		wire.RETH{VA: sceneTheirs + 64, RKey: sceneKey, DMALen: 600})
}

func theirWrite() []roctest.Packet {
	return three(threeWrites, theirPSN, inMessage,
		wire.RETH{VA: sceneAddr + sceneIn + 64, RKey: sceneRKey, DMALen: 600})
}

// atomic is a packet of an atomic of the peer on our memory.
func atomic(op wire.Opcode, psn wire.PSN, compare, value uint64) roctest.Packet {
	return roctest.Packet{Opcode: op, PSN: psn, Atomic: wire.AtomicETH{
		VA: sceneAddr + sceneIn, RKey: sceneRKey, Compare: compare, SwapAdd: value,
	}}
}

// atomicAck answers an atomic.
func atomicAck(psn wire.PSN, old uint64) roctest.Packet {
	return roctest.Packet{Opcode: wire.RCAtomicAck, PSN: psn, OrigData: old}
}

// word is the value at an offset of our memory in the beginning.
func (s *scene) word(at int) uint64 { return binary.NativeEndian.Uint64(s.dump.Before[at:]) }

// holds sets a value that our memory has in the end.
func (s *scene) holds(at int, v uint64) { binary.NativeEndian.PutUint64(s.dump.After[at:], v) }

// plays are the conversations that went right.
var plays = []play{
	{"SENDs of ours, through two places", "send-bw", func(s *scene) {
		psn := ourPSN
		for i := range 3 {
			for _, p := range three(threeSends, psn, s.dump.Before[i%2*1024:][:600], wire.RETH{}) {
				s.out(p)
			}
			psn = psn.Add(3)
		}
	}, 1800},
	{"SENDs that come, of which the third is on the first", "send-bw", func(s *scene) {
		psn := theirPSN
		for i := range 3 {
			message := pattern(uint64(20+i), 600)
			for _, p := range three(threeSends, psn, message, wire.RETH{}) {
				s.in(p)
			}
			psn = psn.Add(3)
			copy(s.dump.After[sceneIn+i%2*1024:], message)
		}
	}, 1200},
	{"a WRITE of ours, sent again from the middle", "write-bw", func(s *scene) {
		for _, i := range []int{0, 1, 1, 2} {
			s.carry(softroce.A, ourWrite(s)[i], i == 1)
		}
		s.out(ourWrite(s)[1])
	}, 600},
	{"a WRITE that comes", "write-bw", func(s *scene) {
		for _, p := range theirWrite() {
			s.in(p)
		}
		copy(s.dump.After[sceneIn+64:], inMessage)
	}, 600},
	{"WRITEs of ours that count", "write-lat", func(s *scene) {
		for i := range 3 {
			message := slices.Clone(s.dump.Before[:5])
			message[4] = byte(i + 1)
			s.out(roctest.Packet{
				Opcode: wire.RCWriteOnly, PSN: ourPSN.Add(uint32(i)), Payload: message,
				RETH: wire.RETH{VA: sceneTheirs, RKey: sceneKey, DMALen: 5},
			})
			s.dump.After[4] = byte(i + 1)
		}
	}, 15},
	{"a READ of ours, of which the rest is asked for again", "read-bw", func(s *scene) {
		whole := wire.RETH{VA: sceneTheirs + 64, RKey: sceneKey, DMALen: 600}
		rest := wire.RETH{VA: sceneTheirs + 64 + sceneMTU, RKey: sceneKey, DMALen: 600 - sceneMTU}
		answers := three(threeReads, ourPSN, inMessage, wire.RETH{})
		s.out(roctest.Packet{Opcode: wire.RCReadRequest, PSN: ourPSN, RETH: whole})
		s.in(answers[0])
		s.carry(softroce.B, answers[1], true)
		s.in(answers[2])
		s.out(roctest.Packet{Opcode: wire.RCReadRequest, PSN: ourPSN.Add(1), RETH: rest})
		answers[1].Opcode = wire.RCReadRespFirst
		s.in(answers[1])
		s.in(answers[2])
		copy(s.dump.After[64:], inMessage)
	}, 600},
	{"a READ of the peer", "read-bw", func(s *scene) {
		s.in(roctest.Packet{Opcode: wire.RCReadRequest, PSN: theirPSN, RETH: wire.RETH{
			VA: sceneAddr + sceneIn + 8, RKey: sceneRKey, DMALen: 600,
		}})
		answer := s.dump.Before[sceneIn+8:][:600]
		for _, p := range three(threeReads, theirPSN, answer, wire.RETH{}) {
			s.out(p)
		}
	}, 600},
	{"atomics of the peer", "atomic-bw", func(s *scene) {
		old := s.word(sceneIn)
		s.in(atomic(wire.RCFetchAdd, theirPSN, 0, 5))
		s.in(atomic(wire.RCFetchAdd, theirPSN, 0, 5)) // again
		s.out(atomicAck(theirPSN, old))
		s.in(atomic(wire.RCCmpSwap, theirPSN+1, old+5, 77))
		s.in(atomic(wire.RCCmpSwap, theirPSN+2, old+5, 78))
		s.out(atomicAck(theirPSN+1, old+5))
		s.out(atomicAck(theirPSN, old)) // again
		s.out(atomicAck(theirPSN+2, 77))
		s.holds(sceneIn, 77)
	}, 32},
	{"atomics of ours", "atomic-bw", func(s *scene) {
		for i := range 2 {
			psn := ourPSN.Add(uint32(i))
			s.out(roctest.Packet{Opcode: wire.RCFetchAdd, PSN: psn, Atomic: wire.AtomicETH{
				VA: sceneTheirs + 8, RKey: sceneKey, SwapAdd: 1,
			}})
			s.in(atomicAck(psn, 41+uint64(i)))
		}
		s.holds(8, 42)
	}, 8},
	{"a datagram that comes", "send-lat", func(s *scene) {
		s.dump.Header = wire.GRHLen
		p := roctest.Packet{
			Opcode: wire.UDSendOnly, PSN: theirPSN, Payload: inMessage[:100], DestQP: ourQPN,
		}
		s.in(p)
		frame := p.Frame(&s.paths[softroce.B])
		clear(s.dump.After[sceneIn:][:20])
		copy(s.dump.After[sceneIn+20:], frame[14:34])
		copy(s.dump.After[sceneIn+40:], inMessage[:100])
	}, 140},
}

// TestPlays: what went right is right, and is compared.
func TestPlays(t *testing.T) {
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			s := newScene(t, p.test)
			p.act(s)
			s.expect(p.compared, "")
		})
	}
}

// TestMemoryDamaged: any byte of our memory that is not what it must be is found,
// whether a message put it there or nothing did.
func TestMemoryDamaged(t *testing.T) {
	for _, p := range plays {
		t.Run(p.name, func(t *testing.T) {
			s := newScene(t, p.test)
			p.act(s)
			after := s.dump.After
			for at := range after {
				s.dump.After = slices.Clone(after)
				s.dump.After[at] ^= 1
				s.payload.faults = nil
				if s.expect(0, "memory 0x"); t.Failed() {
					t.Fatalf("at byte %d", at)
				}
			}
		})
	}
}

// TestDamage: each kind of damage is found, and named.
func TestDamage(t *testing.T) {
	in := func(s *scene, list []roctest.Packet) {
		for _, p := range list {
			s.in(p)
		}
	}
	out := func(s *scene, list []roctest.Packet) {
		for _, p := range list {
			s.out(p)
		}
	}
	for _, c := range []struct {
		name string
		act  func(s *scene)
		want string
	}{
		{"a byte of ours was flipped on the way out", func(s *scene) {
			list := ourWrite(s)
			list[1].Payload = slices.Clone(list[1].Payload)
			list[1].Payload[10] ^= 1
			out(s, list)
		}, "WRITE 1 of 600 bytes of xroce: byte 266 was sent as"},
		{"two packets of ours are swapped", func(s *scene) {
			list := ourWrite(s)
			list[0].Payload, list[1].Payload = list[1].Payload, list[0].Payload
			out(s, list)
		}, "byte 0 was sent as"},
		{"a SEND was taken from the place of another", func(s *scene) {
			out(s, three(threeSends, ourPSN, s.dump.Before[1024:][:600], wire.RETH{}))
		}, "SEND 1 of 600 bytes of xroce: byte 0 was sent as"},
		{"a READ was answered from 64 bytes further on", func(s *scene) {
			s.in(roctest.Packet{Opcode: wire.RCReadRequest, PSN: theirPSN, RETH: wire.RETH{
				VA: sceneAddr + sceneIn, RKey: sceneRKey, DMALen: 600,
			}})
			out(s, three(threeReads, theirPSN, s.dump.Before[sceneIn+64:][:600], wire.RETH{}))
		}, "READ 1 of 600 bytes of the peer: byte 0"},
		{"a byte that came was flipped", func(s *scene) {
			in(s, theirWrite())
			copy(s.dump.After[sceneIn+64:], inMessage)
			s.dump.After[sceneIn+64+300] ^= 0x80
		}, "WRITE 1 of 600 bytes: its byte 300 is"},
		{"packets that came were put in the wrong order", func(s *scene) {
			in(s, theirWrite())
			to := s.dump.After[sceneIn+64:]
			copy(to, cut(inMessage, 1))
			copy(to[sceneMTU:], cut(inMessage, 0))
			copy(to[2*sceneMTU:], cut(inMessage, 2))
		}, "its byte 0 is"},
		{"a message landed 64 bytes too far", func(s *scene) {
			in(s, theirWrite())
			copy(s.dump.After[sceneIn+128:], inMessage)
		}, "WRITE 1 of 600 bytes: its byte 0 is"},
		{"a message is where it should be, and too long", func(s *scene) {
			in(s, theirWrite())
			copy(s.dump.After[sceneIn+64:], inMessage)
			s.dump.After[sceneIn+64+600] = 0
		}, "to which nothing was sent, holds 0x00"},
		{"a WRITE was lost", func(s *scene) { in(s, theirWrite()) }, "its byte 0 is"},
		{"the last of two on the same place was lost", func(s *scene) {
			in(s, theirWrite())
			in(s, three(threeWrites, theirPSN+3, pattern(9, 600), theirWrite()[0].RETH))
			copy(s.dump.After[sceneIn+64:], inMessage)
		}, "WRITE 2 of 600 bytes: its byte 0"},
		{"a packet was never sent", func(s *scene) {
			out(s, slices.Delete(ourWrite(s), 1, 2))
		}, "no request with PSN 0xffffff was sent"},
		{"a packet never arrived", func(s *scene) {
			s.in(theirWrite()[0])
			s.carry(softroce.B, theirWrite()[1], true)
			s.in(theirWrite()[2])
		}, "the request with PSN 0x000065 never arrived"},
		{"a READ got no answer", func(s *scene) {
			s.in(roctest.Packet{Opcode: wire.RCReadRequest, PSN: theirPSN, RETH: wire.RETH{
				VA: sceneAddr + sceneIn, RKey: sceneRKey, DMALen: 1,
			}})
		}, "no answer with PSN 0x000064 was sent"},
		{"a repetition is another packet", func(s *scene) {
			again := ourWrite(s)[1]
			again.Payload = bytes.Repeat([]byte{1}, sceneMTU)
			out(s, append(ourWrite(s), again))
		}, "PSN 0xffffff to QP 0x000022 was sent again, but byte 0 was"},
		{"the rest of a READ is another place", func(s *scene) {
			reth := wire.RETH{VA: sceneTheirs, RKey: sceneKey, DMALen: 600}
			s.out(roctest.Packet{Opcode: wire.RCReadRequest, PSN: ourPSN, RETH: reth})
			s.out(roctest.Packet{Opcode: wire.RCReadRequest, PSN: ourPSN.Add(1), RETH: reth})
			in(s, three(threeReads, ourPSN, inMessage, wire.RETH{}))
		}, "in the middle of"},
		{"an answer to a READ is too short", func(s *scene) {
			s.out(roctest.Packet{Opcode: wire.RCReadRequest, PSN: ourPSN, RETH: wire.RETH{
				VA: sceneTheirs, RKey: sceneKey, DMALen: 600,
			}})
			in(s, three(threeReads, ourPSN, inMessage[:599], wire.RETH{}))
		}, "with 87 bytes, not 88"},
		{"a message begins in its middle", func(s *scene) {
			out(s, ourWrite(s)[1:])
		}, "it begins with RC_WRITE_MIDDLE"},
		{"a SEND goes on with a WRITE", func(s *scene) {
			list := ourWrite(s)
			list[0].Opcode = wire.RCSendFirst
			out(s, list)
		}, "it goes on with RC_WRITE_MIDDLE"},
		{"a message has no end", func(s *scene) {
			out(s, ourWrite(s)[:2])
		}, "no request with PSN 0x000000 was sent"},
		{"a WRITE has not the length that it says", func(s *scene) {
			list := ourWrite(s)
			list[0].RETH.DMALen = 601
			out(s, list)
		}, "says that it has 601"},
		{"a WRITE goes to another key", func(s *scene) {
			list := ourWrite(s)
			list[0].RETH.RKey++
			out(s, list)
		}, "it has the key 0x00002201"},
		{"a WRITE of the peer has another key", func(s *scene) {
			list := theirWrite()
			list[0].RETH.RKey++
			in(s, list)
		}, "it has the key 0x00001101"},
		{"a WRITE leaves the memory", func(s *scene) {
			list := theirWrite()
			list[0].RETH.VA = sceneAddr + sceneLen - 599
			in(s, list)
		}, "are not in the memory"},
		{"a count is missing", func(s *scene) {
			s.dump.Test = "write-lat"
			s.out(roctest.Packet{
				Opcode: wire.RCWriteOnly, PSN: ourPSN, Payload: s.dump.Before[:5],
				RETH: wire.RETH{VA: sceneTheirs, RKey: sceneKey, DMALen: 5},
			})
		}, "byte 4 was sent as"},
		{"an atomic was done twice", func(s *scene) {
			old := s.word(sceneIn)
			s.in(atomic(wire.RCFetchAdd, theirPSN, 0, 5))
			s.out(atomicAck(theirPSN, old))
			s.in(atomic(wire.RCFetchAdd, theirPSN+1, 0, 5))
			s.out(atomicAck(theirPSN+1, old+10))
			s.holds(sceneIn, old+15)
		}, "atomic 2 of the peer: xroce answered"},
		{"an atomic was not done", func(s *scene) {
			s.in(atomic(wire.RCFetchAdd, theirPSN, 0, 5))
			s.out(atomicAck(theirPSN, s.word(sceneIn)))
		}, "atomic 1: its byte 0"},
		{"an atomic got two answers", func(s *scene) {
			s.in(atomic(wire.RCFetchAdd, theirPSN, 0, 5))
			s.out(atomicAck(theirPSN, s.word(sceneIn)))
			s.out(atomicAck(theirPSN, s.word(sceneIn)+5))
			s.holds(sceneIn, s.word(sceneIn)+5)
		}, "was sent again, but it answered"},
		{"an atomic of ours was done twice", func(s *scene) {
			for i := range 2 {
				psn := ourPSN.Add(uint32(i))
				s.out(roctest.Packet{Opcode: wire.RCFetchAdd, PSN: psn, Atomic: wire.AtomicETH{
					VA: sceneTheirs, RKey: sceneKey, SwapAdd: 1,
				}})
				s.in(atomicAck(psn, 41+2*uint64(i)))
			}
			s.holds(0, 43)
		}, "it was answered 0x2b, and the last one left 0x2a"},
		{"nothing was said", func(*scene) {}, "no payload was compared"},
		{"it was said to another queue pair", func(s *scene) {
			s.dump.QPs[0].QPN++
			in(s, theirWrite())
		}, "no payload was compared"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, "send-bw")
			c.act(s)
			n, faults := s.payload.Compare(&s.dump)
			if len(faults) == 0 || !strings.Contains(faults[0], c.want) {
				t.Errorf("%d bytes, %q, not %q", n, faults, c.want)
			}
		})
	}
}

// TestFaultsAreFew: a case that is wrong all over is told in a few sentences.
func TestFaultsAreFew(t *testing.T) {
	s := newScene(t, "send-bw")
	for i := range 20 {
		s.out(roctest.Packet{Opcode: wire.RCSendOnly, PSN: ourPSN, Payload: pattern(uint64(i), 8)})
	}
	if _, faults := s.payload.Compare(&s.dump); len(faults) != maxFaults {
		t.Errorf("%d faults", len(faults))
	}
}
