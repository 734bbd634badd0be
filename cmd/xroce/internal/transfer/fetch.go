package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

// FetchConfig says what to have sent and where to.
type FetchConfig struct {
	Path     string // at the server, below its directory
	To       string // file to make, or a directory for it to keep its name
	Writer   io.Writer
	Progress func(done, total int64)
	Held     func(done int64) // is told what is gone on behind, and may be nil

	Overwrite bool          // replace a regular file
	Keep      time.Duration // as StoreConfig.Keep; older parts in the same directory go
}

// A sink is where a file goes that is fetched: it has a part of it from before.
type sink interface {
	has() int64       // bytes that are there
	sum() string      // SHA-256 of them, in hexadecimal
	restart() error   // drops them
	add([]byte) error // writes more
}

// Fetch has a file sent by the server.
func (c *Client) Fetch(ctx context.Context, f FetchConfig) (Result, error) {
	if err := checkName(f.Path); err != nil {
		return Result{}, err
	}
	if f.Writer != nil {
		s := &written{to: f.Writer, hash: sha256.New()}
		return c.persist(ctx, func(conn *control) (Result, int64, error) {
			offer, err := f.request(ctx, conn)
			if err != nil {
				return Result{}, s.size, err
			}
			result, err := f.take(ctx, conn, &offer, s)
			return result, s.size, err
		})
	}
	dir, name := filepath.Split(f.To)
	if info, err := os.Stat(f.To); err == nil && info.IsDir() || name == "" {
		dir, name = f.To, path.Base(f.Path)
	}
	store, err := OpenStore(filepath.Clean(dir), StoreConfig{
		Overwrite: f.Overwrite, Dotfiles: true, Mode: 0o777, Keep: f.Keep,
	})
	if err != nil {
		return Result{}, err
	}
	defer store.Close()
	store.fetching = true
	if f.Keep > 0 {
		// Nobody else does it here. What cannot be looked at keeps no file from coming.
		_, _ = store.clear(ctx, 0)
	}
	return c.persist(ctx, func(conn *control) (Result, int64, error) {
		return f.toFile(ctx, conn, store, name)
	})
}

// request asks for the file and hears what there is.
func (f *FetchConfig) request(ctx context.Context, c *control) (offer message, err error) {
	offer, err = c.ask(ctx, message{Ask: askGet, Path: f.Path}, c.patience.exchange)
	if err == nil && (offer.Size < 0 || offer.Size > MaxSize) {
		err = fmt.Errorf("%w: it offers %d bytes", ErrPeer, offer.Size)
	}
	return offer, refused(err)
}

// toFile makes the file, and returns how much of it there is.
func (f *FetchConfig) toFile(
	ctx context.Context, c *control, store *Store, name string,
) (result Result, done int64, err error) {
	offer, err := f.request(ctx, c)
	if err != nil {
		return result, 0, err
	}
	// Into the directory of the store, and not into one in it that has the name.
	part, err := store.create(ctx, &message{
		Path: ".", Name: name, Size: offer.Size, Mode: offer.Mode, MTime: offer.MTime,
	}, Sender{})
	if err != nil {
		return result, 0, err
	}
	if err = part.recall(ctx, c); err == nil {
		result, err = f.take(ctx, c, &offer, part)
	}
	if err == nil {
		err = part.commit()
	}
	done = part.done()
	if err != nil && goesOn(ctx, err) {
		return Result{}, done, errors.Join(err, part.leave())
	}
	return result, done, errors.Join(err, part.close())
}

