package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/progress"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/engine"
)

// Bounds of a server. Each transfer has some megabytes of registered memory, each
// connection that waits a few kilobytes.
const (
	maxTransfers = 8  // files that are received at once
	maxOfSource  = 4  // of them from one host, without a token
	maxWaiting   = 64 // connections that have not said what they want
)

// slowTransfer is a rate, in bytes a second, below which the transfer of somebody without
// a token gives way to another one.
const slowTransfer = 1 << 20

// A server receives files until its context ends.
type server struct {
	*app
	dev    *engine.Device
	config transfer.ReceiveConfig
	lobby  transfer.Lobby
	once   bool

	mu    sync.Mutex // of what follows, and of stdout
	done  bool       // the one file of once was received, or was not
	files int
	bytes int64
	err   error // of the last transfer that failed
}

func newServer(a *app, dev *engine.Device, c transfer.ReceiveConfig, once bool) *server {
	s := &server{app: a, dev: dev, config: c, once: once, lobby: transfer.Lobby{
		Places: maxWaiting, Transfers: maxTransfers, PerSource: maxOfSource,
	}}
	switch {
	case once:
		s.lobby.Transfers, s.lobby.PerSource = 1, 1
	case c.Token != nil:
		s.lobby.PerSource = maxTransfers
	default:
		s.lobby.Slow = slowTransfer
	}
	return s
}

// run accepts until the context or the device ends, or with once after one transfer,
// and waits for the transfers that run.
func (s *server) run(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.dev.Done():
		}
		listener.Close()
	})
	ended := s.accept(ctx, listener, &running)
	cancel()
	running.Wait()
	if s.once && s.done {
		return s.err
	}
	if !s.json {
		s.printf("%d files, %s received\n", s.files, progress.Bytes(s.bytes))
	}
	return ended
}

// acceptPause is how long to wait when no connection can be accepted for now.
const acceptPause = 10 * time.Millisecond

// accept accepts connections and says why it ended.
func (s *server) accept(
	ctx context.Context, listener net.Listener, running *sync.WaitGroup,
) error {
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return ctx.Err()
		case s.dev.Failed():
			return s.dev.Err()
		case errors.Is(err, net.ErrClosed):
			return nil // by finish
		case passing(err):
			// Others may give back what there is none of; a stranger must not end the server.
			time.Sleep(acceptPause)
			continue
		default:
			return err
		}
		guest := s.lobby.Enter(conn)
		running.Go(func() {
			if s.handle(ctx, conn, guest) && s.once {
				listener.Close()
			}
		})
	}
}

// passing reports whether no connection could be accepted because of that connection, or
// because something is used up (accept(2)).
func passing(err error) bool {
	for _, cause := range []error{
		unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM, unix.ECONNABORTED,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// handle takes one file, if the guest is admitted, and reports whether it was. With once,
// its place is never given back: nobody is admitted while the server ends.
func (s *server) handle(ctx context.Context, conn net.Conn, guest *transfer.Guest) bool {
	admitted := s.receive(ctx, conn, guest)
	conn.Close()
	if !admitted || !s.once {
		guest.Leave()
	}
	return admitted
}

// receive takes one file and reports whether it was admitted.
func (s *server) receive(ctx context.Context, conn net.Conn, guest *transfer.Guest) bool {
	from := conn.RemoteAddr().String()
	config := s.config
	config.Progress, config.Whole = guest.Progress, guest.Whole
	config.Admit = func() error {
		err := guest.Admit()
		if err == nil && s.once {
			s.met()
		}
		return err
	}
	result, err := transfer.Receive(ctx, s.dev, conn, config)
	admitted := guest.Admitted()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = s.done || admitted
	switch {
	case err == nil:
	case result.Path == "":
		s.failed(from, guest.Reason(err), admitted)
		return admitted
	default:
		s.logger.Warn("file received, and its sender may not know", "from", from, "error",
			plain.Brief(err.Error()))
	}
	s.files++
	s.bytes += result.Size
	if err := s.printTransfer("received", from, result); err != nil {
		s.err = err
	}
	return admitted
}

// failed tells of a file that was not received, also when the server was told to end.
// What strangers do is of less interest, and they could do a lot of it.
func (s *server) failed(from string, err error, admitted bool) {
	if !admitted {
		s.logger.Info("refused", "from", from, "error", plain.Brief(err.Error()))
		return
	}
	s.err = fmt.Errorf("from %s: %w", from, err)
	if !s.once {
		s.logger.Error("file not received", "from", from, "error", plain.Brief(err.Error()))
	}
}

// transferReport is a transferred file in JSON.
type transferReport struct {
	Path    string  `json:"path"`
	Peer    string  `json:"peer"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	SHA256  string  `json:"sha256"`
	// Extensions are those of the transport that the connection had.
	Extensions string `json:"extensions"`
}

// printTransfer prints one file that was transferred.
func (a *app) printTransfer(verb, peer string, r transfer.Result) error {
	seconds := r.Duration.Seconds()
	if a.json {
		return a.printJSON(transferReport{
			Path: r.Path, Peer: peer, Bytes: r.Size, Seconds: seconds, SHA256: r.SHA256,
			Extensions: r.Extensions.String(),
		})
	}
	preposition := map[string]string{"received": "from", "copied": "to"}[verb]
	a.printf("%s %s %s %s: %d bytes in %.2f s, %.2f Gb/s, SHA-256 %s\n", verb,
		plain.Brief(r.Path), preposition, peer, r.Size, seconds, float64(r.Size)*8/1e9/seconds,
		r.SHA256)
	return nil
}
