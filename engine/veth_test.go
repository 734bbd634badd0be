package engine_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/bpf"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// vethPair opens a device at each end of a veth pair in two namespaces.
func vethPair(t *testing.T, o vethpair.Options, opts [2]engine.Options) (
	*vethpair.Pair, [2]*engine.Device,
) {
	t.Helper()
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	var devs [2]*engine.Device
	for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		devs[i] = openIn(t, pair, side, opts[i])
	}
	return pair, devs
}

// openIn opens the device of one end.
func openIn(t *testing.T, pair *vethpair.Pair, side vethpair.Side,
	o engine.Options,
) *engine.Device {
	t.Helper()
	var dev *engine.Device
	err := pair.Do(side, func() (err error) {
		dev, err = engine.Open(vethpair.IfName, o)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

func TestEveryOperationOverAFXDP(t *testing.T) {
	for _, tt := range []struct {
		name string
		mtu  int
		opts [2]engine.Options
	}{
		{"mtu 1500", 1500, [2]engine.Options{}},
		{"mtu 4200 in two buffers", 4200, [2]engine.Options{}},
		{"against asavie", 1500, [2]engine.Options{{}, {Backend: engine.BackendAsavie}}},
		{"busy and pinned", 1500, [2]engine.Options{{Busy: true}, {CPUs: []int{0}}}},
		{"generic XDP", 1500, [2]engine.Options{{Attach: bpf.Generic}, {Attach: bpf.Generic}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			xsktest.NeedRoot(t)
			before := xsktest.Overruns(t)
			_, devs := vethPair(t, vethpair.Options{MTU: tt.mtu}, tt.opts)
			a, b := newSide(t, devs[0]), newSide(t, devs[1])
			// Nothing is lost here, and who is late on a busy machine lost nothing: the
			// local ACK timeout is 4.3 s.
			connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 20})
			for _, size := range []int{0, 1, 64, 4096, 4097, regionSize} {
				exchange(t, a, b, size)
				exchange(t, b, a, size)
			}
			expectNoLossSince(t, before, devs[:]...)
		})
	}
}

// expectNoLoss fails for every counter of something gone wrong.
func expectNoLoss(t *testing.T, d *engine.Device) {
	t.Helper()
	for name, value := range counters(t, d) {
		lossy := strings.HasPrefix(name, "drop_") || strings.HasSuffix(name, "_err") ||
			name == "rx_dropped" || name == "rx_ring_full" || name == "tx_busy" ||
			name == "retransmits"
		if lossy && value != 0 {
			t.Errorf("%s is %d", name, value)
		}
	}
}

// expectNoLossSince is expectNoLoss of devices on a veth pair, where a frame is lost when the
// backlog of a processor has no room for it, which all of the host fill: not if that has been.
func expectNoLossSince(t *testing.T, before uint64, devs ...*engine.Device) {
	t.Helper()
	if n := xsktest.Overruns(t) - before; n > 0 {
		t.Logf("%d frames on the host found no room: some may be lost", n)
		return
	}
	for _, d := range devs {
		expectNoLoss(t, d)
	}
}

func counters(t *testing.T, d *engine.Device) map[string]uint64 {
	t.Helper()
	list, err := d.Counters()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]uint64{}
	for _, c := range list {
		if _, dup := values[c.Name]; dup {
			t.Errorf("counter %s is declared twice", c.Name)
		}
		values[c.Name] = c.Value
	}
	return values
}

func TestOpenErrorsSayWhatToDo(t *testing.T) {
	pair, _ := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	for _, tt := range []struct {
		name, iface string
		opts        engine.Options
		want        string
		errno       error
	}{
		{"no interface", "nope0", engine.Options{}, "ip link", nil},
		{"no Ethernet", "lo", engine.Options{}, "", nil},
		{"queue is taken", vethpair.IfName, engine.Options{}, "of this process", unix.EBUSY},
		{"backend", vethpair.IfName, engine.Options{Backend: "dpdk"}, "xsk", nil},
	} {
		err := pair.Do(vethpair.A, func() error {
			dev, err := engine.Open(tt.iface, tt.opts)
			if err == nil {
				_ = dev.Close()
			}
			return err
		})
		if err == nil || !strings.Contains(err.Error(), tt.want) ||
			(tt.errno != nil && !errors.Is(err, tt.errno)) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

// TestResolve asks the kernel for neighbours: those that answer, by IPv4 and by
// IPv6, and one that does not.
func TestResolve(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	for index, gid := range devs[1].GIDs() {
		path, err := devs[0].ResolvePath(t.Context(), engine.AddressVector{
			DGID: gid, SGIDIndex: index, HopLimit: 64,
		})
		if err != nil {
			t.Errorf("%s: %v", gid, err)
			continue
		}
		if path.DstMAC != devs[1].Port().MAC || path.SrcMAC != devs[0].Port().MAC {
			t.Errorf("%s: path %+v", gid, path)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	nobody := pair.End(vethpair.A).IPv4.Masked().Addr().Next().Next().Next()
	for _, tt := range []struct {
		name string
		av   engine.AddressVector
		want error
	}{
		{
			"nobody answers",
			engine.AddressVector{DGID: wire.GIDFromAddr(nobody), SGIDIndex: 1},
			engine.ErrNoNeighbour,
		},
		{
			"other family",
			engine.AddressVector{DGID: wire.GIDFromAddr(netip.IPv6Loopback()), SGIDIndex: 1},
			roce.ErrInvalid,
		},
		{"no such index", engine.AddressVector{SGIDIndex: 99}, roce.ErrInvalid},
		{"no destination", engine.AddressVector{SGIDIndex: 1}, roce.ErrInvalid},
	} {
		if _, err := devs[0].ResolvePath(ctx, tt.av); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}
