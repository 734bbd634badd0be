package demo

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// The matrices that are shown: both hosts have one, row after row.
const (
	matrixRows    = 1000
	matrixColumns = 12
	cellSize      = 8 // bytes
	rowSize       = matrixColumns * cellSize
	columnSize    = matrixRows * cellSize
	// strip is so many columns, side by side.
	strip = 3
)

// A grid is the matrix of each host, and a long row beside it that a column fits.
type grid struct {
	*pair
	tally
	*talk
	matrix, row [2]*engine.MR
	indirect    [2]*engine.MR
}

func newGrid(c *cast, p *pair, t *talk) (*grid, error) {
	g := &grid{pair: p, tally: c.tally, talk: t}
	for host, dev := range c.dev {
		for _, m := range []struct {
			mr   **engine.MR
			size int
		}{{&g.matrix[host], matrixRows * rowSize}, {&g.row[host], columnSize}} {
			mr, err := dev.RegMR(c.pd[host], make([]byte, m.size), mem.LocalWrite)
			if err != nil {
				return nil, err
			}
			*m.mr = mr
		}
		var err error
		if g.indirect[host], err = dev.RegIndirect(c.pd[host], 1); err != nil {
			return nil, err
		}
		for i := range matrixRows * matrixColumns {
			cell := g.matrix[host].Bytes()[i*cellSize:]
			copy(cell, "\xa5\x5a\xa5\x5a") // see mark
			binary.BigEndian.PutUint32(cell[4:], uint32(host<<24|i))
		}
	}
	return g, nil
}

// columns are the layout of n columns, side by side, of the matrix of a host.
func (g *grid) columns(host, first, n int) (*mem.Layout, error) {
	return mem.NewInterleaved([]uint64{matrixRows}, []mem.Block{
		g.matrix[host].Block(uint64(first*cellSize), uint64(n*cellSize), rowSize),
	})
}

// cells are the same columns, copied by hand.
func (g *grid) cells(host, first, n int) (all []byte) {
	for row := range matrixRows {
		all = append(all, g.matrix[host].Bytes()[row*rowSize+first*cellSize:][:n*cellSize]...)
	}
	return all
}

// playMatrix moves columns of matrices, each under one key.
func playMatrix(ctx context.Context, c *cast) error {
	p, talk, err := c.join(ctx, allRights, both(roce.TypeRC))
	if err != nil {
		return err
	}
	defer p.disconnect()
	g, err := newGrid(c, p, talk)
	if err != nil {
		return err
	}
	for _, show := range []func(context.Context) error{g.sendColumn, g.writeColumns, g.readColumn} {
		if err := show(ctx); err != nil {
			return err
		}
	}
	// From the layouts down to what they were in.
	for _, list := range [][2]*engine.MR{g.indirect, g.matrix, g.row} {
		for host, mr := range list {
			if err := mr.Deregister(); err != nil {
				return fmt.Errorf("host %d: %w", host, err)
			}
		}
	}
	return nil
}

// lay gives the indirect key of host 0 a layout on the send queue: what is posted next
// can use it.
func (g *grid) lay(ctx context.Context, l *mem.Layout) error {
	wr := g.indirect[0].UMR(l, mem.LocalWrite)
	if err := g.end[0].QP.PostSend(&wr); err != nil {
		return err
	}
	return g.expect(ctx, g.tally, roce.OpUMR.String(), [2]*roce.Completion{
		{Opcode: roce.WCDriver1, QPN: g.end[0].QP.QPN()}, nil,
	})
}

// sendColumn sends a column of host 0 into the row of host 1.
func (g *grid) sendColumn(ctx context.Context) error {
	const at = 5
	l, err := g.columns(0, at, 1)
	if err != nil {
		return err
	}
	if err := g.lay(ctx, l); err != nil {
		return err
	}
	err = g.end[1].QP.PostRecv(&roce.RecvWR{SGList: []roce.SGE{g.row[1].SGE(0, columnSize)}})
	if err != nil {
		return err
	}
	const what = "SEND of a column"
	g.carried(0, roce.OpSend, columnSize)
	if err := g.fence(); err != nil {
		return err
	}
	err = g.end[0].QP.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{g.indirect[0].SGE(0, columnSize)},
	})
	if err != nil {
		return err
	}
	err = g.expect(ctx, g.tally, what, [2]*roce.Completion{
		{Opcode: roce.WCSend, QPN: g.end[0].QP.QPN()},
		{Opcode: roce.WCRecv, QPN: g.end[1].QP.QPN(), ByteLen: columnSize},
	})
	if err != nil {
		return err
	}
	g.check(bytes.Equal(g.row[1].Bytes(), g.cells(0, at, 1)), "%s: the row is not the column", what)
	return g.fence()
}

// writeColumns writes columns of host 0 into those of host 1, which exposes these and
// not its matrix.
func (g *grid) writeColumns(ctx context.Context) error {
	const from, to, what = 1, 7, "WRITE of columns into columns"
	here, err := g.columns(0, from, strip)
	if err != nil {
		return err
	}
	there, err := g.columns(1, to, strip)
	if err != nil {
		return err
	}
	if err := g.lay(ctx, here); err != nil {
		return err
	}
	err = g.indirect[1].ReregLayout(mem.ChangeTranslation|mem.ChangeAccess, nil,
		mem.LocalWrite|mem.RemoteWrite|mem.RemoteRead, there)
	if err != nil {
		return err
	}
	want := bytes.Clone(g.matrix[1].Bytes())
	for row := range matrixRows {
		copy(want[row*rowSize+to*cellSize:][:strip*cellSize],
			g.matrix[0].Bytes()[row*rowSize+from*cellSize:])
	}
	g.carried(0, roce.OpWrite, strip*columnSize)
	err = g.request(ctx, what, &roce.Completion{Opcode: roce.WCWrite}, &roce.SendWR{
		Opcode: roce.OpWrite, SGList: []roce.SGE{g.indirect[0].SGE(0, strip*columnSize)},
		RemoteAddr: g.indirect[1].Addr(), RKey: g.indirect[1].RKey(),
	})
	g.check(bytes.Equal(g.matrix[1].Bytes(), want), "%s: the matrix is not what it should be", what)
	return err
}

// readColumn reads columns of host 1 into others of host 0.
func (g *grid) readColumn(ctx context.Context) error {
	const to, what = 9, "READ of columns"
	here, err := g.columns(0, to, strip)
	if err != nil {
		return err
	}
	if err := g.lay(ctx, here); err != nil {
		return err
	}
	g.carried(0, roce.OpRead, strip*columnSize)
	err = g.request(ctx, what,
		&roce.Completion{Opcode: roce.WCRead, ByteLen: strip * columnSize},
		&roce.SendWR{
			Opcode: roce.OpRead, SGList: []roce.SGE{g.indirect[0].SGE(0, strip*columnSize)},
			RemoteAddr: g.indirect[1].Addr(), RKey: g.indirect[1].RKey(),
		})
	g.check(bytes.Equal(g.cells(0, to, strip), g.cells(1, 7, strip)),
		"%s: they are not those of the other host", what)
	return err
}

// request posts a request and takes its completion; host 1 has none.
func (g *grid) request(
	ctx context.Context, what string, want *roce.Completion, wr *roce.SendWR,
) error {
	if err := g.fence(); err != nil {
		return err
	}
	if err := g.end[0].QP.PostSend(wr); err != nil {
		return err
	}
	want.QPN = g.end[0].QP.QPN()
	err := g.expect(ctx, g.tally, what, [2]*roce.Completion{want, nil})
	if err != nil {
		return err
	}
	return g.fence()
}
