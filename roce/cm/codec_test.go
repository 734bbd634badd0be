package cm_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/wire"
)

// A codec is Parse and Put of one message.
type codec struct {
	attribute cm.Attribute
	parse     func(mad []byte) (putter, error)
	// reserved are the bits of the data, by byte, that mean nothing here.
	reserved map[int]byte
}

type putter interface{ Put(b []byte, tid uint64) }

func codecOf[T any, P interface {
	*T
	putter
}](parse func([]byte) (T, error)) func([]byte) (putter, error) {
	return func(mad []byte) (putter, error) {
		v, err := parse(mad)
		return P(&v), err
	}
}

// codecs are those of all messages.
var codecs = []codec{
	{cm.AttributeREQ, codecOf(cm.ParseREQ), reservedREQ()},
	{cm.AttributeMRA, codecOf(cm.ParseMRA), map[int]byte{8: 0x3f, 9: 7}},
	{cm.AttributeREJ, codecOf(cm.ParseREJ), map[int]byte{8: 0x3f, 9: 1}},
	{cm.AttributeREP, codecOf(cm.ParseREP), map[int]byte{27: 0xf}},
	{cm.AttributeRTU, codecOf(cm.ParseRTU), nil},
	{cm.AttributeDREQ, codecOf(cm.ParseDREQ), map[int]byte{11: 0xff}},
	{cm.AttributeDREP, codecOf(cm.ParseDREP), nil},
	{
		cm.AttributeSIDRREQ, codecOf(cm.ParseSIDRREQ),
		map[int]byte{6: 0xff, 7: 0xff},
	},
	{
		cm.AttributeSIDRREP, codecOf(cm.ParseSIDRREP),
		map[int]byte{6: 0xff, 7: 0xff, 11: 0xff},
	},
	{cm.AttributeLAP, codecOf(cm.ParseLAP), reservedLAP()},
	{
		cm.AttributeAPR, codecOf(cm.ParseAPR),
		map[int]byte{10: 0xff, 11: 0xff},
	},
}

func reservedREQ() map[int]byte {
	m := map[int]byte{}
	for _, i := range []int{4, 24, 25, 26, 27} {
		m[i] = 0xff
	}
	for _, path := range []int{52, 96} {
		m[path+38], m[path+39], m[path+42], m[path+43] = 0x0f, 0xc0, 7, 7
	}
	return m
}

func reservedLAP() map[int]byte {
	m := map[int]byte{15: 7, 58: 0x0f, 61: 0xc0, 62: 7, 63: 7}
	for _, i := range []int{8, 9, 10, 11, 16, 17, 18, 19} {
		m[i] = 0xff
	}
	return m
}

func codecFor(a cm.Attribute) *codec {
	for i := range codecs {
		if codecs[i].attribute == a {
			return &codecs[i]
		}
	}
	return nil
}

// rebuild parses a MAD and puts it together again.
func (c *codec) rebuild(mad []byte) ([]byte, error) {
	h, err := cm.ParseHeader(mad)
	if err != nil {
		return nil, err
	}
	m, err := c.parse(mad)
	if err != nil {
		return nil, err
	}
	// Put must not rely on what was there.
	b := bytes.Repeat([]byte{0xa5}, cm.MADLen)
	m.Put(b, h.TID)
	return b, nil
}

// TestCapturedMADs takes each MAD that Linux sent apart and puts it together again.
func TestCapturedMADs(t *testing.T) {
	seen := map[cm.Attribute]int{}
	for _, name := range captureNames(t) {
		for i, d := range capture(t, name) {
			h, err := cm.ParseHeader(d.mad)
			must(t, err)
			seen[h.Attribute]++
			if want := cm.MessageHeader(h.Attribute, h.TID); h != want {
				t.Errorf("%s, MAD %d: header %s, want %s", name, i, h, want)
			}
			got, err := codecFor(h.Attribute).rebuild(d.mad)
			must(t, err)
			if !bytes.Equal(got, d.mad) {
				t.Errorf("%s, MAD %d, %s:\n%x\nbecomes\n%x", name, i, h.Attribute, d.mad, got)
			}
		}
	}
	for a := cm.AttributeREQ; a <= cm.AttributeSIDRREP; a++ {
		if seen[a] == 0 {
			t.Errorf("no capture has a %s", a)
		}
	}
}

