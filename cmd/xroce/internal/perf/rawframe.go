package perf

import (
	"context"
	"encoding/binary"
	"fmt"

	"xroce/engine"
	"xroce/roce"
)

// What a test of queue pairs of type RAW_PACKET sends, as raw_ethernet_send_bw does: messages
// are Ethernet frames, with their header, from one end to the other of a link. The ends tell each
// other who they are as in other tests.
const (
	// rawEtherType is that of the frames that the XDP program hands over: IEEE 802 local
	// experimental 1.
	rawEtherType = 0x88b5

	rawHeader  = 14
	minRawSize = 60 // what is shorter arrives with padding
	rawLatency = 64 // the frames of a latency test, unless another size is asked for
)

// raw reports whether messages are frames.
func (c *Config) raw() bool { return c.Type == roce.TypeRawPacket }

// fitFrame makes the size one of frames on an interface with an MTU. sized reports whether the
// user asked for this size.
func (c *Config) fitFrame(mtu int, sized bool) error {
	most := mtu + rawHeader
	switch {
	case !c.raw():
		return nil
	case !sized && c.Test.Latency:
		c.Size = rawLatency
	case !sized:
		c.Size = most
	}
	if c.Size < minRawSize || c.Size > most {
		return fmt.Errorf("%w: -s %d: frames of an interface with an MTU of %d have %d to %d bytes",
			roce.ErrInvalid, c.Size, mtu, minRawSize, most)
	}
	return nil
}

// startRaw has the QP of a flow send frames, and take them if this end receives.
func (e *end) startRaw(f *flow) error {
	if err := f.qp.Start(0); err != nil || !e.cfg.receives() {
		return err
	}
	return f.qp.AttachEtherType(rawEtherType)
}

// connectRaw finds out where the frames of a flow go to.
func (e *end) connectRaw(ctx context.Context, f *flow, to engine.AddressVector) error {
	path, err := e.dev.ResolvePath(ctx, to)
	switch {
	case err != nil:
		return err
	case path.Tags.Len() > 0:
		return fmt.Errorf("%w: frames of -c RAW_PACKET have no VLAN: choose another GID (-x)",
			roce.ErrInvalid)
	case path.DstMAC == path.SrcMAC:
		return fmt.Errorf("%w: frames go to the link, and both ends are here", roce.ErrInvalid)
	}
	f.frame = [rawHeader]byte{}
	copy(f.frame[:], path.DstMAC[:])
	copy(f.frame[6:], path.SrcMAC[:])
	binary.BigEndian.PutUint16(f.frame[12:], rawEtherType)
	return nil
}

// putHeaders writes the Ethernet header into each place that messages of a QP are taken from.
func (e *end) putHeaders(f *flow, qp int) {
	for at := range f.slots {
		copy(e.memory[uint64(e.at.out(qp))+at*f.stride:], f.frame[:])
	}
}
