package host

import (
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestJoinMAC: the filter of the interface has a MAC address from JoinMAC to LeaveMAC, or to
// Close.
func TestJoinMAC(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	err = pair.Do(vethpair.B, func() error {
		h, err := Open(vethpair.IfName)
		if err != nil {
			return err
		}
		group := [6]byte{0x01, 0x00, 0x5e, 0x51, 0x52, 0x53}
		check := func(what string, want bool) {
			t.Helper()
			list, err := os.ReadFile("/proc/thread-self/net/dev_mcast")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(list), hex.EncodeToString(group[:])) != want {
				t.Errorf("%s: in the filter is not %t", what, want)
			}
		}
		check("at first", false)
		if err := errors.Join(h.JoinMAC(group), h.JoinMAC(group), h.LeaveMAC(group)); err != nil {
			return err
		}
		check("joined twice and left once", true)
		if err := h.LeaveMAC(group); err != nil {
			return err
		}
		check("left", false)
		if err := errors.Join(h.JoinMAC(group), h.Close()); err != nil {
			return err
		}
		check("closed", false)
		if err := h.JoinMAC(group); !errors.Is(err, errClosed) {
			t.Errorf("a closed host: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
