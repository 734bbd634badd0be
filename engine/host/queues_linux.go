package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"

	"xroce/xsk/deepstack"
)

// ReceiveQueues counts the receive queues of an interface of the thread's network namespace that
// packets may come in on now: those that the driver counts as its channels, combined ones and
// those that only receive (ethtool -l). A driver without channels has those that sysfs lists or,
// where sysfs is that of another namespace, those that were allocated. It needs no privilege.
func ReceiveQueues(name string) (int, error) {
	if n, err := channels(name); n > 0 || err != nil {
		return n, err
	}
	link, err := netlink.LinkByName(name)
	if err != nil {
		return 0, fmt.Errorf("host: queues of %s: %w", name, err)
	}
	if n := sysfsQueues(filepath.Join("/sys/class/net", name), link.Attrs()); n > 0 {
		return n, nil
	}
	return max(1, link.Attrs().NumRxQueues), nil
}

// channels asks the driver (ETHTOOL_GCHANNELS), 0 where it does not know.
func channels(name string) (int, error) {
	tool, err := ethtool.NewEthtool()
	if err != nil {
		return 0, fmt.Errorf("host: ethtool socket: %w", err)
	}
	defer tool.Close()
	deepstack.Deepen()
	c, err := tool.GetChannels(name)
	if err != nil {
		return 0, nil // EOPNOTSUPP, or no such interface, which others tell
	}
	return int(c.RxCount + c.CombinedCount), nil
}

// sysfsQueues counts the queues in the directory of an interface, 0 where that is not of this
// interface but of one with its name in another namespace.
func sysfsQueues(dir string, attrs *netlink.LinkAttrs) int {
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	if text("ifindex") != strconv.Itoa(attrs.Index) ||
		text("address") != attrs.HardwareAddr.String() {
		return 0
	}
	queues, _ := filepath.Glob(filepath.Join(dir, "queues/rx-*")) // the pattern is right
	return len(queues)
}
