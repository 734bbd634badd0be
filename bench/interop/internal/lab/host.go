package lab

import (
	"context"

	"xroce/bench/softroce"
)

// A Host is a VM of a lab or a pair, which the kernel in it may end.
type Host struct {
	*softroce.VM
	mtu *int // that its interface has to have
}

// Reboot boots it anew, as it was. No case may be under way.
func (h Host) Reboot(ctx context.Context) error {
	if err := h.VM.Reboot(ctx); err != nil {
		return err
	}
	return setMTUIn(ctx, h.VM, *h.mtu)
}
