package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/plain"
	"xroce/cmd/xroce/internal/progress"
	"xroce/cmd/xroce/internal/transfer"
	"xroce/cmd/xroce/internal/userfile"
	"xroce/engine/crowd"
	"xroce/engine/msg"
	"xroce/roce"
)

// Bounds of a server. Each transfer has some megabytes of memory, each connection that waits
// some tens of kilobytes.
const (
	maxTransfers = 8  // connections that send files at once
	maxOfSource  = 4  // of them from one host, without a token
	maxWaiting   = 64 // connections that have not said what they want
	maxParting   = 32 // connections of one host, or of its /64, that are over and may hear why
)

// slowTransfer is a rate, in bytes a second, below which the transfer of somebody without
// a token gives way to another one.
const slowTransfer = 1 << 20

// How many lines are logged of what goes wrong with files and connections, in what time, when there
// is no token: who sends files can have as many refused as he likes, or hang up.
const (
	maxComplaints = 100
	complaintSpan = time.Minute
)

// A server receives files until its context ends.
type server struct {
	*app
	station *transfer.Station
	config  transfer.ReceiveConfig
	lobby   transfer.Lobby
	once    bool
	places  chan struct{} // of connections, also those that are ending
	parting transfer.Partings
	results *results

	mu    sync.Mutex // of what follows
	done  bool       // the one connection of once has sent something, or was to
	files int
	bytes int64
	err   error // of the last transfer that failed

	complaints plain.Ration
}

func newServer(a *app, s *transfer.Station, c transfer.ReceiveConfig, once bool) *server {
	v := &server{
		app: a, station: s, config: c, once: once, places: make(chan struct{}, 2*maxWaiting),
		parting: transfer.Partings{PerSource: maxParting}, results: newResults(a),
		lobby: transfer.Lobby{
			Places: maxWaiting, Transfers: maxTransfers, PerSource: maxOfSource,
		},
		complaints: plain.Ration{Lines: maxComplaints, Span: complaintSpan},
	}
	switch {
	case once:
		v.lobby.Transfers, v.lobby.PerSource = 1, 1
	case c.Token != nil:
		v.lobby.PerSource = maxTransfers
	default:
		v.lobby.Slow = slowTransfer
	}
	return v
}

// run accepts until the context or the device ends, or with once after one connection,
// and waits for the transfers that run.
func (s *server) run(ctx context.Context, listeners []*msg.RequestListener) error {
	bound, unbind := s.station.Bind(ctx)
	defer unbind()
	serving, end := context.WithCancel(bound)
	defer end()
	go s.results.print()
	var running sync.WaitGroup
	for _, l := range listeners {
		running.Go(func() { s.accept(serving, end, l, &running) })
	}
	running.Wait()
	for _, l := range listeners {
		l.Close()
	}
	s.tellLeft(s.complaints.Left())
	one := s.once && s.done
	untold := s.results.end(bound, func() {
		if !one && !s.json {
			s.printf("%d files, %s received\n", s.files, progress.Bytes(s.bytes))
		}
	})
	if one {
		return cmp.Or(s.err, untold)
	}
	return cmp.Or(s.station.Err(), untold, context.Cause(bound))
}

// accept takes connections of a listener until the context ends.
func (s *server) accept(
	ctx context.Context, end context.CancelFunc, listener *msg.RequestListener,
	running *sync.WaitGroup,
) {
	for {
		select {
		case s.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		request, err := listener.Next(ctx)
		if err != nil {
			end() // if it has not ended, the device has
			return
		}
		running.Go(func() {
			defer func() { <-s.places }()
			if s.handle(ctx, request) && s.once {
				end()
			}
		})
	}
}

// connectTime is how long a client may take to connect.
const connectTime = 10 * time.Second

// handle takes the files of one connection, and reports whether it was admitted. With once,
// its place is never given back: nobody is admitted while the server ends.
func (s *server) handle(serving context.Context, request *msg.Request) bool {
	ctx, giveUp := context.WithCancelCause(serving)
	defer giveUp(nil)
	from := request.RemoteAddr()
	sender := transfer.Sender{Host: crowd.Host(from.Addr()), GiveUp: giveUp}
	guest := s.lobby.Enter(sender.Host, giveUp)
	sender.Guest = guest
	connecting, cancel := context.WithTimeout(ctx, connectTime)
	conn, err := request.Accept(connecting)
	cancel()
	if err != nil {
		s.logger.Info("not connected", "from", from.String(), "error", plain.Brief(err.Error()))
		guest.Leave()
		return false
	}
	guest.Connected()
	link := &transfer.Link{Endpoint: s.station.Endpoint, Conn: conn}
	s.receive(ctx, link, guest, sender, from.String(), func() bool { return serving.Err() != nil })
	s.parting.Close(link, sender.Host)
	admitted := guest.Admitted()
	if !admitted || !s.once {
		guest.Leave()
	}
	return admitted
}

// receive takes the files of one connection, and is told whether the server ends.
func (s *server) receive(
	ctx context.Context, link *transfer.Link, guest *transfer.Guest, sender transfer.Sender,
	from string, ended func() bool,
) {
	config := s.config
	config.From, config.Progress, config.Whole = sender, guest.Progress, guest.Whole
	told := false // of what became of the file that was asked for last
	config.Admit = func() error {
		told = false
		err := guest.Admit()
		if err == nil && s.once {
			s.met()
		}
		return err
	}
	config.Ended = func(result transfer.Result, err error) {
		guest.Ended()
		told = err != nil
		s.ended(from, result, err)
	}
	config.Unread = func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.complain(slog.LevelWarn, "what there is of a file cannot be read", "from", from, "error",
			plain.Brief(err.Error()))
	}
	config.Given = func(result transfer.Result, err error) {
		told = err != nil
		s.given(from, result, err)
	}
	err := transfer.Receive(ctx, link, config)
	s.mu.Lock()
	defer s.mu.Unlock()
	admitted := guest.Admitted()
	s.done = s.done || admitted
	switch {
	case err == nil:
	case admitted && transfer.Idle(err):
		s.left(from, err, ended())
	case !told:
		s.failed(from, err, admitted)
	}
}

