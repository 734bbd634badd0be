package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// ErrChanged says that the file was written to while it was being sent.
var ErrChanged = errors.New("the file changed while it was being copied")

// SendConfig says what to send and where to.
type SendConfig struct {
	File     string // file to read
	Path     string // path at the receiver, below its directory
	Token    Token  // that the receiver must know, too, nil for none
	GIDIndex int    // peer.AutoGID to have one chosen
	Progress func(done, total int64)

	Extensions roce.Extensions // that may be used when the receiver can do them

	patience patience
}

// Result is a file that was transferred.
type Result struct {
	Path     string        // at the receiver, below its directory; in the words of the peer
	Size     int64         // bytes
	Duration time.Duration // of the data, without the connection set-up
	SHA256   string        // hexadecimal, the same at both ends

	Extensions roce.Extensions // that both ends used
}

// A sender is the sending end of one transfer.
type sender struct {
	*peer.End
	SendConfig
	*control
	file *os.File
	info os.FileInfo

	mr        *engine.MR // the chunks
	remote    message    // what the receiver accepted
	hash      hash.Hash
	read      int64 // chunks read and posted
	written   int64 // chunks whose WRITE is complete
	credited  int64 // chunks that are in the receiver's file
	chunks    int64
	chunkSize int
}

// Send sends a file over a TCP connection to a receiver and the RDMA connection
// that it sets up. When it returns, nothing is left of it at the device; the TCP
// connection is the caller's to close.
func Send(
	ctx context.Context, dev *engine.Device, conn net.Conn, c SendConfig,
) (Result, error) {
	c.patience = c.patience.orOrdinary()
	if err := c.checkNames(); err != nil {
		return Result{}, err
	}
	file, info, err := openSource(c.File)
	if err != nil {
		return Result{}, err
	}
	defer file.Close()
	end, err := peer.New(dev, peer.Config{
		SendWR: maxSlots, RecvWR: maxSlots, Access: mem.LocalWrite,
	})
	if err != nil {
		return Result{}, err
	}
	s := &sender{
		End: end, SendConfig: c, control: newControl(conn), file: file, info: info,
		hash: sha256.New(),
	}
	defer s.close()
	if err := s.connect(ctx, conn); err != nil {
		err = endOf(ctx, err)
		s.sendError(err)
		return Result{}, err
	}
	return s.run(ctx)
}

// close gives back what is of the device.
func (s *sender) close() {
	if s.mr != nil {
		_ = s.mr.Deregister() // no window is bound to it: it cannot fail
	}
	s.End.Close()
}

// connect agrees with the receiver on the transfer and brings the QP to RTS.
func (s *sender) connect(ctx context.Context, conn net.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience.exchange)
	defer cancel()
	release := peer.Guard(ctx, conn)
	defer release()
	if err := s.greet(s.Token); err != nil {
		return err
	}
	if err := s.ChooseGID(s.GIDIndex, conn, nil); err != nil {
		return err
	}
	err := s.send(message{
		Endpoint: formatEndpoint(s.Local), MTU: s.Dev.ActiveMTU(), Path: s.Path,
		Name: filepath.Base(s.File), Size: s.info.Size(), Mode: uint32(s.info.Mode().Perm()),
		Extensions: s.Extensions,
	})
	if err != nil {
		return err
	}
	if s.remote, err = s.receive(); err != nil {
		return err
	}
	remote, err := s.accepted()
	if err != nil {
		return err
	}
	if err := s.Connect(ctx, remote, engine.ConnectOptions{PathMTU: s.remote.MTU}); err != nil {
		return err
	}
	s.mr, err = s.Dev.RegMR(s.PD, make([]byte, s.remote.Slots*s.remote.ChunkSize), 0)
	return err
}

// accepted judges what the receiver accepted and returns its endpoint.
func (s *sender) accepted() (engine.Endpoint, error) {
	r := &s.remote
	if r.ChunkSize < 1 || r.Slots < 1 || r.Slots > maxSlots || r.ChunkSize > maxWindow/r.Slots {
		return engine.Endpoint{}, fmt.Errorf("%w: it wants %d slots of %d bytes, and at most %d "+
			"slots and %d bytes together are lent to it", ErrPeer, r.Slots, r.ChunkSize, maxSlots,
			maxWindow)
	}
	if r.Extensions&^s.Extensions != 0 {
		return engine.Endpoint{}, fmt.Errorf("%w: it wants %s and was offered %s", ErrPeer,
			r.Extensions, s.Extensions)
	}
	remote, err := parseEndpoint(r.Endpoint)
	s.Local.Extensions, remote.Extensions = s.Extensions, r.Extensions
	s.chunkSize, s.chunks = r.ChunkSize, chunksOf(s.info.Size(), r.ChunkSize)
	return remote, err
}

