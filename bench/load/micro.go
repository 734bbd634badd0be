package load

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"

	"xroce/bench/worker"
	"xroce/roce/wire"
)

// microBatch is how often a step is done between two looks at the clock.
const microBatch = 1024

// longBatch is that of a step that is long itself.
const longBatch = 8

// errStep means that a packet of our own was not understood, or a layout refused.
var errStep = errors.New("load: the step went wrong")

// Micro does one step of a packet's way again and again, on a packet with
// o.Message bytes of payload that stays in the cache: "decode" is what a receiver
// does before it looks at a queue pair, ICRC included; "seal" what a sender does
// beside copying the payload; "crc" is CRC-32 alone over as many bytes, from Go's
// library, to compare with. "configure-list" and "configure-column" give a key a
// layout. "transmit-layout" and its like make the packets of a WRITE of o.Message bytes
// from blocks of o.Block. "pin" is pinStep, "store-key" and its like are keyStep.
func Micro(o worker.Options, in io.Reader, out io.Writer) (worker.Report, error) {
	step, err := microStep(o)
	if err != nil {
		return worker.Report{}, err
	}
	if err := worker.Ready(in, out); err != nil {
		return worker.Report{}, err
	}
	batch := microBatch
	if strings.HasPrefix(o.Mode, "configure") || strings.HasPrefix(o.Mode, transmitPrefix) ||
		o.Mode == "pin" || o.Mode == "copy-cold" {
		batch = longBatch
	}
	var total uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), total) {
		if !step(batch) {
			return worker.Report{}, errStep
		}
		total += uint64(batch)
	}
	return report(o, w, total, "in the cache", nil), nil
}

// microPath is the way of packets that go nowhere.
var microPath = wire.Path{
	Framing: wire.FramingV2IPv4, HopLimit: 64, SrcPort: sourcePort,
	SrcMAC: [6]byte{2, 0, 0, 0, 0, 1}, DstMAC: [6]byte{2, 0, 0, 0, 0, 2},
	Src: wire.GIDFromIPv4([4]byte{192, 0, 2, 1}), Dst: wire.GIDFromIPv4([4]byte{192, 0, 2, 2}),
}

// sealedPacket is a SEND of n bytes, sealed, with what it takes to do so again.
func sealedPacket(n int) (frame []byte, t *wire.Template, err error) {
	t = &wire.Template{}
	if err = t.Init(microPath); err != nil {
		return nil, nil, err
	}
	frame = make([]byte, t.FrameLen(wire.BTHLen+n))
	for i := range frame {
		frame[i] = byte(i)
	}
	microBTH.Put(frame[t.Len():])
	return frame[:t.Seal(frame, wire.BTHLen+n, 1)], t, nil
}

var microBTH = wire.BTH{
	Opcode: wire.RCSendOnly, PKey: wire.DefaultPKey, DestQP: 0x11, PSN: 0x64, AckReq: true,
}

// microStep returns a function that does the step so many times, false when it
// went wrong.
func microStep(o worker.Options) (func(times int) bool, error) {
	switch o.Mode {
	case "configure-list":
		return configureStep(listed)
	case "configure-column":
		return configureStep(columned)
	case "pin":
		return pinStep(o.Message)
	case "store-key", "store-forged", "store-copy", "copy-cold":
		return keyStep(o.Mode, o.Message)
	}
	if strings.HasPrefix(o.Mode, transmitPrefix) {
		return transmitStep(o)
	}
	if o.Message <= 0 || o.Message%4 != 0 {
		return nil, fmt.Errorf("load: a payload of %d bytes, want a multiple of 4", o.Message)
	}
	frame, template, err := sealedPacket(o.Message)
	if err != nil {
		return nil, err
	}
	switch o.Mode {
	case "decode":
		var p wire.Packet
		return func(times int) bool {
			ok := true
			for range times {
				ok = p.Decode(frame, nil) == wire.OK && p.VerifyICRC() && ok
			}
			return ok
		}, nil
	case "seal":
		h, n := microBTH, wire.BTHLen+o.Message
		return func(times int) bool {
			end := 0
			for range times {
				h.PSN = h.PSN.Add(1)
				h.Put(frame[template.Len():])
				end = template.Seal(frame, n, uint16(h.PSN))
			}
			return end == len(frame)
		}, nil
	case "crc":
		covered, crc := frame[14:len(frame)-wire.ICRCLen], uint32(0)
		return func(times int) bool {
			for range times {
				crc = crc32.Update(crc, crc32.IEEETable, covered)
			}
			return times > 0
		}, nil
	}
	return nil, fmt.Errorf("load: no step %q", o.Mode)
}