// TestCapturedFields compares fields of the first connection of Linux, made by
// rdma_connect with rd=3 ord=5 retry=5 rnr_retry=6, with what tshark reads.
func TestCapturedFields(t *testing.T) {
	list := capture(t, "cm_connect_v4")
	a, b := list[0].path.Local, list[0].path.Remote
	req, err := cm.ParseREQ(list[0].mad)
	must(t, err)
	header, err := cm.ParseIPHeader(req.Private[:])
	must(t, err)
	want := cm.REQ{
		LocalCommID: 0x15e91223, ServiceID: cm.ServiceIDOf(cm.PortSpaceTCP, 0x5015),
		LocalCAGUID: 0x505400fffe77e197, LocalQPN: 0x82, ResponderRes: 3, InitiatorDepth: 5,
		RemoteTimeout: 20, LocalTimeout: 20, StartingPSN: 0x0ff0c4, RetryCount: 5,
		RNRRetryCount: 6, PKey: 0xffff, PathMTU: wire.MTU4096, MaxCMRetries: 15,
		Primary: cm.PathFields{
			LocalLID: 0xffff, RemoteLID: 0xffff, LocalGID: a, RemoteGID: b, FlowLabel: 0x8fbd9,
			HopLimit: 64, LocalAckTimeout: 17,
		},
		Private: req.Private,
	}
	if req != want {
		t.Errorf("REQ %+v, want %+v", req, want)
	}
	wantHeader := cm.IPHeader{Src: netip.AddrPortFrom(a.Addr(), 0xcbbc), Dst: b.Addr()}
	if header != wantHeader {
		t.Errorf("header %v, want %v", header, wantHeader)
	}
	rep, err := cm.ParseREP(list[1].mad)
	must(t, err)
	wantREP := cm.REP{
		LocalCommID: 0xb5af37a7, RemoteCommID: 0x15e91223, LocalQPN: 0x2a7,
		StartingPSN: 0xbb6e1c, ResponderRes: 3, InitiatorDepth: 5, TargetAckDelay: 15,
		RNRRetryCount: 6, LocalCAGUID: 0x505400fffe77be44, Private: rep.Private,
	}
	if rep != wantREP {
		t.Errorf("REP %+v, want %+v", rep, wantREP)
	}
	sidr, err := cm.ParseSIDRREP(capture(t, "cm_sidr_v4")[1].mad)
	must(t, err)
	wantSIDR := cm.SIDRREP{
		RequestID: 0x05e91223, QPN: 0x313, QKey: cm.QKeyUDP,
		ServiceID: cm.ServiceIDOf(cm.PortSpaceUDP, 0x5065), Private: sidr.Private,
	}
	if sidr != wantSIDR {
		t.Errorf("SIDR_REP %+v, want %+v", sidr, wantSIDR)
	}
}

// TestTruncated shortens MADs to every length.
func TestTruncated(t *testing.T) {
	for n := range cm.MADLen {
		b := make([]byte, n)
		if _, err := cm.ParseHeader(b); !errors.Is(err, cm.ErrShort) {
			t.Errorf("header of %d bytes: %v", n, err)
		}
		for _, c := range codecs {
			if _, err := c.parse(b); !errors.Is(err, cm.ErrShort) {
				t.Errorf("%s of %d bytes: %v", c.attribute, n, err)
			}
		}
		if _, err := cm.ParseIPHeader(b); n < cm.IPHeaderLen && !errors.Is(err, cm.ErrShort) {
			t.Errorf("IP header of %d bytes: %v", n, err)
		}
	}
}

