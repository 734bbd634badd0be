package transfer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// ReceiveConfig says where files go and from whom.
type ReceiveConfig struct {
	Store    *Store
	Token    Token // that senders must know, nil for none
	GIDIndex int   // peer.AutoGID to have one chosen
	Progress func(done, total int64)

	// Admit, if not nil, is asked when the sender has shown that it knows the token and
	// has said what it wants, before anything is made for it. Its error refuses.
	Admit func() error

	// Whole, if not nil, is called when all data has come and its digest is right: from
	// then on the sender waits for us. Its error says that the sender was hung up on.
	Whole func() error

	Extensions roce.Extensions // that may be used when the sender can do them

	patience patience
}

// creditWR is the depth of the send queue for credits. A credit may still wait
// for its acknowledgement when the chunk that it allowed comes.
const creditWR = 4 * Slots

// A receiver is the receiving end of one transfer.
type receiver struct {
	*peer.End
	ReceiveConfig
	*control
	offer  message
	remote engine.Endpoint
	mr     *engine.MR // the slots
	part   *partial

	got     int64 // chunks that are in the file
	due     int64 // credits not posted yet
	flying  int   // credits posted and not complete
	credits uint32
}

// Receive receives one file over a TCP connection that was accepted. When it returns,
// nothing is left of it at the device; the connection is the caller's to close. An error
// beside a result that has a path says that the file is there, and that its sender may
// not know.
func Receive(
	ctx context.Context, dev *engine.Device, conn net.Conn, c ReceiveConfig,
) (result Result, err error) {
	c.patience = c.patience.orOrdinary()
	r := &receiver{ReceiveConfig: c, control: newControl(conn)}
	defer func() {
		if r.part != nil {
			err = errors.Join(err, r.part.close())
		}
	}()
	if err := r.prepare(ctx, dev, conn); err != nil {
		err = endOf(ctx, err)
		r.sendError(err)
		return Result{}, err
	}
	defer r.close()
	return r.run(ctx)
}

// prepare agrees with the sender on the transfer. Without an error, the QP is in RTS
// and close must be called.
func (r *receiver) prepare(ctx context.Context, dev *engine.Device, conn net.Conn) (err error) {
	ctx, cancel := context.WithTimeout(ctx, r.patience.exchange)
	defer cancel()
	release := peer.Guard(ctx, conn)
	defer release()
	if err := r.meet(); err != nil {
		return err
	}
	if r.part, err = r.Store.create(&r.offer); err != nil {
		return err
	}
	const access = mem.LocalWrite | mem.RemoteWrite
	r.End, err = peer.New(dev, peer.Config{SendWR: creditWR, RecvWR: Slots, Access: access})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	if r.mr, err = dev.RegMR(r.PD, make([]byte, Slots*ChunkSize), access); err != nil {
		return err
	}
	return r.connect(ctx, conn)
}

// close gives back what is of the device.
func (r *receiver) close() {
	if r.mr != nil {
		_ = r.mr.Deregister() // no window is bound to it: it cannot fail
	}
	r.End.Close()
}

// meet hears who comes and what for. Nothing is made for a peer before it is admitted.
func (r *receiver) meet() (err error) {
	if err := r.challenge(r.Token); err != nil {
		return err
	}
	if r.offer, err = r.receive(); err != nil {
		return err
	}
	if r.offer.MTU.Bytes() == 0 {
		return fmt.Errorf("offer of path MTU %d, which is none", r.offer.MTU)
	}
	if r.remote, err = parseEndpoint(r.offer.Endpoint); err != nil {
		return err
	}
	if r.Admit != nil {
		return r.Admit()
	}
	return nil
}

// connect brings the QP to RTS and tells the sender where to write to.
func (r *receiver) connect(ctx context.Context, conn net.Conn) error {
	if err := r.ChooseGID(r.GIDIndex, conn, &r.remote.GID); err != nil {
		return err
	}
	mtu := min(r.offer.MTU, r.Dev.ActiveMTU())
	r.Local.Extensions, r.remote.Extensions = r.Extensions, r.offer.Extensions
	if err := r.Connect(ctx, r.remote, engine.ConnectOptions{PathMTU: mtu}); err != nil {
		return err
	}
	for range Slots {
		if err := r.QP.PostRecv(&roce.RecvWR{}); err != nil {
			return err
		}
	}
	return r.send(message{
		Endpoint: formatEndpoint(r.Local), Path: r.part.path, MTU: mtu, Addr: r.mr.Addr(),
		RKey: r.mr.RKey(), ChunkSize: ChunkSize, Slots: Slots, Extensions: r.extensions(),
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
	result, err := r.complete(ctx, finish)
	if err != nil {
		err = finish.reason(ctx, err)
		r.sendError(err)
		return Result{}, fmt.Errorf("%s, after %d of %d bytes: %w", r.part.path, r.done(),
			r.offer.Size, err)
	}
	result.Duration = time.Since(start)
	if err := r.send(message{SHA256: result.SHA256}); err != nil {
		return result, fmt.Errorf("%s is received, and its sender was not told: %w",
			r.part.path, err)
	}
	return result, nil
}

// complete takes the chunks, compares the digests and makes the file appear.
func (r *receiver) complete(ctx context.Context, finish *hearing) (Result, error) {
	if err := r.stream(ctx); err != nil {
		return Result{}, err
	}
	m, err := finish.wait(ctx, r.patience.digest)
	if err != nil {
		return Result{}, err
	}
	digest := r.part.sum()
	if m.SHA256 != digest {
		return Result{}, fmt.Errorf("SHA-256 differs: %s here, %.100q there", digest, m.SHA256)
	}
	if r.Whole != nil {
		if err := r.Whole(); err != nil {
			return Result{}, err
		}
	}
	if err := r.part.commit(); err != nil {
		return Result{}, err
	}
	return Result{
		Path: r.part.path, Size: r.offer.Size, SHA256: digest, Extensions: r.extensions(),
	}, nil
}

// done is the number of bytes that are in the file.
func (r *receiver) done() int64 { return min(r.got*ChunkSize, r.offer.Size) }

// stream takes all chunks.
func (r *receiver) stream(ctx context.Context) error {
	chunks := chunksOf(r.offer.Size, ChunkSize)
	var wcs [Slots + creditWR]roce.Completion
	for r.got < chunks || r.due > 0 || r.flying > 0 {
		n, err := await(ctx, r.End, wcs[:], r.patience.chunk)
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
	if err := r.part.add(buf); err != nil {
		return err
	}
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
