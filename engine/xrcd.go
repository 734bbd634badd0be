package engine

import (
	"fmt"

	"xroce/roce"
)

// An XRCD is an XRC domain of a device (struct ibv_xrcd, IBA annex A14): peers of
// its XRC_RECV QPs name the SRQ of the domain that a message is for. It is safe
// for concurrent use.
type XRCD struct {
	core   *roce.XRCD
	device *Device

	// Under the device's life lock:
	users  int // SRQs and QPs of it
	closed bool
}

// OpenXRCD makes an XRC domain (ibv_open_xrcd). It cannot fail.
func (d *Device) OpenXRCD() *XRCD { return &XRCD{core: roce.NewXRCD(), device: d} }

// Close ends the domain (ibv_close_xrcd). It fails with ErrBusy while SRQs or QPs
// are of it. It is idempotent.
func (x *XRCD) Close() error {
	x.device.life.Lock()
	defer x.device.life.Unlock()
	if x.users > 0 {
		return fmt.Errorf("%w: SRQs or QPs are of the XRC domain", ErrBusy)
	}
	x.closed = true
	return nil
}
