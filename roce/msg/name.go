package msg

// This file is about the keys of memory in control messages. Inside of the machine a message has
// that of the first adapter in its own fields, and those of the others behind it; on the wire
// that of the rail by which it goes is first.

// name has a control message name memory of ours.
func (c *Conn) name(m *Control, memory *Memory) {
	if !c.several {
		key := memory.By(c.ours.Rail)
		m.Addr, m.RKey = key.Addr, key.RKey
		return
	}
	m.Addr, m.RKey = memory.Addr, memory.RKey
	m.RailCount = uint8(c.endpoint.config.Rails - 1)
	for i := range m.RailCount {
		key := &memory.Further[i]
		m.Rails[i] = RailKey{Rail: i + 1, Addr: key.Addr, RKey: key.RKey}
	}
}

// named is the memory of the peer that a control message names.
func named(m *Control) Memory {
	memory := Memory{Key: Key{Addr: m.Addr, RKey: m.RKey}}
	for i, r := range m.Rails[:m.RailCount] {
		memory.Further[i] = Key{Addr: r.Addr, RKey: r.RKey}
	}
	return memory
}

// byRail returns a message as it goes by the rail of a number.
func (c *Conn) byRail(number uint8, m *Control) *Control {
	if number == 0 || m.RailCount == 0 {
		return m
	}
	c.wire = *m
	own := m.Rails[number-1]
	copy(c.wire.Rails[1:number], m.Rails[:number-1])
	c.wire.Rails[0] = RailKey{Addr: m.Addr, RKey: m.RKey}
	c.wire.Addr, c.wire.RKey = own.Addr, own.RKey
	return &c.wire
}

// fromRail takes a message that came by a rail of the peer's with this number. The error is
// ErrRails when it does not have a key for each rail of the peer.
func (c *Conn) fromRail(number uint8, m *Control) error {
	want := uint8(0)
	if c.several && m.Type.Rails(m.Flags) {
		want = c.theirRails - 1
	}
	if m.RailCount != want {
		return ErrRails
	}
	if want == 0 || number == 0 {
		return m.complete()
	}
	own := RailKey{Rail: number, Addr: m.Addr, RKey: m.RKey}
	first := m.Rails[0]
	copy(m.Rails[:number-1], m.Rails[1:number])
	m.Rails[number-1] = own
	if m.Addr, m.RKey = first.Addr, first.RKey; first.Rail != 0 {
		return ErrRails
	}
	return m.complete()
}

// complete reports as an error that the rails behind the first one are not all of them.
func (m *Control) complete() error {
	for i := range m.RailCount {
		if m.Rails[i].Rail != i+1 {
			return ErrRails
		}
	}
	return nil
}
