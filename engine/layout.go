package engine

import (
	"xroce/roce"
	"xroce/roce/mem"
)

// RegIndirect makes a key for layouts of up to maxEntries pieces or blocks, at most
// mem.MaxEntries. It has no memory, and grants nothing, until ReregSG,
// ReregInterleaved or a UMR gives it a layout. Its addresses are offsets from 0 on.
func (d *Device) RegIndirect(pd *PD, maxEntries int) (*MR, error) {
	if err := pd.retain(d); err != nil {
		return nil, err
	}
	region, err := d.keys.RegisterIndirect(&pd.core, maxEntries)
	if err != nil {
		pd.release()
		return nil, err
	}
	m := &MR{core: region, device: d, pd: pd}
	m.pdn.Store(pd.number)
	d.registry.add(resourceMR, m, &m.number)
	return m, nil
}

// ReregSG makes the region stand for pieces of other regions, laid end to end (what
// was proposed for verbs as ibv_rereg_mr_sg). The key stays as it is, so do the
// address and, unless what names them, protection domain and access; the length is
// that of the pieces. What must name mem.ChangeTranslation. Rights and errors are
// those of mem.Keys.ReregisterLayout; with one the region stays as it is. When it
// returns, no packet reads or writes what the region stood for before.
func (m *MR) ReregSG(what mem.Change, pd *PD, access mem.Access, pieces []mem.Piece) error {
	l, err := mem.NewList(pieces)
	if err != nil {
		return err
	}
	return m.ReregLayout(what, pd, access, l)
}

// ReregInterleaved is ReregSG with blocks that take turns, as mem.NewInterleaved lays
// them (what was proposed for verbs as ibv_rereg_mr_interleaved): the column of a
// matrix is one block.
func (m *MR) ReregInterleaved(
	what mem.Change, pd *PD, access mem.Access, repeat []uint64, blocks []mem.Block,
) error {
	l, err := mem.NewInterleaved(repeat, blocks)
	if err != nil {
		return err
	}
	return m.ReregLayout(what, pd, access, l)
}

// ReregLayout is ReregSG with a layout that was made before.
func (m *MR) ReregLayout(what mem.Change, pd *PD, access mem.Access, l *mem.Layout) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.change(what, pd, func(d *mem.Domain) error {
		return m.device.keys.ReregisterLayout(m.core, what, l, d, access)
	})
}

// UMR is a work request that gives the region, which is one of RegIndirect, a layout
// and access rights, in the order of the send queue: the next request can use it.
// When it fails, the QP goes to ERR and the key is invalid until its next layout.
func (m *MR) UMR(l *mem.Layout, access mem.Access) roce.SendWR {
	return roce.SendWR{
		Opcode: roce.OpUMR, UMR: mem.UMR{Key: m.LKey(), Layout: l, Access: access},
	}
}

// Piece names n bytes of the region for a layout, off bytes behind its beginning.
func (m *MR) Piece(off, n uint64) mem.Piece {
	return mem.Piece{Addr: m.Addr() + off, Length: n, LKey: m.LKey()}
}

// Block names elements of n bytes of the region for an interleaved layout, the first
// off bytes behind its beginning, with their strides by dimension.
func (m *MR) Block(off, n uint64, strides ...uint64) mem.Block {
	return mem.Block{Addr: m.Addr() + off, Bytes: n, Strides: strides, LKey: m.LKey()}
}
