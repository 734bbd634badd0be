package transfer

import (
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine/crowd"
)

// maxReceipts is how many files a store remembers whose senders may not know that they are there.
const maxReceipts = 64

// A receipt is of a file that is whole under its name, and whose sender may not know: when the
// connection is lost before the verdict, it asks again, and finds that its file exists. Only who
// sends what looks like the same file from the same host is told so, and has then to show that he
// knows its digest, as for a part of one.
type receipt struct {
	name  string // that a part of it had
	from  netip.Prefix
	since time.Time
	file  identity
}

// An identity is by what a file is known that nobody has written to since.
type identity struct {
	dev, ino uint64
	size     int64
	mtime    unix.Timespec
}

// identify is the identity of an open file.
func identify(file *os.File) (identity, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return identity{}, err
	}
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim}, nil
}

// remember makes a receipt for a file that has just got its name, as long as parts are kept.
func (s *Store) remember(p *partial) {
	id, err := identify(p.file)
	if err != nil || p.lasting == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	s.burn(p.lasting)
	s.receipts = append(s.receipts, &receipt{p.lasting, p.from.Host, s.now(), id})
	if len(s.receipts) > maxReceipts {
		i := crowd.GivesWay(s.receipts, func(r *receipt) (netip.Prefix, bool) {
			return r.from, true
		})
		s.receipts = slices.Delete(s.receipts, i, i+1)
	}
}

// heard takes note that the sender of a file knows that it is there.
func (s *Store) heard(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.burn(name)
}

// burn drops the receipt of a file. The caller holds mu.
func (s *Store) burn(name string) {
	s.receipts = slices.DeleteFunc(s.receipts, func(r *receipt) bool { return r.name == name })
}

// expire drops receipts that are as old as no part gets. The caller holds mu.
func (s *Store) expire() {
	s.receipts = slices.DeleteFunc(s.receipts, func(r *receipt) bool {
		return s.now().Sub(r.since) > s.Keep
	})
}

// receiptOf is the receipt of a file, nil for none.
func (s *Store) receiptOf(name string) *receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	i := slices.IndexFunc(s.receipts, func(r *receipt) bool { return r.name == name })
	if i < 0 {
		return nil
	}
	return s.receipts[i]
}

// recognize opens the file that is in the place of this one if it is the same, sent before, and
// reports whether it is. Then all of it is there, and its digest has yet to be compared.
func (p *partial) recognize() bool {
	r := p.store.receiptOf(p.lasting)
	if r == nil {
		return false
	}
	file, _, err := openSourceAt(p.ctx, p.dir, p.base)
	if err != nil {
		return false
	}
	if id, err := identify(file); err != nil || id != r.file {
		file.Close()
		return false
	}
	p.file, p.held, p.known = file, p.size, true
	return true
}

// instead begins a file that looks like one that was sent before, and is another one. Where no file
// may be replaced it is refused, before anything was sent of it.
func (p *partial) instead() error {
	// Who sends something else knows that it is there, and does not have us read it again.
	p.store.heard(p.lasting)
	if !p.store.Overwrite {
		return refusal{p.store.errExists(p.path)}
	}
	other := p.file
	p.file, p.held, p.known = nil, 0, false
	if err := p.begin(); err != nil {
		if p.file != nil { // there was a part, and no room for the rest
			p.file.Close()
			_ = unix.Unlinkat(int(p.dir.Fd()), p.temp, 0)
		}
		p.file, p.held, p.known, p.temp, p.unwritten = other, p.size, true, "", 0
		return refusal{err}
	}
	p.ledger = newLedger(p.file)
	return other.Close()
}
