package load

import (
	"encoding/binary"
	"time"

	"xroce/bench/worker"
	"xroce/roce/gen"
	"xroce/roce/wire"
	"xroce/xsk"
)

// generate sends frames that package gen makes: each is written anew, with its number and time.
func generate(s *xsk.Socket, o worker.Options) (*worker.Window, uint64, *worker.RTT, error) {
	flow, err := gen.NewFlow(gen.Config{
		Path: pathOf(o.Header), Sizes: gen.List(uint64(o.Size)), MaxFrame: s.Info().MaxFrame,
	})
	if err != nil {
		return nil, 0, nil, err
	}
	batch := make([]xsk.TxFrame, o.Batch)
	var queued uint64
	w := worker.NewWindow(o)
	for w.Tick(w.Now(), queued) {
		now := time.Now().UnixNano()
		n := s.Reserve(batch)
		for i := range batch[:n] {
			batch[i].Len = flow.Next(batch[i].Data, now)
		}
		s.Transmit(batch[:n])
		queued += uint64(n)
		if err := s.Flush(); err != nil {
			return nil, 0, nil, err
		}
	}
	unsent, err := drainTx(s)
	return w, queued - unsent, nil, err
}

// pathOf reads the addresses of a header that Header made.
func pathOf(h []byte) wire.Path {
	return wire.Path{
		DstMAC: [6]byte(h), SrcMAC: [6]byte(h[6:]), HopLimit: 64,
		Src: wire.GIDFromIPv4([4]byte(h[26:])), Dst: wire.GIDFromIPv4([4]byte(h[30:])),
		SrcPort: binary.BigEndian.Uint16(h[34:]),
	}
}
