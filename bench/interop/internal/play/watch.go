package play

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/payload"
	"xroce/bench/softroce"
	"xroce/engine/capture"
	"xroce/roce/wire"
)

// keptPackets is how many packets of a case go to the capture. All are decoded
// and verified.
const keptPackets = 400

// A watch looks at the packets of one case. Its method see is the watcher of a
// cable; the others may be called when the cable has another one.
type watch struct {
	writer *capture.Writer // nil to keep nothing
	// each is told every packet that was decoded, nil for nobody. It returns
	// whether the cable is to lose the packet.
	each func(from softroce.End, p *wire.Packet) (lose bool)
	// payload remembers what the packets said about data, nil when nobody asks.
	payload *payload.Payload

	mu      sync.Mutex // of what follows
	packet  wire.Packet
	packets int
	lost    int
	faults  []string // what is wrong with packets, the first of it
}

// see looks at one frame.
func (w *watch) see(from softroce.End, frame []byte, lost bool) (lose bool) {
	if !payload.IsRoCE(frame) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.packets++
	if lost {
		w.lost++
	}
	if w.writer != nil && w.packets <= keptPackets {
		dir := capture.Outbound
		if from == softroce.B {
			dir = capture.Inbound
		}
		w.writer.Frame(time.Now(), dir, frame, nil)
	}
	if reason := w.packet.Decode(frame, nil); reason != wire.OK {
		w.fault("packet %d from %s does not decode: %s", from, reason)
		return false
	}
	if !w.packet.VerifyICRC() {
		w.fault("packet %d from %s: %s with a wrong ICRC", from, w.packet.BTH.Opcode)
	}
	if w.each != nil && w.each(from, &w.packet) {
		w.lost++
		lose = true
	}
	if w.payload != nil {
		w.payload.Add(from, frame, &w.packet, lost || lose)
	}
	return lose
}

// fault notes what is wrong with the packet in hand.
func (w *watch) fault(format string, from softroce.End, what any) {
	if len(w.faults) < 5 {
		who := map[softroce.End]string{softroce.A: "us", softroce.B: "rxe"}[from]
		w.faults = append(w.faults, fmt.Sprintf(format, w.packets, who, what))
	}
}

// damage says which packets were not whole, "" for none.
func (w *watch) damage() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.faults, "; ")
}

// verdict says what is wrong with the number of packets of a case, "" for nothing.
func (w *watch) verdict(c cases.Case) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.packets == 0:
		return "no packet was on the cable"
	case c.Fault == cases.Loss && w.lost == 0:
		return "no packet was lost"
	}
	return ""
}
