package bpf

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// A Program is the XDP program attached to one interface, and its maps. Its
// methods are safe for concurrent use. Those who attach it to the same interface in one process
// share it: the kernel has one program an interface. Each has the addresses that it owns.
type Program struct {
	*program
	keys map[Key]struct{} // that it owns, with mu held; nil after Close
}

// Taken reports whether another Program of this process has registered a socket for a queue.
func (p *Program) Taken(queue int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	by := p.queues[queue]
	return by != nil && by != p
}

// Register makes the program send the packets of a receive queue to an AF_XDP
// socket, which must be bound to that queue of this interface: the kernel
// drops what it redirects to any other. It replaces an earlier socket. The
// kernel forgets the socket by itself when the socket closes.
func (p *Program) Register(queue, fd int) error {
	if err := p.checkQueue(queue); err != nil {
		return err
	}
	return p.do(fmt.Sprintf("register a socket for queue %d of", queue), func() error {
		if p.keys == nil {
			return ErrClosed
		}
		if err := p.objs.Xsks.Put(uint32(queue), uint32(fd)); err != nil {
			return err
		}
		p.queues[queue] = p
		return nil
	})
}

// programs are those that this process has attached, by the numbers that the kernel gave them.
var programs struct {
	sync.Mutex
	byID map[ebpf.ProgramID]*program
}

// attachedHere returns the program that the interface has, if it is one of this process, else
// nil. The caller holds the lock of programs.
func attachedHere(ifindex int, opts Options) (*Program, error) {
	if ifindex <= 0 {
		return nil, nil // which others tell
	}
	dev, err := readDevice(ifindex)
	if err != nil || dev.progID == 0 {
		return nil, nil // the same
	}
	p := programs.byID[ebpf.ProgramID(dev.progID)]
	if p == nil {
		return nil, nil
	}
	if opts.Mode != Auto && opts.Mode != p.at.mode {
		return nil, &Error{
			Op: "attach (" + opts.Mode.String() + ") to", Interface: p.name,
			Err: fmt.Errorf("this process has it there in %v mode: %w", p.at.mode, unix.EBUSY),
		}
	}
	return p.newUser(), nil
}

// newUser adds a user. The caller holds the lock of programs.
func (p *program) newUser() *Program {
	p.users++
	return &Program{program: p, keys: map[Key]struct{}{}}
}

// Own makes the program take packets for an address from now on. To own an
// address twice is no error. The error is unix.E2BIG beyond MaxKeys addresses.
//
// For RoCE v2 the key is the IP address, whatever the MAC address of the
// packet. For RoCE v1 and native InfiniBand it is the MAC address, and one of the
// two.
func (p *Program) Own(k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	return p.do("own "+k.String()+" on", func() error {
		if p.keys == nil {
			return ErrClosed
		}
		if _, owns := p.keys[k]; owns {
			return nil
		}
		if p.owners[k] == 0 {
			err := p.objs.Owned.Put(k, uint8(1))
			if errors.Is(err, unix.E2BIG) { // "argument list too long" is of execve(2)
				return fullError{}
			}
			if err != nil {
				return err
			}
			if err := p.addNear(k); err != nil {
				return errors.Join(err, p.objs.Owned.Delete(k))
			}
		}
		p.owners[k]++
		p.keys[k] = struct{}{}
		return nil
	})
}

// Disown ends what Own began. To disown an address that is not owned is no
// error. Packets already in a ring stay there.
func (p *Program) Disown(k Key) error {
	if err := k.check(); err != nil {
		return err
	}
	return p.do("disown "+k.String()+" on", func() error {
		if p.keys == nil {
			return ErrClosed
		}
		return p.disown(k)
	})
}

// disown is Disown. The caller holds mu.
func (p *Program) disown(k Key) error {
	if _, owns := p.keys[k]; !owns {
		return nil
	}
	if p.owners[k] == 1 {
		if err := p.dropNear(k); err != nil {
			return err
		}
		err := ignore(p.objs.Owned.Delete(k), ebpf.ErrKeyNotExist)
		if err != nil {
			return err
		}
	}
	delete(p.keys, k)
	if p.owners[k]--; p.owners[k] == 0 {
		delete(p.owners, k)
	}
	return nil
}

// Close detaches the program and gives it and its maps back, unless others of this process share
// it; then it ends what this one owns. It is idempotent. Sockets that were registered stay open;
// they receive no more.
func (p *Program) Close() error {
	programs.Lock()
	defer programs.Unlock()
	p.mu.Lock()
	keys := p.keys
	if keys == nil {
		p.mu.Unlock()
		return nil
	}
	var errs []error
	p.users--
	if p.users > 0 {
		for k := range keys {
			errs = append(errs, p.disown(k))
		}
	}
	p.keys = nil
	maps.DeleteFunc(p.queues, func(_ int, by *Program) bool { return by == p })
	p.mu.Unlock()
	if p.users == 0 {
		delete(programs.byID, p.id)
		errs = append(errs, p.close())
	}
	return errors.Join(errs...)
}
