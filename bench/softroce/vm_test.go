package softroce

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestNetArgs(t *testing.T) {
	tap := func(n int) []*os.File { return make([]*os.File, n) }
	const mac = "netdev=net,romfile=,mac=52:54:00:72:78:07"
	for _, c := range []struct {
		Config
		want string
	}{
		{Config{}, "-netdev dgram,id=net,local.type=fd,local.str=3 -device virtio-net-pci," + mac},
		{
			Config{Tap: tap(1)}, "-netdev tap,id=net,vhost=off,fd=3 -device virtio-net-pci," + mac +
				",disable-legacy=on,iommu_platform=on",
		},
		{
			Config{Tap: tap(2)}, "-netdev tap,id=net,vhost=off,fds=3:4 -device virtio-net-pci," +
				mac + ",disable-legacy=on,iommu_platform=on,mq=on,vectors=6",
		},
		{
			Config{Tap: tap(1), Card: "vmxnet3"}, "-netdev tap,id=net,vhost=off,fd=3 " +
				"-device vmxnet3," + mac,
		},
	} {
		c.Number = 7
		if got := strings.Join(netArgs(c.Config), " "); got != c.want {
			t.Errorf("%+v:\n%s, not\n%s", c.Config, got, c.want)
		}
	}
}

func TestHasCard(t *testing.T) {
	if _, err := exec.LookPath(qemu); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	for card, want := range map[string]bool{CardVirtio: true, "e1000e": true, "ne9000": false} {
		if has, err := HasCard(t.Context(), card); has != want || err != nil {
			t.Errorf("%s: %v, %v", card, has, err)
		}
	}
}

// TestLastWords: of a console with a panic all is told from the first fault on, and its end when
// none is known.
func TestLastWords(t *testing.T) {
	lines := func(from, to int) (s string) {
		for i := from; i <= to; i++ {
			s += fmt.Sprintf("[ %d] line\n", i)
		}
		return s
	}
	const panicked = "Kernel panic - not syncing: Fatal exception in interrupt"
	for _, c := range []struct{ console, want string }{
		{lines(1, 30) + panicked, lines(20, 30) + panicked},
		{
			lines(1, 3) + "[ 4] BUG: kernel NULL pointer\n" + lines(5, 60) + panicked,
			"[ 4] BUG: kernel NULL pointer\n" + lines(5, 60) + panicked,
		},
		{panicked + "\n" + lines(1, 30), panicked + "\n" + lines(1, 30)},
		{"Oops: 0000\n" + panicked, "Oops: 0000\n" + panicked},
		{lines(1, 30) + "Oops\n" + panicked, lines(21, 30) + "Oops\n" + panicked},
	} {
		if got := lastWords(c.console); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}

// TestDrain: nothing that was sent to a VM before it was booted anew reaches it then.
func TestDrain(t *testing.T) {
	ours, theirs, err := framePair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	defer theirs.Close()
	theirs.Fd() // as QEMU is given it
	for range 3 {
		if _, err := ours.Write(make([]byte, 1500)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // one without anything as well
		if err := drain(theirs); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ours.Write([]byte("new")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1500)
	if n, err := theirs.Read(b); string(b[:n]) != "new" || err != nil {
		t.Errorf("%q, %v", b[:n], err)
	}
}
