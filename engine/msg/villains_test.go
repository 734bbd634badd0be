package msg_test

import (
	"errors"
	"testing"

	"xroce/roce"
	rmsg "xroce/roce/msg"
	"xroce/xsk/xsktest"
)

// A crime is what a bad peer does, and what is to come of it.
type crime struct {
	name    string
	act     func(v *villain) bool
	hub     func(s *stage) // what the application of the hub does with each connection of it
	config  rmsg.Config    // of the hub
	ends    error          // with which its connections end, nil when they do not
	counter rmsg.CounterID // that counts it
	atMost  int64          // bytes of memory for peers
}

var errAccess = &roce.WorkError{}

var crimes = []crime{
	{
		name: "hellos of another version", counter: rmsg.HellosRefused,
		hub: func(s *stage) { s.knock(strangeHellos()) },
	},
	{
		name: "forged adverts", ends: errAccess, counter: rmsg.SentEager,
		act: once(func(v *villain) bool {
			return v.say(rmsg.Control{
				Type: rmsg.TypeAdvert, Number: 32, Len: rmsg.SlotLen(1024), Addr: 1 << 40, RKey: 7,
			})
		}),
		hub: func(s *stage) {
			must(s.t, s.threat.core.Send(s.clock.Now(), &rmsg.Send{Pieces: [][]byte{{1}}}))
		},
	},
	{
		name: "storm of adverts", counter: rmsg.RecvControl, atMost: 10 << 20,
		act: func(v *villain) bool {
			if v.step > 0 && v.heard[rmsg.TypeAdvertAck] < v.step {
				return false
			}
			v.step++
			return v.say(rmsg.Control{
				Type: rmsg.TypeAdvert, ID: uint32(v.step - 1), Number: 4, Len: 1 << 20,
			})
		},
	},
	{
		name: "forged keys", ends: rmsg.ErrKey, counter: rmsg.ProtocolErrors,
		act: once(func(v *villain) bool {
			ring := v.last[rmsg.TypeAdvert]
			ring.RKey ^= 1 << uint(v.frames%32)
			return v.write(&ring, 0, rmsg.RecordHeader{Type: rmsg.RecordEager}, 0)
		}),
	},
	{
		name: "keys of another peer", ends: rmsg.ErrKey, counter: rmsg.ProtocolErrors,
		act: once(func(v *villain) bool {
			theirs := v.stage.joined.memory[0]
			return v.write(&rmsg.Control{Addr: theirs.Addr, RKey: theirs.RKey, Len: 1064}, 3,
				rmsg.RecordHeader{Type: rmsg.RecordEager, Len: 1000}, 0)
		}),
	},
	{
		name: "stale epochs", ends: rmsg.ErrNoRing, counter: rmsg.ProtocolErrors,
		act: once(func(v *villain) bool {
			return v.write(&v.last[rmsg.TypeAdvert], 0, rmsg.RecordHeader{Type: rmsg.RecordEager},
				rmsg.ImmediateOf(0, 4095, 0).Uint32())
		}),
	},
	{
		name: "credit for what was never sent", ends: rmsg.ErrCredit, counter: rmsg.ProtocolErrors,
		act: once(func(v *villain) bool {
			return v.say(rmsg.Control{Type: rmsg.TypeCredit, Released: 1 << 31})
		}),
	},
	{
		name: "frames beyond its credit", ends: rmsg.ErrSlot, counter: rmsg.ProtocolErrors,
		config: rmsg.Config{Unexpected: 1},
		act: func(v *villain) bool {
			if v.step++; v.step == 1 {
				return v.say(rmsg.Control{Type: rmsg.TypeAdvertAck})
			}
			return v.frame(rmsg.RecordHeader{Type: rmsg.RecordEager, Len: 1000})
		},
	},
	{
		name: "RTS of absurd size", ends: rmsg.ErrRange, counter: rmsg.ProtocolErrors,
		act: once(func(v *villain) bool {
			return v.say(rmsg.Control{
				Type: rmsg.TypeRTS, ID: 1, Len: 1<<63 - 1, Flags: rmsg.FlagPut,
			})
		}),
	},
	{
		name: "more RTS than agreed", ends: rmsg.ErrState, counter: rmsg.ProtocolErrors,
		act: func(v *villain) bool {
			v.step++
			return v.say(rmsg.Control{
				Type: rmsg.TypeRTS, ID: uint32(v.step) % 64, Len: 5000, Flags: rmsg.FlagPut,
			})
		},
	},
	{
		name: "grants that are never used", ends: rmsg.ErrStalled, counter: rmsg.StallEnds,
		config: rmsg.Config{Stall: 5 * roce.Millisecond}, hub: receiveOne,
		act: once(func(v *villain) bool {
			return v.say(rmsg.Control{
				Type: rmsg.TypeRTS, ID: 1, Len: 50_000, Flags: rmsg.FlagPut,
			})
		}),
	},
	{
		name: "a sender that never completes", ends: rmsg.ErrStalled, counter: rmsg.StallEnds,
		config: rmsg.Config{Stall: 5 * roce.Millisecond}, hub: receiveOne,
		act: func(v *villain) bool {
			switch v.step++; {
			case v.step == 1:
				return v.say(rmsg.Control{Type: rmsg.TypeAdvertAck})
			case v.step == 2:
				return v.say(rmsg.Control{Type: rmsg.TypeRTS, ID: 1, Len: 50_000})
			case v.heard[rmsg.TypeCTS] > 0 && v.frames < 4:
				return v.frame(rmsg.RecordHeader{
					Type: rmsg.RecordFragment, Number: 1, Len: 100, Tag: uint64(100 * v.frames),
				})
			}
			return false
		},
	},
	{
		name: "storm of provisioning", ends: rmsg.ErrFlood, counter: rmsg.ProvisionDenied,
		atMost: 2 << 20,
		act: func(v *villain) bool {
			v.step++
			return v.say(rmsg.Control{
				Type: rmsg.TypeProvisionReq, Class: 1 + uint8(v.step%15), ID: uint32(v.step),
				Number: 1 << 15, Len: rmsg.SlotLen(1000 << (v.step % 8)),
			})
		},
	},
	{
		name: "large slots that are given up at once", counter: rmsg.ProvisionAsked,
		atMost: 2 << 20,
		act: func(v *villain) bool {
			switch acks := v.heard[rmsg.TypeProvisionAck]; {
			case acks == v.step && acks%2 == 0, v.step == 0, acks == v.step/2 && v.step%2 == 0:
				v.step++
				return v.say(rmsg.Control{
					Type: rmsg.TypeProvisionReq, Class: 4, ID: uint32(v.step), Number: 2,
					Len: rmsg.SlotLen(196_608),
				})
			case acks == v.step/2+1 && v.step%2 == 1:
				v.step++
				return v.say(rmsg.Control{
					Type: rmsg.TypeRelease, Class: 4, ID: v.last[rmsg.TypeProvisionAck].ID,
				})
			}
			return false
		},
	},
	{
		name: "a receiver that never receives", counter: rmsg.SentEager,
		act: once(func(v *villain) bool {
			return v.say(rmsg.Control{
				Type: rmsg.TypeAdvert, Number: 32, Len: rmsg.SlotLen(1024),
				Addr: v.mr.Addr() + villainRoom, RKey: v.mr.RKey(),
			})
		}),
		hub: func(s *stage) {
			for n := range 500 {
				m := &rmsg.Send{Pieces: [][]byte{make([]byte, 100*n)}}
				must(s.t, s.threat.core.Send(s.clock.Now(), m))
			}
		},
	},
	{
		name: "messages that nobody wants", counter: rmsg.Unexpected,
		act: func(v *villain) bool {
			if v.step++; v.step == 1 {
				return v.say(rmsg.Control{Type: rmsg.TypeAdvertAck})
			}
			freed := uint32(0)
			for _, m := range v.last {
				freed = max(freed, m.Released)
			}
			return v.frames < freed+32 &&
				v.frame(rmsg.RecordHeader{Type: rmsg.RecordEager, Len: 1000})
		},
	},
	{
		name: "nothing but chatter", counter: rmsg.RecvControl,
		act: func(v *villain) bool {
			v.step++
			return v.say(rmsg.Control{Type: rmsg.TypeRTSCancel, ID: uint32(v.step)})
		},
	},
	{
		name: "READs that are never answered", counter: rmsg.RecvControl, hub: receiveOne,
		act: func(v *villain) bool {
			switch v.step++; v.step {
			case 1:
				return v.say(rmsg.Control{
					Type: rmsg.TypeRTS, ID: 1, Len: 1 << 30, Flags: rmsg.FlagGet, RKey: v.mr.RKey(),
					Addr: v.mr.Addr(),
				})
			case 2:
				return v.under > 0
			}
			v.frozen = v.under == 0
			return false
		},
	},
}

