package lab

import (
	"context"
	"fmt"

	"xroce/bench/softroce"
)

// setMTUIn gives the interface of a VM an MTU.
func setMTUIn(ctx context.Context, vm *softroce.VM, mtu int) error {
	command := fmt.Sprintf("ip link set %s mtu %d", vm.Interface(), mtu)
	if out, status, err := vm.Run(ctx, "/usr/bin/"+command); err != nil || status != 0 {
		return fmt.Errorf("in the VM: %s: status %d, %w\n%s", command, status, err, out)
	}
	return nil
}
