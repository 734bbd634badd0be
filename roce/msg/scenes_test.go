package msg

import "xroce/roce/clock"

// A scene is one picture of docs/messages.md.
type scene struct {
	name   string
	config Config // of the sender
	caps   Capabilities
	begins bool // it shows how the connection begins
	notes  []string
	play   func(*picture)
}

var scenes = []scene{
	{
		name: "announce", begins: true,
		notes: []string{
			"what each end speaks and wants", "", "slots, their address and key,\nfrom each end",
			"", "from now on they are used",
		},
		play: func(*picture) {},
	},
	{
		name: "eager",
		notes: []string{
			"header and data in one WRITE", "", "told when a receive took it",
			"several in one WRITE",
		},
		play: func(p *picture) {
			p.whole(&Send{}, 64)
			p.receive(64)
			p.send(&Send{Level: Matched}, 64)
			p.results()
			p.post(10, 20)
		},
	},
	{
		name: "get",
		notes: []string{
			"address and key of the message", "into the receive, no copy", "",
			"the next part", "", "the key is out of use",
		},
		play: func(p *picture) {
			p.send(&Send{}, 300_000)
			p.receive(300_000)
			p.results()
		},
	},
	{
		name: "put", config: Config{Protocol: Put},
		notes: []string{
			"", "address and key of the receive", "into the receive, no copy", "", "all is there",
		},
		play: func(p *picture) {
			p.send(&Send{}, 300_000)
			p.receive(300_000)
			p.results()
		},
	},
	{
		name: "fragments", config: Config{Protocol: Fragments},
		notes: []string{"no key", "so far there is a place"},
		play: func(p *picture) {
			p.send(&Send{}, 3000)
			p.receive(3000)
			p.results()
		},
	},
	{
		name: "grow",
		notes: []string{
			"", "memory with a new key", "", "the slot is free again",
			"at once, from now on",
		},
		play: func(p *picture) {
			p.whole(&Send{}, 5000)
			p.whole(&Send{}, 6000)
		},
	},
	{
		name: "ladder",
		notes: []string{
			"", "", "behind the last frame for it", "", "its key is out of use",
		},
		play: func(p *picture) {
			p.before(func() { p.whole(&Send{}, 5000) })
			p.whole(&Send{}, 20_000)
		},
	},
	{
		name:  "refuse",
		notes: []string{"", "nothing that would do", "another way"},
		play: func(p *picture) {
			p.refuse = true
			p.whole(&Send{}, 20_000)
		},
	},
	{
		name:  "shrink",
		notes: []string{"", "key and memory are gone"},
		play: func(p *picture) {
			p.before(func() { p.whole(&Send{}, 5000) })
			p.later(12*clock.Second, "10 s without a long message")
		},
	},
	{
		name: "replace", config: Config{Mode: Replace},
		notes: []string{
			"behind the last small frame", "the small slots are gone", "", "",
			"short ones go there, too",
		},
		play: func(p *picture) {
			p.whole(&Send{}, 5000)
			p.whole(&Send{}, 64)
		},
	},
	{
		name: "local", config: Config{Mode: LocalOnly},
		notes: []string{"the key of the larger buffer"},
		play: func(p *picture) {
			p.whole(&Send{}, 5000)
		},
	},
	{
		name: "cancel",
		play: func(p *picture) {
			s := p.send(&Send{}, 300_000)
			p.does(0, "taken back")
			p.left.endpoint.CancelSend(p.now, s)
			p.run()
			p.results()
		},
	},
	{
		name: "active",
		play: func(p *picture) {
			p.right.endpoint.Handle(7, func(_ clock.Time, m *Active) (*Receive, Status) {
				p.does(1, "handler 7, %d bytes", m.Length)
				if m.Data != nil {
					return nil, StatusOK
				}
				return &Receive{Pieces: [][]byte{make([]byte, m.Length)}}, StatusOK
			})
			p.send(&Send{Active: true, Handler: 7}, 64)
			p.send(&Send{Active: true, Handler: 7}, 300_000)
			p.results()
		},
	},
	{
		name: "close", config: Config{Keepalive: 5 * clock.Second},
		notes: []string{
			"of nothing: the adapter answers", "no message comes any more", "then DREQ and DREP",
		},
		play: func(p *picture) {
			p.later(6*clock.Second, "5 s of silence")
			p.does(0, "Close")
			p.a.Close(p.now)
			p.run()
			p.does(1, "Close")
			p.b.Close(p.now)
			p.run()
		},
	},
}