// TestRoundTrip fills messages with noise: what comes back is the same but for
// reserved bits, which are zero.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range codecs {
		for range 200 {
			mad := make([]byte, cm.MADLen)
			cm.MessageHeader(c.attribute, r.Uint64()).Put(mad)
			for i := range cm.DataLen {
				mad[cm.HeaderLen+i] = byte(r.Uint32())
			}
			got, err := c.rebuild(mad)
			must(t, err)
			for i, mask := range c.reserved {
				mad[cm.HeaderLen+i] &^= mask
			}
			if !bytes.Equal(got, mad) {
				t.Fatalf("%s:\n%x becomes\n%x", c.attribute, mad, got)
			}
		}
	}
}

// TestIPHeader puts addresses of both families in and out.
func TestIPHeader(t *testing.T) {
	for _, tt := range []struct{ src, dst string }{
		{"192.0.2.1:7", "192.0.2.2"},
		{"[2001:db8::1]:65535", "2001:db8::2"},
		{"[::ffff:192.0.2.1]:0", "::ffff:192.0.2.2"},
	} {
		h := cm.IPHeader{Src: netip.MustParseAddrPort(tt.src), Dst: netip.MustParseAddr(tt.dst)}
		b := bytes.Repeat([]byte{0xff}, cm.IPHeaderLen)
		h.Put(b)
		if got, err := cm.ParseIPHeader(b); err != nil || got != h {
			t.Errorf("%v comes back as %v, %v", h, got, err)
		}
	}
	for _, version := range [][2]byte{{1, 0x40}, {0x10, 0x60}, {0, 0}, {0, 0x50}, {0, 0x04}} {
		b := make([]byte, cm.IPHeaderLen)
		copy(b, version[:])
		if _, err := cm.ParseIPHeader(b); !errors.Is(err, cm.ErrIPHeader) {
			t.Errorf("version %x: %v", version, err)
		}
	}
}

