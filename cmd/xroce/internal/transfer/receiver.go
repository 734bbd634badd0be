package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"net"
	"os"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// ReceiveConfig says where files go.
type ReceiveConfig struct {
	Root     *os.Root // nothing outside of it is touched
	GIDIndex int      // peer.AutoGID to have one chosen
	Progress func(done, total int64)

	Extensions roce.Extensions // that may be used when the sender can do them
}

// creditWR is the depth of the send queue for credits. A credit may still wait
// for its acknowledgement when the chunk that it allowed comes.
const creditWR = 4 * Slots

// A receiver is the receiving end of one transfer.
type receiver struct {
	*peer.End
	ReceiveConfig
	*control
	offer message
	mr    *engine.MR // the slots
	part  *partial
	hash  hash.Hash

	got     int64 // chunks that are in the file
	due     int64 // credits not posted yet
	flying  int   // credits posted and not complete
	credits uint32
}

// Receive receives one file over a TCP connection that was accepted.
func Receive(
	ctx context.Context, dev *engine.Device, conn net.Conn, c ReceiveConfig,
) (Result, error) {
	end, err := peer.New(dev, peer.Config{
		SendWR: creditWR, RecvWR: Slots, Access: mem.LocalWrite | mem.RemoteWrite,
	})
	if err != nil {
		return Result{}, err
	}
	defer end.Close()
	r := &receiver{
		End: end, ReceiveConfig: c, control: newControl(conn), hash: sha256.New(),
	}
	r.mr, err = dev.RegMR(end.PD, make([]byte, Slots*ChunkSize), mem.LocalWrite|mem.RemoteWrite)
	if err != nil {
		return Result{}, err
	}
	defer r.mr.Deregister()
	if err := r.connect(ctx, conn); err != nil {
		r.sendError(err)
		return Result{}, errors.Join(err, r.discard())
	}
	result, err := r.run(ctx)
	return result, errors.Join(err, r.discard())
}

// discard removes a file that did not become whole.
func (r *receiver) discard() error {
	if r.part == nil {
		return nil
	}
	return r.part.discard()
}

// connect agrees with the sender on the transfer and brings the QP to RTS.
func (r *receiver) connect(ctx context.Context, conn net.Conn) error {
	release := peer.Guard(ctx, conn)
	defer release()
	remote, err := peer.Hear(conn)
	if err != nil {
		return err
	}
	if err := r.ChooseGID(r.GIDIndex, conn, &remote.GID); err != nil {
		return err
	}
	if err := r.Tell(conn); err != nil {
		return err
	}
	if r.offer, err = r.receive(); err != nil {
		return err
	}
	o := &r.offer
	if o.Protocol != protocol || o.Size < 0 || o.MTU.Bytes() == 0 {
		return fmt.Errorf("offer of protocol %d, not %d, %d bytes, MTU %d: is the peer of "+
			"another version?", o.Protocol, protocol, o.Size, o.MTU)
	}
	if r.part, err = create(r.Root, o.Path, o.Name); err != nil {
		return err
	}
	mtu := min(o.MTU, r.Dev.ActiveMTU())
	r.Local.Extensions, remote.Extensions = r.Extensions, o.Extensions
	if err := r.Connect(ctx, remote, engine.ConnectOptions{PathMTU: mtu}); err != nil {
		return err
	}
	for range Slots {
		if err := r.QP.PostRecv(&roce.RecvWR{}); err != nil {
			return err
		}
	}
	return r.send(message{
		Path: r.part.final, MTU: mtu, Addr: r.mr.Addr(), RKey: r.mr.RKey(),
		ChunkSize: ChunkSize, Slots: Slots, Extensions: r.extensions(),
	})
}

// extensions are those that both ends use.
func (r *receiver) extensions() roce.Extensions { return r.Extensions & r.offer.Extensions }

// run takes the data and gives the verdict.
func (r *receiver) run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	finish := r.hear(cancel)
	defer finish.stop()

	start := time.Now()
	result, err := r.complete(ctx, finish.message)
	if err != nil {
		err = finish.reason(ctx, err)
		r.sendError(err)
		return Result{}, fmt.Errorf("%s, after %d of %d bytes: %w", r.part.final, r.done(),
			r.offer.Size, err)
	}
	result.Duration = time.Since(start)
	return result, r.send(message{SHA256: result.SHA256})
}

// complete takes the chunks, compares the digests and makes the file appear.
func (r *receiver) complete(ctx context.Context, finish <-chan message) (Result, error) {
	if err := r.stream(ctx); err != nil {
		return Result{}, err
	}
	var m message
	select {
	case m = <-finish:
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	digest := hex.EncodeToString(r.hash.Sum(nil))
	if m.SHA256 != digest {
		return Result{}, fmt.Errorf("SHA-256 differs: %s here, %s there", digest, m.SHA256)
	}
	if err := r.part.commit(fs.FileMode(r.offer.Mode)); err != nil {
		return Result{}, err
	}
	return Result{
		Path: r.part.final, Size: r.offer.Size, SHA256: digest, Extensions: r.extensions(),
	}, nil
}

// done is the number of bytes that are in the file.
func (r *receiver) done() int64 { return min(r.got*ChunkSize, r.offer.Size) }

// stream takes all chunks.
func (r *receiver) stream(ctx context.Context) error {
	chunks := chunksOf(r.offer.Size, ChunkSize)
	var wcs [Slots + creditWR]roce.Completion
	for r.got < chunks || r.due > 0 || r.flying > 0 {
		n, err := r.Wait(ctx, wcs[:])
		if err != nil {
			return err
		}
		for i := range wcs[:n] {
			if wcs[i].Opcode == roce.WCSend {
				r.flying--
				continue
			}
			if err := r.store(&wcs[i]); err != nil {
				return err
			}
		}
		if err := r.giveCredits(); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(r.done(), r.offer.Size)
		}
	}
	return nil
}

// store writes a chunk that came to the file.
func (r *receiver) store(wc *roce.Completion) error {
	want := chunkLen(r.offer.Size, ChunkSize, r.got)
	if wc.Opcode != roce.WCRecvRDMAWithImm || wc.Imm != uint32(r.got) ||
		want <= 0 || int(wc.ByteLen) != want {
		return fmt.Errorf("%w: %s of %d bytes with immediate %d came for chunk %d of %d bytes",
			ErrPeer, wc.Opcode, wc.ByteLen, wc.Imm, r.got, want)
	}
	slot := int(r.got % Slots)
	buf := r.mr.Bytes()[slot*ChunkSize:][:want]
	if err := r.part.write(buf); err != nil {
		return err
	}
	r.hash.Write(buf)
	r.got++
	r.due++
	return r.QP.PostRecv(&roce.RecvWR{})
}

// giveCredits posts the credits that are due and fit.
func (r *receiver) giveCredits() error {
	for ; r.due > 0 && r.flying < creditWR; r.due-- {
		err := r.QP.PostSend(&roce.SendWR{Opcode: roce.OpSendImm, Imm: r.credits})
		if err != nil {
			return err
		}
		r.credits++
		r.flying++
	}
	return nil
}