// take takes what is offered, behind what there is of it.
func (f *FetchConfig) take(
	ctx context.Context, c *control, offer *message, to sink,
) (Result, error) {
	start, held := time.Now(), to.has()
	var m message
	err := c.comparing(held, func() (err error) {
		m, err = c.ask(ctx, message{Held: held, SHA256: to.sum()}, c.patience.forWork(held))
		return err
	})
	switch {
	case err != nil:
		return Result{}, err
	case m.Held == 0 && held > 0:
		if err := to.restart(); err != nil {
			return Result{}, err
		}
		held = 0
	case m.Held != held:
		return Result{}, fmt.Errorf("%w: it goes on behind %d bytes of %d", ErrPeer, m.Held, held)
	}
	c.began = held
	if f.Held != nil && held > 0 {
		f.Held(held)
	}
	err = c.receiveChunks(ctx, func(chunk []byte) error {
		if int64(len(chunk)) > offer.Size-to.has() {
			return c.altered(fmt.Errorf("%w: it sent more than the %d bytes it offered", ErrPeer,
				offer.Size))
		}
		err := to.add(chunk)
		if f.Progress != nil {
			f.Progress(to.has(), offer.Size)
		}
		return err
	})
	if err != nil {
		return Result{}, fmt.Errorf("after %d of %d bytes: %w", to.has(), offer.Size, err)
	}
	if m, err = c.receive(ctx, c.patience.digest); err != nil {
		return Result{}, err
	}
	digest := to.sum()
	switch {
	case to.has() != offer.Size:
		return Result{}, c.altered(fmt.Errorf("%w: it ended after %d of %d bytes", ErrPeer,
			to.has(), offer.Size))
	case m.SHA256 != digest:
		return Result{}, c.altered(fmt.Errorf("SHA-256 differs: %s here, %.100q there", digest,
			m.SHA256))
	}
	return Result{
		Path: f.Path, Size: offer.Size, Resumed: held, Duration: time.Since(start), SHA256: digest,
		Extensions: c.Conn.Extensions(),
	}, c.send(message{SHA256: digest})
}

// A written sink cannot take anything back.
type written struct {
	to   io.Writer
	hash hash.Hash
	size int64
}

func (w *written) has() int64  { return w.size }
func (w *written) sum() string { return hex.EncodeToString(w.hash.Sum(nil)) }

func (w *written) restart() error {
	return fmt.Errorf("%w, and what was written cannot be taken back", ErrChanged)
}

func (w *written) add(chunk []byte) error {
	n, err := w.to.Write(chunk)
	w.hash.Write(chunk[:n])
	w.size += int64(n)
	return err
}

// give sends a file of the store to a client that asks for it.
func (r *receiver) give(ctx context.Context, m *message) error {
	file, info, err := r.Store.open(ctx, m.Path)
	if err != nil {
		if r.Given != nil {
			r.Given(Result{}, err)
		}
		r.sendError(err) // it may ask for something else
		return nil
	}
	s := newOpenSender(SendConfig{File: m.Path}, file, info)
	defer s.close()
	err = r.hand(ctx, s)
	if r.Given != nil {
		r.Given(Result{Path: m.Path, Size: s.done}, err)
	}
	return err
}

// hand sends a file, or what the client does not have of it.
func (r *receiver) hand(ctx context.Context, s *sender) error {
	offer := s.offer()
	offer.Ask, offer.Path, offer.Name = "", "", ""
	// It reads what it has, of which we hear only then how much that is.
	m, err := r.ask(ctx, offer, r.control.patience.forWork(s.size))
	if err != nil {
		return err
	}
	if m.Held > 0 && m.Held <= s.size {
		if err := r.digestOf(ctx, s.file, m.Held, s.hash); err != nil {
			return s.shorter(err)
		}
	}
	if s.done = m.Held; m.Held <= 0 || m.Held > s.size || s.sum() != m.SHA256 {
		if err := s.rewind(); err != nil {
			return err
		}
	}
	if err := r.send(message{Held: s.done}); err != nil {
		return err
	}
	held := s.done
	if r.Progress != nil {
		// What the client had costs it nothing, and is no reason to keep a place.
		s.Progress = func(done, total int64) { r.Progress(done-held, total-held) }
	}
	digest, err := s.stream(ctx, r.control)
	if err != nil {
		return s.failed(err)
	}
	_, err = r.ask(ctx, message{SHA256: digest, Size: s.done},
		r.control.patience.forWork(s.done-held))
	return err
}

// ErrNoReading says that a server sends nothing.
var ErrNoReading = errors.New("files are not sent from here (serve --allow-read sends them)")

// open opens a file of the store to send, if that is allowed.
func (s *Store) open(ctx context.Context, name string) (*os.File, os.FileInfo, error) {
	if !s.Read {
		return nil, nil, ErrNoReading
	}
	if !filepath.IsLocal(name) || filepath.Clean(name) != name || len(name) > maxPath {
		return nil, nil, fmt.Errorf("%w: %.100q", ErrPath, name)
	}
	if err := s.allowed(name); err != nil {
		return nil, nil, err
	}
	dir, err := s.walk(path.Dir(name))
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", name, err)
	}
	defer dir.Close()
	return openSourceAt(ctx, dir, path.Base(name))
}