// left tells of a client that did not say that it has nothing more to send, and had nothing under
// way: each of its files is whole, or was told of. One that did not go by itself, because the
// server was told to end, waited no longer, lost it or its own device, may have had more, so this
// is a failure of once. The caller holds mu.
func (s *server) left(from string, err error, interrupted bool) {
	if s.once && (interrupted || s.lost(err)) {
		s.failed(from, err, true)
		return
	}
	s.complain(slog.LevelWarn, "the connection ended between files", "from", from, "error",
		plain.Brief(err.Error()))
}

// lost reports whether a connection ended with an error because its client is silent or gone, or
// our device is.
func (s *server) lost(err error) bool {
	return errors.Is(err, peer.ErrSilence) || unanswered(err) || s.station.Err() != nil
}

// ended tells what came of a file.
func (s *server) ended(from string, result transfer.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case result.Known: // it was told of when it came
		return
	case err == nil:
	case result.Path == "":
		s.failed(from, err, true)
		return
	default:
		s.complain(slog.LevelWarn, "file received, and its sender may not know", "from", from,
			"error", plain.Brief(err.Error()))
		if s.once && s.lost(err) { // as of left
			s.failed(from, err, true)
		}
	}
	s.files++
	s.bytes += result.Size
	if !s.results.add(from, result) {
		s.complain(slog.LevelWarn, "nobody takes results, and one is not printed", "from", from,
			"file", plain.Brief(result.Path))
	}
}

// given tells what came of a file that was asked for.
func (s *server) given(from string, result transfer.Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = fmt.Errorf("to %s: %w", from, userfile.Failed(err))
		s.complain(slog.LevelError, "file not sent", "to", from, "error", plain.Brief(err.Error()))
		return
	}
	s.logger.Info("file sent", "to", from, "file", plain.Brief(result.Path), "bytes", result.Size)
}

// failed tells of a file that was not received, also when the server was told to end.
// What strangers do is of less interest, and they could do a lot of it. The caller holds mu.
func (s *server) failed(from string, err error, admitted bool) {
	if !admitted {
		s.logger.Info("refused", "from", from, "error", plain.Brief(err.Error()))
		return
	}
	s.err = fmt.Errorf("from %s: %w", from, userfile.Failed(err))
	if s.once {
		return
	}
	s.complain(slog.LevelError, "file not received", "from", from, "error",
		plain.Brief(err.Error()))
}

// complain logs what went wrong with a file or a connection, unless strangers have had enough lines
// logged. The caller holds mu.
func (s *server) complain(level slog.Level, text string, args ...any) {
	if s.config.Token == nil {
		ok, left := s.complaints.Spend(s.now())
		s.tellLeft(left)
		if !ok {
			return
		}
	}
	s.logger.Log(context.Background(), level, text, args...)
}

// tellLeft tells how often something went wrong that was not told.
func (s *server) tellLeft(n int) {
	if n > 0 {
		s.logger.Error("more went wrong with files and connections, without a line for each",
			"times", n)
	}
}

// transferReport is a transferred file in JSON.
type transferReport struct {
	Path    string  `json:"path"`
	Peer    string  `json:"peer"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// Resumed is how many of the bytes were there from before.
	Resumed int64  `json:"resumed"`
	SHA256  string `json:"sha256"`
	// Extensions are those of the transport that the connection had.
	Extensions string `json:"extensions"`
}

// printTransfer prints one file that was transferred.
func (a *app) printTransfer(verb, peer string, r transfer.Result) error {
	seconds := r.Duration.Seconds()
	if a.json {
		return a.printJSON(transferReport{
			Path: r.Path, Peer: peer, Bytes: r.Size, Seconds: seconds, Resumed: r.Resumed,
			SHA256: r.SHA256, Extensions: r.Extensions.String(),
		})
	}
	preposition := map[string]string{"received": "from", "copied": "to", "fetched": "from"}[verb]
	resumed := ""
	if r.Resumed > 0 {
		resumed = fmt.Sprintf(" (%d were there)", r.Resumed)
	}
	a.printf("%s %s %s %s: %d bytes%s in %.2f s, %.2f Gb/s, SHA-256 %s\n", verb,
		plain.Brief(r.Path), preposition, peer, r.Size, resumed, seconds,
		float64(r.Size-r.Resumed)*8/1e9/seconds, r.SHA256)
	return nil
}

// unanswered reports whether a connection ended because nothing comes from its other end any more.
func unanswered(err error) bool {
	var work *roce.WorkError
	return errors.As(err, &work) && work.Status == roce.StatusRetryExcErr
}
