package transfer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"xroce/engine/sim"
)

// TestLostVerdict loses the connection when the file has its name, before its sender knows: that
// asks again, and hears that the file is there. The server tells of it once.
func TestLostVerdict(t *testing.T) {
	for _, size := range []int{0, 2*ChunkSize + 5} {
		r := newRig(t, size, sim.Faults{})
		r.serve(t, StoreConfig{Keep: time.Hour})
		c := r.client()
		c.Retry = time.Hour
		dial, links := c.Dial, make(chan *Link, 8)
		c.Dial = func(ctx context.Context) (*Link, error) {
			link, err := dial(ctx)
			links <- link
			return link, err
		}
		var cut sync.Once
		r.store.sync = func(f *os.File) error {
			if info, err := f.Stat(); err == nil && info.IsDir() {
				cut.Do(func() { (<-links).Conn.Abort() })
			}
			return nil
		}
		lost, received := 0, 0
		c.Lost = func(error) { lost++ }
		var mu sync.Mutex
		stop := r.listen(t.Context(), ReceiveConfig{Ended: func(result Result, _ error) {
			mu.Lock()
			defer mu.Unlock()
			if result.Path != "" && !result.Known {
				received++
			}
		}})
		result, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "x"})
		c.Close()
		errs := stop()
		if err != nil || lost == 0 || result.Resumed != int64(size) || received != 1 {
			t.Errorf("%d bytes: the file is there, lost %d times, received %d times: %+v, %v; "+
				"server: %v", size, lost, received, result, err, errs)
		}
		r.whole(t, "x")
	}
}

// TestVerdictOfAnotherConnection: who asks while the connection before gives the file its name
// need not send it again.
func TestVerdictOfAnotherConnection(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
	m := message{Path: "new", Name: "n", Size: 5}
	told := make(chan struct{})
	first, err := s.create(t.Context(), &m, Sender{GiveUp: func(error) { close(told) }})
	must(t, err)
	must(t, first.add([]byte("12345")))
	done := make(chan error)
	var second *partial
	go func() {
		var err error
		second, err = s.create(t.Context(), &m, Sender{GiveUp: func(error) {}})
		done <- err
	}()
	<-told
	must(t, errors.Join(first.commit(), first.close(), <-done))
	if second.held != 5 || second.done() != 5 {
		t.Errorf("%d bytes are held of what is there", second.held)
	}
	must(t, errors.Join(second.recalled(), second.add(nil)))
	if second.sum() != first.sum() {
		t.Errorf("it is %s, and was %s", second.sum(), first.sum())
	}
	if err := second.add([]byte("6")); !errors.Is(err, ErrPeer) {
		t.Errorf("a byte more: %v", err)
	}
	must(t, errors.Join(second.commit(), second.close()))
	if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(got) != "12345" {
		t.Errorf("%q, %v", got, err)
	}
	if s.files != 1 || s.total != 5 || s.missing.sum() != 0 || len(s.owners) != 0 {
		t.Errorf("%d files, total %d, missing %d, %d owners", s.files, s.total, s.missing.sum(),
			len(s.owners))
	}
}

