package match_test

import (
	"fmt"

	"xroce/roce/msg/match"
)

// A transfer is what a caller has for a receive, or for a message: it embeds the node.
type transfer struct {
	receive match.Receive[transfer, packet]
	name    string
}

type packet struct {
	message match.Message[transfer, packet]
	data    string
}

func Example() {
	x := match.New[transfer, packet]([2]uint64{}) // a real seed is random
	var peer match.Peer[transfer, packet]
	_ = x.Add(&peer)

	anything := &transfer{name: "any tag of any peer"}
	anything.receive.Init(anything)
	seven := &transfer{name: "tag 7 of this peer"}
	seven.receive.Init(seven)
	_, _ = x.Post(&anything.receive, 0, 0, nil)
	_, _ = x.Post(&seven.receive, 7, match.Exact, &peer)

	for _, data := range []string{"first", "second", "third"} {
		p := &packet{data: data}
		p.message.Init(p)
		if t, _ := x.Arrive(&p.message, &peer, 7, uint32(len(data))); t != nil {
			fmt.Printf("%s: %s\n", data, t.name)
		}
	}
	fmt.Println(x.Probe(7, match.Exact, nil).data, "is unexpected")
	// Output:
	// first: any tag of any peer
	// second: tag 7 of this peer
	// third is unexpected
}
