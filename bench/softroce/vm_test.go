package softroce

import (
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