// run sends the data and learns the verdict.
func (s *sender) run(ctx context.Context) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	verdict := s.hear(cancel)
	defer verdict.stop()

	start := time.Now()
	digest, err := s.stream(ctx)
	if err != nil {
		err = verdict.reason(ctx, err)
		s.sendError(err)
		return Result{}, fmt.Errorf("after %d of %d bytes: %w",
			s.done(), s.info.Size(), err)
	}
	if err := s.send(message{SHA256: digest}); err != nil {
		return Result{}, verdict.reason(ctx, err)
	}
	m, err := verdict.wait(ctx, s.patience.verdict)
	if err != nil {
		return Result{}, err
	}
	if m.SHA256 != digest {
		return Result{}, fmt.Errorf("SHA-256 differs: %s here, %.100q there", digest, m.SHA256)
	}
	return Result{
		Path: s.remote.Path, Size: s.info.Size(), Duration: time.Since(start), SHA256: digest,
		Extensions: s.remote.Extensions,
	}, nil
}

// done is the number of bytes that are in the receiver's file.
func (s *sender) done() int64 {
	return min(s.credited*int64(s.chunkSize), s.info.Size())
}

// stream moves all chunks and returns the digest of what it read.
func (s *sender) stream(ctx context.Context) (string, error) {
	slots := int64(s.remote.Slots)
	for range slots {
		if err := s.QP.PostRecv(&roce.RecvWR{}); err != nil {
			return "", err
		}
	}
	wcs := make([]roce.Completion, 2*maxSlots)
	for s.credited < s.chunks || s.written < s.chunks {
		for s.read < s.chunks && s.read < min(s.written, s.credited)+slots {
			if err := s.sendChunk(); err != nil {
				return "", err
			}
		}
		n, err := await(ctx, s.End, wcs, s.patience.chunk)
		if err != nil {
			return "", err
		}
		for i := range wcs[:n] {
			if err := s.completed(&wcs[i]); err != nil {
				return "", err
			}
		}
		if s.Progress != nil {
			s.Progress(s.done(), s.info.Size())
		}
	}
	return hex.EncodeToString(s.hash.Sum(nil)), s.unchanged()
}

// sendChunk reads the next chunk and posts it.
func (s *sender) sendChunk() error {
	slot := int(s.read % int64(s.remote.Slots))
	n := chunkLen(s.info.Size(), s.chunkSize, s.read)
	buf := s.mr.Bytes()[slot*s.chunkSize:][:n]
	if _, err := io.ReadFull(s.file, buf); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%w: it became shorter", ErrChanged)
		}
		return err
	}
	s.hash.Write(buf)
	err := s.QP.PostSend(&roce.SendWR{
		WRID: uint64(s.read), Opcode: roce.OpWriteImm, Imm: uint32(s.read),
		SGList:     []roce.SGE{s.mr.SGE(slot*s.chunkSize, n)},
		RemoteAddr: s.remote.Addr + uint64(slot*s.chunkSize), RKey: s.remote.RKey,
	})
	s.read++
	return err
}

// completed takes a WRITE that is through or a credit.
func (s *sender) completed(wc *roce.Completion) error {
	if wc.Opcode == roce.WCWrite {
		s.written++
		return nil
	}
	if wc.Opcode != roce.WCRecv || wc.Imm != uint32(s.credited) || s.credited >= s.read {
		return fmt.Errorf("%w: credit %d (%s) came for chunk %d", ErrPeer, wc.Imm, wc.Opcode,
			s.credited)
	}
	s.credited++
	return s.QP.PostRecv(&roce.RecvWR{})
}

// unchanged says how the file is not what it was at the beginning. One that the kernel
// makes up, as those of /proc, has a size of 0 and more to read: it would arrive empty.
func (s *sender) unchanged() error {
	now, err := s.file.Stat()
	if err != nil {
		return err
	}
	if now.Size() != s.info.Size() || !now.ModTime().Equal(s.info.ModTime()) {
		return fmt.Errorf("%w: %d bytes of %s, then %d of %s", ErrChanged,
			s.info.Size(), s.info.ModTime().Format(time.StampNano), now.Size(),
			now.ModTime().Format(time.StampNano))
	}
	n, err := s.file.Read(make([]byte, 1))
	switch {
	case n > 0:
		return fmt.Errorf("%w, or the kernel makes it up: there is more than its size of %d "+
			"bytes; 'cat' makes a file of it that can be sent", ErrChanged, s.info.Size())
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}