// receiveOne has the hub receive a long message of the villain.
func receiveOne(s *stage) {
	must(s.t, s.hub.machine.Receive(s.clock.Now(), &rmsg.Receive{
		Pieces: [][]byte{make([]byte, 8<<20)}, From: s.threat.core,
	}))
}

// stageTime is how long a crime goes on.
const stageTime = 20 * roce.Millisecond

// TestGoodPeerKeepsItsRate: whatever a bad peer does, again and again, is bounded, has a name, is
// counted, and leaves another peer four fifths at least of the messages that it has beside one that
// does nothing. It is under virtual time: each run is the same.
func TestGoodPeerKeepsItsRate(t *testing.T) {
	if xsktest.RaceDetector {
		t.Skip("it is one goroutine, and takes minutes with the race detector")
	}
	quiet := newStage(t, rmsg.Config{})
	quiet.run(stageTime)
	if t.Logf("%d messages beside nobody", quiet.came); quiet.came < 100 {
		t.Fatal("nothing flows")
	}
	for _, c := range crimes {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t, c.config)
			s.bad.act, s.react = c.act, c.hub
			if c.hub != nil {
				c.hub(s)
			}
			s.run(stageTime)
			counts, u := s.hub.machine.Snapshot(), s.hub.machine.Usage()
			t.Logf("%d messages (%.2f), %d connections end, counted %d, %+v", s.came,
				float64(s.came)/float64(quiet.came), len(s.ends), counts[c.counter], u)
			if 10*s.came < 8*quiet.came {
				t.Errorf("%d messages, of %d", s.came, quiet.came)
			}
			if counts[c.counter] == 0 {
				t.Errorf("%v does not count it", c.counter)
			}
			if (len(s.ends) > 0) != (c.ends != nil) {
				t.Errorf("%d connections end", len(s.ends))
			}
			for _, err := range s.ends {
				as := new(roce.WorkError)
				if !errors.Is(err, c.ends) && (c.ends != errAccess || !errors.As(err, &as)) {
					t.Fatalf("a connection ends with %v", err)
				}
			}
			if most := max(c.atMost, 1<<20); u.Memory > most || u.Kept > 1<<20 {
				t.Errorf("it holds %+v", u)
			}
		})
	}
}
