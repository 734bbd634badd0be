package bpf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Attached reports whether the interface runs the program. It does not after somebody else
// detached it (bpftool link detach), put another program in its place (bpf(2),
// BPF_LINK_UPDATE), or deleted the interface. The kernel tells nobody of the first two, by
// rtnetlink or otherwise, so one has to ask; it is one system call, and allocates nothing.
func (p *program) Attached() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false, ErrClosed
	}
	attached, ours, err := p.linked()
	return attached && ours, err
}

// linked reports whether the link is on the interface, and whether what it attaches is the
// program. The caller holds mu.
func (p *program) linked() (attached, ours bool, err error) {
	// Every link of the library that is of a program has a descriptor.
	if err := p.asker.ask(p.at.link.(interface{ FD() int }).FD()); err != nil {
		return false, false, fmt.Errorf("bpf: link to %s: %w", p.name, err)
	}
	at := &p.asker.info
	attached = at.kind == unix.BPF_LINK_TYPE_XDP && int(at.ifindex) == p.ifindex
	return attached, at.program == uint32(p.id), nil
}

// Reattach has the interface run the program again, with all that it owns and the sockets that
// are registered, in the mode that it had. Nothing happens while it is attached. It must run
// in the network namespace of the interface. Like Attach it replaces no program of somebody
// else: the error is ErrForeignProgram then, and Reattach may be called again.
func (p *program) Reattach() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	attached, ours, err := p.linked()
	switch {
	case err != nil || attached && ours:
		return err
	case attached:
		// The link is ours, whatever was put into it.
		if err := p.at.link.Update(p.objs.Xroce); err != nil {
			return &Error{Op: "put the program back on", Interface: p.name, Err: err}
		}
		return nil
	}
	return p.relink()
}

// relink makes a new link in place of one that was detached. The caller holds mu.
func (p *program) relink() error {
	dev, err := readDevice(p.ifindex)
	switch {
	case err != nil:
		return &Error{
			Op: "attach to", Interface: p.name, Err: err, Hint: attachHint(err, p.at.mode),
		}
	case dev.progID != 0:
		return foreignError(dev)
	}
	at, err := attach(p.objs.Xroce, p.ifindex, dev, p.at.mode)
	if err != nil {
		return err
	}
	old := p.at.link
	p.at.link = at.link
	// It attaches nothing any more.
	return old.Close()
}
