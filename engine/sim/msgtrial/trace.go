package msgtrial

import (
	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce/wire"
)

// say takes an event as text. Its arguments must not change later.
func (w *world) say(format string, args ...any) {
	w.Mix(uint64(w.clock.Now()), uint64(len(format)))
	w.Note(w.clock.Now(), format, args...)
}

// frame takes what happened to a frame: into the trace, and as harm to both nodes.
func (w *world) frame(ev *sim.Event) {
	f := campaign.ReadFrame(ev)
	w.Frame(&f)
	w.stats.Network[ev.Kind]++
	if f.From < 0 || f.To < 0 || f.From >= len(w.nodes) || f.To >= len(w.nodes) {
		return
	}
	if ev.Kind == sim.Sent && f.Opcode == wire.RCAck && f.Syndrome.IsRNRNAK() {
		w.stats.NotReady++
		w.notReady(&f)
	}
	if ev.Kind.Fault() {
		w.nodes[f.From].harm++
		w.nodes[f.To].harm++
	}
}