// TestOnlyTheSameIsKnown: a file that was received is taken for another one when anything is
// different, and nobody else is told more of it than that it exists.
func TestOnlyTheSameIsKnown(t *testing.T) {
	at := func(dir string) string { return filepath.Join(dir, "new") }
	for name, c := range map[string]struct {
		change func(s *Store, dir string) error
		again  message
		from   Sender
		known  bool
	}{
		"the same":     {known: true},
		"another size": {again: message{Size: 6}},
		"another time": {again: message{MTime: 1}},
		"another mode": {again: message{Mode: 0o644}},
		"another host": {from: hostOf("192.0.2.2")},
		"heard": {change: func(s *Store, _ string) error {
			s.heard(s.receipts[0].name)
			return nil
		}},
		"old": {change: func(s *Store, _ string) error {
			s.now = func() time.Time { return time.Unix(1<<40, 0) }
			return nil
		}},
		"written to": {change: func(_ *Store, dir string) error {
			return errors.Join(os.WriteFile(at(dir), []byte("54321"), 0o600),
				os.Chtimes(at(dir), time.Time{}, time.Unix(1, 0)))
		}},
		"longer": {change: func(_ *Store, dir string) error { return os.Truncate(at(dir), 6) }},
		"replaced": {change: func(_ *Store, dir string) error {
			return errors.Join(os.Rename(at(dir), at(dir)+"2"),
				os.WriteFile(at(dir), []byte("12345"), 0o600))
		}},
		"a link to it": {change: func(_ *Store, dir string) error {
			return errors.Join(os.Rename(at(dir), at(dir)+"2"), os.Symlink("new2", at(dir)))
		}},
	} {
		s, dir, _ := store(t, StoreConfig{Keep: time.Hour})
		m := message{Path: "new", Name: "n", Size: 5, Mode: 0o600}
		p, err := s.create(t.Context(), &m, hostOf("192.0.2.1"))
		must(t, err)
		must(t, errors.Join(p.add([]byte("12345")), p.commit(), p.close()))
		if c.change != nil {
			must(t, c.change(s, dir))
		}
		if c.again.Size > 0 {
			m.Size = c.again.Size
		}
		if c.again.Mode > 0 {
			m.Mode = c.again.Mode
		}
		if !c.from.Host.IsValid() {
			c.from = hostOf("192.0.2.1")
		}
		m.MTime = c.again.MTime
		p, err = s.create(t.Context(), &m, c.from)
		if c.known != (err == nil) || err != nil && !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			must(t, p.close())
		}
		if _, err := os.Lstat(at(dir)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestKnownByItsDigest: a file that looks like the one that was received, and has other content, is
// not touched, and its sender is refused before it sends anything; it can send something else.
func TestKnownByItsDigest(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	info, err := os.Stat(r.file)
	must(t, err)
	m := message{
		Path: "x", Name: "x", Size: 10, Mode: uint32(info.Mode().Perm()),
		MTime: info.ModTime().UnixNano(),
	}
	p, err := r.store.create(t.Context(), &m, Sender{})
	must(t, err)
	must(t, errors.Join(p.add([]byte("0123456789")), p.commit(), p.close()))
	stop := r.listen(t.Context(), ReceiveConfig{})
	c := r.client()
	_, err = c.Send(t.Context(), SendConfig{
		File: r.file, Path: "x", Held: func(int64) { t.Error("it is taken for the same") },
	})
	if err == nil || !Passable(err) || c.control == nil {
		t.Errorf("%v, %v", err, stop())
	}
	if got, err := os.ReadFile(filepath.Join(r.dir, "x")); err != nil ||
		string(got) != "0123456789" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := c.Send(t.Context(), SendConfig{File: r.file, Path: "y"}); err != nil {
		t.Error(err)
	}
	c.Close()
	stop()
}

// TestKnownWhereFilesAreReplaced: what is there is not sent again, nor counted twice, though it
// might be replaced; another file that looks like it replaces it.
func TestKnownWhereFilesAreReplaced(t *testing.T) {
	const first, second = "12345", "54321"
	s, dir, _ := store(t, StoreConfig{
		Keep: time.Hour, Overwrite: true, MaxFiles: 2, MaxTotal: 2 * int64(len(first)),
	})
	m := message{Path: "new", Name: "n", Size: int64(len(first)), Mode: 0o600}
	create := func() *partial {
		t.Helper()
		p, err := s.create(t.Context(), &m, Sender{})
		must(t, err)
		return p
	}
	p := create()
	must(t, errors.Join(p.add([]byte(first)), p.commit(), p.close()))
	for range 3 {
		if p = create(); !p.known || p.done() != m.Size {
			t.Fatalf("known %t, %d bytes are there", p.known, p.done())
		}
		must(t, errors.Join(p.recalled(), p.commit(), p.close()))
	}
	if s.files != 1 || s.total != m.Size {
		t.Errorf("%d files, total %d", s.files, s.total)
	}
	p = create()
	must(t, errors.Join(p.recalled(), p.restart(), p.add([]byte(second))))
	if p.known || p.held != 0 || p.sum() != sumOf(second) {
		t.Errorf("known %t, %d bytes are held, %s", p.known, p.held, p.sum())
	}
	must(t, errors.Join(p.commit(), p.close()))
	if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(got) != second {
		t.Errorf("%q, %v", got, err)
	}
	if s.files != 2 || s.total != 2*m.Size || s.missing.sum() != 0 || len(s.owners) != 0 {
		t.Errorf("%d files, total %d, missing %d, %d owners", s.files, s.total, s.missing.sum(),
			len(s.owners))
	}
	// There is no room for a third, and what is there stays.
	p = create()
	err := errors.Join(p.recalled(), p.restart())
	var no refusal
	if !errors.As(err, &no) {
		t.Errorf("without room: %v", err)
	}
	must(t, p.close())
	if got, err := os.ReadFile(filepath.Join(dir, "new")); err != nil || string(got) != second {
		t.Errorf("%q, %v", got, err)
	}
	if s.files != 2 || s.missing.sum() != 0 || len(s.owners) != 0 {
		t.Errorf("%d files, missing %d, %d owners", s.files, s.missing.sum(), len(s.owners))
	}
}

// TestPartOfAnotherFile that replaces one that looks like it is gone on with, as any is.
func TestPartOfAnotherFile(t *testing.T) {
	s, _, _ := store(t, StoreConfig{Keep: time.Hour, Overwrite: true})
	m := message{Path: "new", Name: "n", Size: 5, Mode: 0o600}
	create := func() *partial {
		t.Helper()
		p, err := s.create(t.Context(), &m, Sender{})
		must(t, err)
		must(t, p.recalled())
		return p
	}
	p := create()
	must(t, errors.Join(p.add([]byte("12345")), p.commit(), p.close()))
	p = create()
	must(t, errors.Join(p.restart(), p.add([]byte("543")), p.leave()))
	if p = create(); p.known || p.held != 3 {
		t.Fatalf("known %t, %d bytes are held", p.known, p.held)
	}
	must(t, errors.Join(p.add([]byte("21")), p.commit(), p.close()))
	if p = create(); !p.known || p.sum() != sumOf("54321") {
		t.Errorf("known %t, %s", p.known, p.sum())
	}
	must(t, p.close())
}

// TestPartOfARefusedFile that replaces one that looks like it, and finds no room, is not left where
// nothing counts it.
func TestPartOfARefusedFile(t *testing.T) {
	s, dir, _ := store(t, StoreConfig{Keep: time.Hour, Overwrite: true})
	at, away := filepath.Join(dir, "x"), filepath.Join(dir, "away")
	m, from := message{Path: "x", Name: "n", Size: 10}, hostOf("192.0.2.1")
	p, err := s.create(t.Context(), &m, from)
	must(t, err)
	must(t, errors.Join(p.add([]byte("0123456789")), p.commit(), p.close(), os.Rename(at, away)))
	leaveParts(t, s, from, "x") // it is not there for a moment
	must(t, os.Rename(away, at))
	p, err = s.create(t.Context(), &m, from)
	must(t, err)
	must(t, p.recalled())
	s.free = func(*os.File) (int64, error) { return 0, nil }
	if err := p.restart(); err == nil {
		t.Error("there was room")
	}
	must(t, p.leave())
	onlyParts(t, dir, len(s.kept))
}

// sumOf is the SHA-256 of a text, in hexadecimal.
func sumOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// TestHeardIsNotKnown: whose sender went on, or said that it needs nothing more, is refused when it
// sends the file again, as by a server that began since.
func TestHeardIsNotKnown(t *testing.T) {
	r := newRig(t, 10, sim.Faults{})
	r.serve(t, StoreConfig{Keep: time.Hour})
	for n := range 2 {
		_, err, _ := r.run(t, SendConfig{Path: "x"}, ReceiveConfig{}, t.Context(), t.Context())
		if (n == 0) != (err == nil) || len(r.store.receipts) != 0 {
			t.Errorf("%d: %v, %d receipts", n, err, len(r.store.receipts))
		}
	}
}

// TestReceiptsAreBounded: who hears of nothing drives out none of a host that sent little.
func TestReceiptsAreBounded(t *testing.T) {
	s, _, _ := store(t, StoreConfig{Keep: time.Hour})
	for n := range 2 * maxReceipts {
		from := hostOf("192.0.2.2")
		if n == 0 {
			from = hostOf("192.0.2.1")
		}
		m := message{Path: fmt.Sprint("f", n), Name: "n"}
		p, err := s.create(t.Context(), &m, from)
		must(t, err)
		must(t, errors.Join(p.commit(), p.close()))
	}
	if len(s.receipts) != maxReceipts || s.receipts[0].from != hostOf("192.0.2.1").Host {
		t.Errorf("%d receipts, the first of %v", len(s.receipts), s.receipts[0].from)
	}
}
