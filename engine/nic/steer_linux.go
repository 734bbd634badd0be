package nic

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrSteer says that a card does not bring packets to a queue: it has no flow rules, or they
// are in use for something else. It matches errors.ErrUnsupported in the first case.
var ErrSteer = errors.New("nic: no flow rule for RoCE packets")

// A Steering is flow rules that bring RoCE packets to one queue of a card, for as long as it
// is open.
type Steering struct {
	table table
	file  *record
	// socket is what the table asks by, nil in tests.
	socket *socket
	made   []Rule // those of ours
	// Refused are the kinds of packets that the card takes no rule for, with the reason. They
	// come in where RSS has them.
	Refused map[Kind]error
}

// Steer makes flow rules that bring RoCE packets to a queue of an interface: for IPv4, IPv6
// and RoCE v1. A rule that is there already, to this queue, is left as it is, and stays when
// the steering is closed; one to elsewhere is an error, and so is a card that takes neither
// IPv4 nor IPv6. dir is where it is written down what was made, see Sweep; it is made when it
// is not there. Only one process at a time steers on an interface.
func Steer(iface string, queue int, dir string) (*Steering, error) {
	asked, err := openSocket(iface)
	if err != nil {
		return nil, err
	}
	s, err := steer(table{iface, asked.call}, queue, dir)
	if err != nil {
		return nil, errors.Join(err, asked.close())
	}
	s.socket = asked
	return s, nil
}

// Sweep removes the rules of a process that steered on the interface and did not live to
// remove them. It costs a look at a file when there was none; rules of a process that is
// alive stay.
func Sweep(iface, dir string) error {
	file, err := openRecord(iface, dir, false)
	if file == nil || err != nil {
		return err
	}
	asked, err := openSocket(iface)
	if err != nil {
		return file.close(err)
	}
	return errors.Join(file.close(file.sweep(table{iface, asked.call})), asked.close())
}

// steer is Steer on any table.
func steer(t table, queue int, dir string) (_ *Steering, err error) {
	file, err := openRecord(t.iface, dir, true)
	if err != nil {
		return nil, err
	}
	if err := file.sweep(t); err != nil {
		return nil, file.close(err)
	}
	s := &Steering{table: t, file: file, Refused: map[Kind]error{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	for _, k := range Kinds() {
		err := s.add(Rule{Kind: k, Queue: queue})
		switch {
		case err == nil:
		case errors.Is(err, ErrSteer) && !unsupported(err):
			return nil, err
		default:
			s.Refused[k] = err
		}
	}
	if v4, v6 := s.Refused[V4], s.Refused[V6]; v4 != nil && v6 != nil {
		return nil, t.explain(v4)
	}
	return s, nil
}

// unsupported reports whether a card, or its driver, has no such rules: EOPNOTSUPP of most,
// EINVAL of those that do not know the headers.
func unsupported(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) ||
		errors.Is(err, unix.EPROTONOSUPPORT)
}

// explain says why there are no rules, and what to do instead.
func (t table) explain(cause error) error {
	err := fmt.Errorf("%w: %s does not take 'ethtool -N %s %s': %w", ErrSteer, t.iface, t.iface,
		V4.Flow(), cause)
	switch {
	case errors.Is(cause, unix.EPERM):
		return fmt.Errorf("%w; it needs CAP_NET_ADMIN", err)
	case unsupported(cause):
		return fmt.Errorf("%w; if 'ethtool -k %s' has ntuple-filters off: ethtool -K %s ntuple on"+
			"; else use all queues, or have one: ethtool -L %s combined 1", err, t.iface, t.iface,
			t.iface)
	}
	return err
}

// add makes a rule, unless it is there. It is written down before.
func (s *Steering) add(r Rule) error {
	have, err := s.table.rules()
	if err != nil {
		return err
	}
	for _, h := range have {
		switch {
		case h.Kind != r.Kind:
		case h.Queue == r.Queue && h.Context == 0:
			return nil
		default:
			return fmt.Errorf("%w: on %s %v, not to queue %d; if nobody needs it: %s", ErrSteer,
				s.table.iface, h, r.Queue, h.Delete(s.table.iface))
		}
	}
	if r.Location, err = s.table.place(have); err != nil {
		return err
	}
	if err := s.file.write(append(slices.Clone(s.made), r)); err != nil {
		return err
	}
	at, err := s.table.insert(r)
	if err != nil {
		return errors.Join(err, s.file.write(s.made))
	}
	if r.Location == locAny {
		r.Location = at
	}
	s.made = append(s.made, r)
	return s.file.write(s.made)
}

// place finds a place for a rule: the driver's choice, or the last one that is free, which
// comes after the rules of others.
func (t table) place(have []Rule) (uint32, error) {
	_, room, chooses, err := t.size()
	if err != nil {
		return 0, err
	}
	if chooses {
		return locAny, nil
	}
	if room == 0 {
		return 0, unix.EOPNOTSUPP // a driver, as igb, that has rules on other cards
	}
	for at := room - 1; at >= 0; at-- {
		if !slices.ContainsFunc(have, func(r Rule) bool { return int(r.Location) == at }) {
			return uint32(at), nil
		}
	}
	return 0, fmt.Errorf("%w: %s has room for %d rules and all are taken", ErrSteer, t.iface, room)
}

// Rules returns the rules that were made.
func (s *Steering) Rules() []Rule { return slices.Clone(s.made) }

// String lists what the card takes no rules for, "" when it takes all.
func (s *Steering) String() string {
	var parts []string
	for _, k := range Kinds() {
		if err := s.Refused[k]; err != nil {
			parts = append(parts, fmt.Sprintf("%v (%v)", k, err))
		}
	}
	return strings.Join(parts, ", ")
}

// Close removes the rules that were made, and forgets them. It is idempotent, and may be called in
// any network namespace.
func (s *Steering) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.close(s.file.sweepRules(s.table, s.made))
	s.file, s.made = nil, nil
	if s.socket != nil {
		err = errors.Join(err, s.socket.close())
	}
	return err
}
