package engine

import (
	"fmt"
	"strings"

	"xroce/engine/nic"
)

// logCard tells what of the card matters to a device that has CPUs of its own, or prefers busy
// polling: where its interrupts go, and whether they are deferred.
func (d *Device) logCard() {
	o := &d.options
	if len(o.CPUs) == 0 && o.BusyPoll == 0 {
		return
	}
	card, err := nic.Read(d.Name())
	if err != nil {
		o.Logger.Warn("what the card says cannot be read", "device", d.Name(), "error", err.Error())
		return
	}
	if irqs := describeIRQs(card.IRQs); irqs != "" && len(o.CPUs) > 0 {
		o.Logger.Info("loops and interrupts", "device", d.Name(), "CPUs", numbers(o.CPUs),
			"interrupts", irqs)
	}
	if o.BusyPoll > 0 && !card.Busy.Deferred() {
		o.Logger.Warn("busy polling changes nothing while the interface does not defer its "+
			"interrupts", "device", d.Name(), "try", card.Busy.Advice(d.Name()))
	}
}

// describeIRQs says which CPUs each interrupt may go to.
func describeIRQs(list []nic.IRQ) string {
	var parts []string
	for _, irq := range list {
		name := irq.Name
		if name == "" {
			name = fmt.Sprint(irq.Number)
		}
		parts = append(parts, name+" on "+irq.CPUs)
	}
	return strings.Join(parts, ", ")
}