// TestNames asks for the names of all that has one, and of what has none.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for r := cm.ReasonNone; r <= cm.ReasonVendorOption; r++ {
		name := r.String()
		if seen[name] || (name == fmt.Sprintf("reason %d", r)) != (r == 34) {
			t.Errorf("reason %d is %q", uint16(r), name)
		}
		seen[name] = true
	}
	for _, tt := range []struct {
		what fmt.Stringer
		want string
	}{
		{cm.Reason(99), "reason 99"},
		{cm.AttributeSIDRREP, "SIDR_REP"},
		{cm.Attribute(0x1b), "attribute 0x001b"},
		{cm.Attribute(0xf), "attribute 0x000f"},
		{cm.SIDRNoQP, "no QP available"},
		{cm.SIDRStatus(6), "status 6"},
		{cm.SubjectREP, "REP"},
		{cm.Subject(3), "subject 3"},
		{cm.EventTimewaitExit, "TIMEWAIT_EXIT"},
		{cm.EventType(200), "event 200"},
		{cm.StateMRAREPRcvd, "MRA_REP_RCVD"},
		{cm.State(200), "state 200"},
		{cm.ServiceIDOf(cm.PortSpaceTCP, 4791), "0x00000000010612b7"},
		{cm.DropWrongQPN, "cm_drop_wrong_qpn"},
		{cm.CounterID(0), "cm_tx_msgs_req"},
		{cm.CounterCount, "unknown"},
	} {
		if got := tt.what.String(); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestServiceIDs tells those of rdma_cm from others.
func TestServiceIDs(t *testing.T) {
	for _, tt := range []struct {
		id cm.ServiceID
		ip bool
	}{
		{cm.ServiceIDOf(cm.PortSpaceTCP, 1), true},
		{cm.ServiceIDOf(cm.PortSpaceUDP, 0), true},
		{cm.ServiceIDOf(cm.PortSpaceIB, 65535), true},
		{cm.ServiceIDOf(cm.PortSpaceIPoIB, 7), true},
		{0, false},
		{1<<32 | 0x01060001, false},
		{0x01070001, false},
	} {
		if got := tt.id.IP(); got != tt.ip {
			t.Errorf("%s: IP %v", tt.id, got)
		}
	}
	id := cm.ServiceIDOf(cm.PortSpaceUDP, 4791)
	if id.PortSpace() != cm.PortSpaceUDP || id.Port() != 4791 || id != 0x00000000011112b7 {
		t.Errorf("%s is port %d of 0x%x", id, id.Port(), id.PortSpace())
	}
}

// TestCountersAreDeclared looks for counters without name, unit or meaning, and for
// names of two.
func TestCountersAreDeclared(t *testing.T) {
	seen := map[string]bool{}
	for id := range cm.CounterCount {
		s := id.Spec()
		if s.Name == "cm_" || s.Unit == "" || s.Help == "" || seen[s.Name] {
			t.Errorf("counter %d: %+v", id, s)
		}
		seen[s.Name] = true
	}
}

// TestCodecAllocs parses and writes without allocating.
func TestCodecAllocs(t *testing.T) {
	b := make([]byte, cm.MADLen)
	n := testing.AllocsPerRun(100, func() {
		req, _ := cm.ParseREQ(b)
		rep, _ := cm.ParseREP(b)
		rej, _ := cm.ParseREJ(b)
		sidr, _ := cm.ParseSIDRREP(b)
		req.Put(b, 1)
		rep.Put(b, 1)
		rej.Put(b, 1)
		sidr.Put(b, 1)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMAD: no bytes make a parser panic, and what was parsed comes back the same
// after it was written once.
func FuzzMAD(f *testing.F) {
	for _, name := range captureNames(f) {
		for _, d := range capture(f, name) {
			f.Add(d.mad)
		}
	}
	f.Fuzz(func(t *testing.T, mad []byte) {
		h, err := cm.ParseHeader(mad)
		if (err == nil) != (len(mad) >= cm.MADLen) {
			t.Fatalf("%d bytes: %v", len(mad), err)
		}
		if err != nil {
			return
		}
		for _, c := range codecs {
			once, err := c.rebuild(mad)
			must(t, err)
			twice, err := c.rebuild(once)
			must(t, err)
			if !bytes.Equal(once, twice) {
				t.Fatalf("%s:\n%x becomes\n%x", c.attribute, once, twice)
			}
			if c.attribute == h.Attribute && h.Modifier == 0 && len(h.String()) == 0 {
				t.Fatal("a header without a name")
			}
		}
	})
}

// FuzzREQ: each field of a request is written where it is read, whatever the others
// are, and the addresses in front of the private data too.
func FuzzREQ(f *testing.F) {
	for _, name := range captureNames(f) {
		for _, d := range capture(f, name) {
			if h, _ := cm.ParseHeader(d.mad); h.Attribute == cm.AttributeREQ {
				f.Add(d.mad[cm.HeaderLen:])
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		mad := make([]byte, cm.MADLen)
		copy(mad[cm.HeaderLen:], data)
		r, err := cm.ParseREQ(mad)
		must(t, err)
		out := make([]byte, cm.MADLen)
		r.Put(out, 1)
		back, err := cm.ParseREQ(out)
		must(t, err)
		if back != r {
			t.Fatalf("%+v comes back as %+v", r, back)
		}
		h, err := cm.ParseIPHeader(r.Private[:])
		if err != nil {
			return
		}
		var b [cm.IPHeaderLen]byte
		h.Put(b[:])
		if again, err := cm.ParseIPHeader(b[:]); err != nil || again != h {
			t.Fatalf("%v comes back as %v, %v", h, again, err)
		}
	})
}
