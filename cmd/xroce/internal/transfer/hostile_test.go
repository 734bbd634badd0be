package transfer

import (
	"context"
	"crypto/sha256"
	"net"
	"strings"
	"testing"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// writeImm is the WRITE of the first n bytes of the sender's memory to an offset in that
// of the receiver, with a number.
func (s *sender) writeImm(number uint32, n int, offset uint64) error {
	return s.QP.PostSend(&roce.SendWR{
		Opcode: roce.OpWriteImm, Imm: number, SGList: []roce.SGE{s.mr.SGE(0, n)},
		RemoteAddr: s.remote.Addr + offset, RKey: s.remote.RKey,
	})
}

// admitted makes a sender that was admitted, with its receiver running, whose error
// comes when it ends. The conversation is the caller's.
func (r *rig) admitted(
	t *testing.T, ctx context.Context, patience patience,
) (s *sender, receiver <-chan error, leave func()) {
	t.Helper()
	from, to := net.Pipe()
	ended := make(chan error, 1)
	go func() {
		_, err := Receive(ctx, r.dev[1], to, ReceiveConfig{
			Store: r.store, GIDIndex: peer.AutoGID, patience: patience,
		})
		to.Close()
		ended <- err
	}()
	file, info, err := openSource(r.file)
	if err != nil {
		t.Fatal(err)
	}
	end, err := peer.New(r.dev[0], peer.Config{
		SendWR: maxSlots, RecvWR: maxSlots, Access: mem.LocalWrite,
	})
	if err != nil {
		t.Fatal(err)
	}
	s = &sender{
		End: end, SendConfig: SendConfig{
			File: r.file, Path: "x", GIDIndex: peer.AutoGID, patience: ordinary,
		},
		control: newControl(from), file: file, info: info, hash: sha256.New(),
	}
	if err := s.connect(ctx, from); err != nil {
		t.Fatal(err)
	}
	return s, ended, func() {
		s.close()
		file.Close()
		from.Close()
	}
}

// TestHostileSenders were admitted and have a queue pair and a key. What they do with it
// ends their transfer, and leaves no file and nothing at the device.
func TestHostileSenders(t *testing.T) {
	// Each waits briefly for what does not come alone: what does come may be late.
	noChunk, noDigest := ordinary, ordinary
	noChunk.chunk, noDigest.digest = 50*time.Millisecond, 50*time.Millisecond
	read := &roce.SendWR{Opcode: roce.OpRead}
	for name, c := range map[string]struct {
		patience patience
		play     func(ctx context.Context, s *sender) error
		want     string
	}{
		"wrong number": {ordinary, func(_ context.Context, s *sender) error {
			return s.writeImm(1, ChunkSize, 0)
		}, "immediate 1 came for chunk 0"},
		"short chunk": {ordinary, func(_ context.Context, s *sender) error {
			return s.writeImm(0, ChunkSize-1, 0)
		}, "1048575 bytes"},
		"long chunk": {ordinary, func(_ context.Context, s *sender) error {
			return s.writeImm(0, ChunkSize+1, 0)
		}, "1048577 bytes"},
		"SEND": {ordinary, func(_ context.Context, s *sender) error {
			return s.QP.PostSend(&roce.SendWR{Opcode: roce.OpSendImm})
		}, "came for chunk 0"},
		"beyond the slots": {ordinary, func(_ context.Context, s *sender) error {
			return s.writeImm(0, 100, Slots*ChunkSize-99)
		}, "local access error"},
		"wrong key": {ordinary, func(_ context.Context, s *sender) error {
			s.remote.RKey ^= 0xff00
			return s.writeImm(0, 100, 0)
		}, "local access error"},
		"READ": {noChunk, func(_ context.Context, s *sender) error {
			read.SGList = []roce.SGE{s.mr.SGE(0, 8)}
			read.RemoteAddr, read.RKey = s.remote.Addr, s.remote.RKey
			return s.QP.PostSend(read)
		}, "nothing came from the peer"},
		"no data": {noChunk, func(_ context.Context, s *sender) error {
			_ = s.send(message{SHA256: strings.Repeat("0", 64)}) // or it has hung up already
			return nil
		}, "nothing came from the peer"},
		"half of it": {noChunk, func(_ context.Context, s *sender) error {
			return s.writeImm(0, ChunkSize, 0)
		}, "nothing came from the peer"},
		"other data": {ordinary, func(ctx context.Context, s *sender) error {
			if _, err := s.stream(ctx); err != nil {
				return err
			}
			return s.send(message{SHA256: strings.Repeat("0", 64)})
		}, "SHA-256 differs"},
		"no digest": {noDigest, func(ctx context.Context, s *sender) error {
			_, err := s.stream(ctx)
			return err
		}, "nothing came from the peer"},
		"escape codes for one": {ordinary, func(ctx context.Context, s *sender) error {
			if _, err := s.stream(ctx); err != nil {
				return err
			}
			return s.send(message{SHA256: "\x1b[2J" + strings.Repeat("x", controlLimit/2)})
		}, `"\x1b[2Jxxx`},
		"gone": {ordinary, func(_ context.Context, s *sender) error {
			return s.conn.Close()
		}, "closed the connection"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2*ChunkSize, sim.Faults{})
			s, ended, leave := r.admitted(t, t.Context(), c.patience)
			defer leave()
			said := hearAll(s.conn)
			if err := c.play(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v: no %q", err, c.want)
			} else if len(err.Error()) > maxError {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			<-said
			if got := count(r.dev[1]); got != (engine.ResourceCount{}) {
				t.Errorf("left at the device: %+v", got)
			}
			r.empty(t)
		})
	}
}
