package roce

import "xroce/roce/wire"

// This file has what every packet of a connection begins and ends with.

// opcode puts an RC opcode into the service of the QP.
func (t *transport) opcode(op wire.Opcode) wire.Opcode { return op | wire.Opcode(t.service) }

// putBTH writes the BTH of a packet of a connection, and the XRCETH of an XRC
// request, and returns the opcode's row. It completes h.
func (t *transport) putBTH(b []byte, h *wire.BTH, srqn uint32) *wire.OpcodeSpec {
	h.Opcode = t.opcode(h.Opcode)
	h.M, h.PKey, h.DestQP = true, t.pkey(), t.attr.DestQPN
	h.PutTo(b)
	spec := h.Opcode.Spec()
	if spec.Has(wire.HasXRCETH) {
		wire.XRCETH{SRQN: srqn}.Put(b[spec.Offsets[wire.HeaderXRCETH]:])
	}
	return spec
}

// seal pads the n bytes of payload behind the headers, which are headers bytes
// from the BTH on, and closes the frame.
func (t *transport) seal(path *wire.Template, frame []byte, headers int, n uint32) int {
	end := headers + int(n)
	pad := int(wire.PadCnt(int(n)))
	clear(frame[path.Len()+end:][:pad])
	t.ipID++
	if t.trace != nil {
		if h, err := wire.ParseBTH(frame[path.Len():]); err == nil {
			t.trace.packet(TraceSent, h.Opcode, h.PSN)
		}
	}
	return path.Seal(frame, end+pad, t.ipID)
}
