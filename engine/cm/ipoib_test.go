package cm_test

import (
	"testing"

	"xroce/encap/ipoib"
	"xroce/engine"
	rcm "xroce/roce/cm"
)

// TestIPoIBConnectedMode connects as interfaces of IPoIB do: by the service ID of a queue pair for
// datagrams, with private data that begins with what RFC 4755 puts there.
func TestIPoIBConnectedMode(t *testing.T) {
	_, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	const qpn = 0xab0417
	service := rcm.ServiceID(ipoib.ServiceID(qpn))
	l, err := b.manager.ListenService(b.v4, service, 0)
	must(t, err)
	told := func(d ipoib.ConnectData) []byte {
		p := make([]byte, ipoib.ConnectDataLen)
		d.Put(p)
		return p
	}
	mine := ipoib.ConnectData{QPN: 0x208, MTU: 65524}
	yours := ipoib.ConnectData{QPN: qpn, MTU: 2048}
	heard := make(chan ipoib.ConnectData, 1)
	go func() {
		defer close(heard)
		r, err := l.Accept(within(t, testTimeout))
		if err != nil {
			t.Error(err)
			return
		}
		d, err := ipoib.ParseConnectData(r.Private())
		if err != nil || r.Service() != service {
			t.Errorf("%s: %v", r.Service(), err)
		}
		setup := b.setup()
		setup.Private = told(yours)
		if _, err := r.Accept(within(t, testTimeout), setup); err != nil {
			t.Error(err)
		}
		heard <- d
	}()
	setup := a.setup()
	setup.Private = told(mine)
	c, err := a.manager.DialService(within(t, testTimeout), b.v4, service, setup)
	must(t, err)
	if d, err := ipoib.ParseConnectData(c.Private()); d != yours || err != nil {
		t.Errorf("the answer is %+v (%v)", d, err)
	}
	if d := <-heard; d != mine {
		t.Errorf("the request is %+v", d)
	}
}
