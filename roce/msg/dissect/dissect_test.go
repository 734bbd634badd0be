package dissect

import (
	"strings"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/msg"
	"xroce/roce/roctest"
	"xroce/roce/wire"
)

// want compares what a packet says, "" for nothing.
func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("it says\n%q, want\n%q", got, want)
	}
}

// TestHellos: both ends of a connection are known by what they say of themselves.
func TestHellos(t *testing.T) {
	r := newRig(t)
	says := hello.String()
	want(t, r.manage(0, req()), "REQ qpn=0x111111 "+says)
	want(t, r.manage(0, req()), "REQ qpn=0x111111 "+says+" (again)")
	want(t, r.manage(1, rep()), "REP qpn=0x222222 "+says)
	reject := cm.REJ{}
	no := hello
	no.Status = msg.StatusVersion
	no.Put(reject.Private[:])
	mad := make([]byte, cm.MADLen)
	reject.Put(mad, 1)
	want(t, r.manage(1, mad), "REJ "+strings.Replace(says, "status=ok", "status=version", 1))
	if r.m.Kind != Hello || r.m.Perhaps || r.m.Hello != no {
		t.Errorf("%+v", r.m)
	}
	(&cm.REP{}).Put(mad, 1)
	for name, mad := range map[string][]byte{
		"no hello":         mad,
		"another class":    append([]byte{1, 6}, rep()[2:]...),
		"a MAD cut short":  rep()[:cm.MADLen-1],
		"nothing":          nil,
		"no message of cm": make([]byte, cm.MADLen),
	} {
		if got := r.manage(1, mad); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// example is a message of a type with a value in each field.
func example(typ msg.Type) msg.Control {
	c := msg.Control{Type: typ, Flags: typ.Flags(), Sequence: 9, Released: 4}
	for i, f := range typ.Fields() {
		v := max(f.Min, uint64(i+1))
		switch f.Place {
		case msg.PlaceClass:
			c.Class = uint8(v)
		case msg.PlaceStatus:
			c.Status = typ.Statuses()[0]
		case msg.PlaceNumber:
			c.Number = uint16(v)
		case msg.PlaceID:
			c.ID = uint32(v)
		case msg.PlaceRKey:
			c.RKey = uint32(v)
		case msg.PlaceAddr:
			c.Addr = v
		case msg.PlaceLen:
			c.Len = v
		case msg.PlaceTag:
			c.Tag = v
		}
	}
	return c
}

// types lists all that there are.
func types() (list []msg.Type) {
	for t := msg.Type(1); t.Fields() != nil || t == msg.TypeFIN; t++ {
		list = append(list, t)
	}
	return list
}

// TestControlMessages: each type is named, with its fields; cut short anywhere it is refused by
// name where the connection speaks messages, and nothing elsewhere.
func TestControlMessages(t *testing.T) {
	if n := len(types()); n < 18 {
		t.Fatalf("%d types", n)
	}
	for _, typ := range types() {
		r, stranger := newRig(t).connect(), newRig(t)
		c := example(typ)
		want(t, r.say(0, c), c.String())
		want(t, stranger.say(0, c), "perhaps "+c.String())
		if r.m.Kind != Control || r.m.Control != c || r.m.Err != nil {
			t.Errorf("%s: %+v", typ, r.m)
		}
		whole := c.Put(make([]byte, c.Size()))
		for n := range whole {
			p := roctest.Packet{Opcode: wire.RCSendOnly, Payload: whole[:n]}
			if got := r.next(0, p); !strings.HasPrefix(got, "SEND len=") || r.m.Err == nil {
				t.Errorf("%s, %d bytes: %s", typ, n, got)
			}
			want(t, stranger.next(0, p), "")
		}
	}
}

// TestFrames: in one packet and in several, with as many records as a line has, and more.
func TestFrames(t *testing.T) {
	imm := msg.ImmediateOf(2, 7, 5).Uint32()
	reth := wire.RETH{VA: 0x1000, RKey: 0x77, DMALen: 1} // a lie, which matters to nobody
	for _, c := range []struct {
		payloads []int
		says     string
	}{
		{[]int{5}, "FRAME epoch=7 seq=3 used=24 records=1 released=0 large=0 class=2 slot=5; " +
			"EAGER len=5 tag=0x0"},
		{[]int{0, 3000, 9000}, "FRAME epoch=7 seq=3 used=12048 records=3 released=0 large=0 " +
			"class=2 slot=5; EAGER len=0 tag=0x0; EAGER len=3000 tag=0x1; EAGER len=9000 tag=0x2"},
		{make([]int, 100), "FRAME epoch=7 seq=3 used=1600 records=100 released=0 large=0 class=2 " +
			"slot=5; EAGER len=0 tag=0x0; EAGER len=0 tag=0x1; EAGER len=0 tag=0x2; " +
			"EAGER len=0 tag=0x3; and 96 more"},
	} {
		b := frameOf(t, c.payloads...)
		r, stranger := newRig(t).connect(), newRig(t)
		for _, x := range []*rig{r, stranger} {
			list := pieces(b, 1024)
			for _, payload := range list[:len(list)-1] {
				op := wire.RCWriteMiddle
				if x.psn[0] == firstPSN {
					op = wire.RCWriteFirst
				}
				want(t, x.next(0, roctest.Packet{Opcode: op, RETH: reth, Payload: payload}), "")
			}
			op, says := wire.RCWriteLastImm, c.says
			if len(list) == 1 {
				op = wire.RCWriteOnlyImm
			}
			if x == stranger {
				says = "perhaps " + says
			}
			last := roctest.Packet{Opcode: op, RETH: reth, Imm: imm, Payload: list[len(list)-1]}
			want(t, x.next(0, last), says)
			if x.m.Kind != Frame || x.m.Count != len(c.payloads) || len(x.m.Records) > maxRecords ||
				x.m.RKey != reth.RKey || x.m.Addr != reth.VA || x.d.held != 0 {
				t.Errorf("%+v, %d bytes held", x.m, x.d.held)
			}
		}
	}
}

// TestFrameCutShort: what is left of a frame is refused by name where the connection speaks
// messages, and elsewhere it is no frame.
func TestFrameCutShort(t *testing.T) {
	b := frameOf(t, 5, 20)
	r, stranger := newRig(t).connect(), newRig(t)
	for n := range b {
		p := roctest.Packet{Opcode: wire.RCWriteOnlyImm, Payload: b[:n]}
		if got := r.next(0, p); !strings.HasPrefix(got, "FRAME ") || r.m.Err == nil ||
			!strings.Contains(got, ": msg: ") {
			t.Errorf("%d bytes: %s", n, got)
		}
		want(t, stranger.next(0, p), "")
	}
}

// TestRendezvous: READs and WRITEs are told with the operation whose memory they use.
func TestRendezvous(t *testing.T) {
	r := newRig(t).connect()
	rts := msg.Control{Type: msg.TypeRTS, Flags: msg.FlagGet, ID: 12, Len: 5000, Addr: 64, RKey: 9}
	r.say(0, rts)
	read := wire.RETH{VA: 64, RKey: 9, DMALen: 5000}
	want(t, r.next(1, roctest.Packet{Opcode: wire.RCReadRequest, RETH: read}),
		"READ id=12 len=5000 addr=0x40 rkey=0x9")
	for i, n := range []int{4096, 904} {
		op, says := wire.RCReadRespFirst, ""
		if i == 1 {
			op, says = wire.RCReadRespLast, "READ_RESPONSE len=5000"
		}
		want(t, r.give(0, roctest.Packet{
			Opcode: op, PSN: firstPSN.Add(uint32(i)), DestQP: qpnB, Payload: make([]byte, n),
		}), says)
	}
	read.VA, read.DMALen = read.VA+4096, 904
	want(t, r.next(1, roctest.Packet{Opcode: wire.RCReadRequest, RETH: read}),
		"READ id=12 len=904 addr=0x1040 rkey=0x9 (again)")
	want(t, r.give(0, roctest.Packet{
		Opcode: wire.RCReadRespOnly, PSN: firstPSN.Add(1), DestQP: qpnB, Payload: make([]byte, 904),
	}), "READ_RESPONSE len=904 (again)")
	r.say(0, msg.Control{Type: msg.TypeRTR, ID: 13, Len: 100, Addr: 640, RKey: 10})
	put := roctest.Packet{
		Opcode: wire.RCWriteOnly, RETH: wire.RETH{VA: 640, RKey: 10, DMALen: 100},
		Payload: make([]byte, 100),
	}
	want(t, r.next(1, put), "WRITE id=13 len=100 addr=0x280 rkey=0xa")
	want(t, r.next(1, roctest.Packet{Opcode: wire.RCWriteOnly}), "WRITE len=0 addr=0x0 rkey=0x0")
	want(t, newRig(t).next(1, put), "") // of any program
}

// TestAgain: what is sent again is told so, and what begins in the middle is nothing.
func TestAgain(t *testing.T) {
	r := newRig(t).connect()
	c := msg.Control{Type: msg.TypeFIN}
	want(t, r.say(0, c), "FIN seq=0 released=0")
	r.psn[0] = r.psn[0].Sub(1)
	want(t, r.say(0, c), "FIN seq=0 released=0 (again)")
	b := frameOf(t, 3000)
	list := pieces(b, 1024)
	imm := msg.ImmediateOf(0, 7, 0).Uint32()
	first := roctest.Packet{Opcode: wire.RCWriteFirst, Payload: list[0]}
	middle := roctest.Packet{Opcode: wire.RCWriteMiddle, Payload: list[1]}
	last := roctest.Packet{Opcode: wire.RCWriteLastImm, Payload: list[2], Imm: imm}
	r.next(0, first)
	r.psn[0] = r.psn[0].Add(1)     // the middle is lost
	want(t, r.next(0, last), "")   // so this is early
	r.psn[0] = r.psn[0].Sub(2)     // go-back-N
	want(t, r.next(0, middle), "") // goes on with the first
	if got := r.next(0, last); !strings.HasPrefix(got, "FRAME epoch=7") || !r.m.Again {
		t.Error(got)
	}
	want(t, r.next(0, middle), "")
	want(t, r.next(0, last), "")
	other := roctest.Packet{Opcode: wire.UCSendOnly, Payload: c.Put(make([]byte, c.Size()))}
	want(t, r.next(0, other), "")
}

// TestShort: what people look at first, in a line.
func TestShort(t *testing.T) {
	r := newRig(t)
	r.manage(0, req())
	want(t, r.m.Short(), "REQ HELLO payload=1024 slots=32 rendezvous=64")
	r.manage(1, rep())
	for _, typ := range types() {
		c := example(typ)
		r.say(0, c)
		short := r.m.Short()
		if !strings.HasPrefix(short, typ.String()) || strings.Contains(short, "0x") ||
			len(short) > len(c.String()) {
			t.Errorf("%s in short: %s", &c, short)
		}
	}
	r.say(0, msg.Control{Type: msg.TypeATS, ID: 4, Status: msg.StatusNoMemory, Len: 7})
	want(t, r.m.Short(), "ATS id=4 no memory len=7")
	r.next(0, roctest.Packet{Opcode: wire.RCWriteOnlyImm, Payload: frameOf(t, 1, 2, 3, 4, 5)})
	want(t, r.m.Short(), "FRAME class=0 slot=0; EAGER len=1; EAGER len=2; EAGER len=3; "+
		"EAGER len=4; and 1 more")
	r.next(0, roctest.Packet{Opcode: wire.RCWriteOnly})
	want(t, r.m.Short(), "WRITE len=0")
	r.next(0, roctest.Packet{Opcode: wire.RCSendOnly})
	want(t, r.m.Short(), "SEND len=0: msg: bytes end inside the header")
}
