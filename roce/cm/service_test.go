package cm_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"xroce/roce/cm"
	"xroce/roce/wire"
)

// unhex reads a MAD of hexadecimal digits, with zeros up to its length.
func unhex(t *testing.T, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	must(t, err)
	return append(b, make([]byte, cm.MADLen-len(b))...)
}

// reqBefore and reqAfter are what stands before and behind the service ID of the REQ of
// TestRequestToService, up to the private data, byte for byte (IBA 12.6.5, 13.4.2).
const (
	reqBefore = `01070203 0000 0000 0000000101000000 0010 0000 00000000
		00000001 00000000`
	reqAfter = `000000000000000a 00000000 00000000
		000100 10 000000 10 000000 a0 111111 a7 ffff 37 f0
		ffff ffff 00000000000000000000ffffc0000201 00000000000000000000ffffc0000202
		00007 005 00 40 00 90
		0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000`
)

// TestRequestToService asks for service IDs: one of rdma_cm's IB space has the header of rdma_cm
// before the private data, any other has none of it, as with kernel users of ib_cm. The bytes
// are those of the architecture.
func TestRequestToService(t *testing.T) {
	for _, tt := range []struct {
		name    string
		service cm.ServiceID
		private string // hexadecimal
		most    int    // bytes of private data
	}{
		{
			"RDMA_PS_IB", cm.ServiceIDOf(cm.PortSpaceIB, 7), `00 40 9c40
				000000000000000000000000c0000201 000000000000000000000000c0000202 6869`, 56,
		},
		{"IPoIB connected mode", 0x1000000000000100, `6869`, 92},
		{"a GUID, as of SRP", 0x0002c90300a0b0c0, `6869`, 92},
		{"beyond the port spaces", 0x0000000001060007 | 1<<32, `6869`, 92},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, cm.Config{})
			connect := cm.Connect{
				Path: r.path, Service: tt.service, SrcPort: theirPort, QPN: ourQPN, PSN: ourPSN,
				PathMTU: wire.MTU1024, ResponderRes: 16, InitiatorDepth: 16, RetryCount: 7,
				RNRRetryCount: 7, AckTimeout: 18, Private: []byte("hi"),
			}
			connect.Path.FlowLabel, connect.Path.TClass = 7, 0
			connect.Path.HopLimit, connect.PacketRate = 64, 5
			_, err := r.m.Connect(r.now, connect)
			must(t, err)
			got := make([]byte, cm.MADLen)
			if _, ok := r.m.NextMAD(got); !ok {
				t.Fatal("nothing is sent")
			}
			var id [8]byte
			for i := range id {
				id[i] = byte(tt.service >> (56 - 8*i))
			}
			want := unhex(t, reqBefore+hex.EncodeToString(id[:])+reqAfter+tt.private)
			if !bytes.Equal(got, want) {
				t.Errorf("\n% x, want\n% x", got, want)
			}
			connect.Private = make([]byte, tt.most)
			_, err = r.m.Connect(r.now, connect)
			must(t, err)
			connect.Private = make([]byte, tt.most+1)
			if _, err := r.m.Connect(r.now, connect); !errors.Is(err, cm.ErrInvalid) {
				t.Errorf("%d bytes of private data: %v", tt.most+1, err)
			}
		})
	}
}

// TestServiceMask listens for ranges of service IDs: the request tells which it is for, and
// all its private data is the application's.
func TestServiceMask(t *testing.T) {
	const family, bits = cm.ServiceID(0x1000000000000000), cm.ServiceID(0xff00000000000000)
	r := newRig(t, cm.Config{})
	wide, err := r.m.Listen(cm.Listen{Service: family, Mask: bits})
	must(t, err)
	for _, l := range []struct {
		what    cm.Listen
		refused error
	}{
		{cm.Listen{Service: family | 5}, cm.ErrInUse},               // within the range
		{cm.Listen{Service: 0, Mask: 1}, cm.ErrInUse},               // some are in both
		{cm.Listen{Service: family, Mask: bits}, cm.ErrInUse},       // the same
		{cm.Listen{Service: family | 1, Mask: bits}, cm.ErrInvalid}, // a bit that does not count
		{cm.Listen{Service: family << 1, Mask: bits}, nil},          // beside it
		{cm.Listen{Service: family | 6, Addr: ourAddr}, nil},        // for one address
		{cm.Listen{Service: family, Mask: bits, Datagram: true}, nil},
	} {
		if _, err := r.m.Listen(l.what); !errors.Is(err, l.refused) {
			t.Errorf("%+v: %v", l.what, err)
		}
	}
	for i, s := range []cm.ServiceID{family, family | 5, family | 0xabcdef} {
		req := r.req()
		req.LocalCommID += uint32(i)
		req.LocalQPN += uint32(i)
		req.ServiceID = s
		copy(req.Private[:], "not the header of rdma_cm")
		r.give(req)
		e := r.event(cm.EventConnectRequest)
		if e.Listener != wide || e.Service != s || !bytes.Equal(e.Private, req.Private[:]) ||
			e.IP != (cm.IPHeader{}) || e.Path.Remote != r.path.Remote {
			t.Errorf("%s: %+v", s, e)
		}
	}
	must(t, r.m.Unlisten(wide))
	req := r.req()
	req.LocalCommID, req.LocalQPN, req.ServiceID = 99, 99, family|5
	r.give(req)
	r.want(theirTID, &cm.REJ{RemoteCommID: 99, Reason: cm.ReasonInvalidServiceID})
}

// TestServiceAddress: of listeners with masks, too, that for the address itself goes first.
func TestServiceAddress(t *testing.T) {
	r := newRig(t, cm.Config{})
	any, err := r.m.Listen(cm.Listen{Service: 1<<60 | 5})
	must(t, err)
	here, err := r.m.Listen(cm.Listen{Service: 1 << 60, Mask: 1 << 60, Addr: ourAddr})
	must(t, err)
	there, err := r.m.Listen(cm.Listen{
		Service: 1 << 60, Mask: 1 << 60, Addr: netip.MustParseAddr("192.0.2.77"),
	})
	must(t, err)
	req := r.req()
	req.ServiceID = 1<<60 | 5
	r.give(req)
	if e := r.event(cm.EventConnectRequest); e.Listener != here {
		t.Errorf("listener %d of %d, %d and %d", e.Listener, any, here, there)
	}
}
