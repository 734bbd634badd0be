package engine

import (
	"fmt"

	"xroce/engine/nic"
)

// rulesDir is where it is written down which flow rules are ours, for who comes after a crash.
const rulesDir = "/run/xroce"

// steerCard makes the flow rules to a queue that the options ask for, and removes those of a
// process that died, which send packets to a queue that nobody has.
func (d *Device) steerCard(queue int) error {
	name, log := d.Name(), d.options.Logger
	if !d.options.Steer {
		if err := nic.Sweep(name, rulesDir); err != nil {
			log.Warn("flow rules of a process that is gone are not removed", "device", name,
				"error", err.Error())
		}
		return nil
	}
	rules, err := nic.Steer(name, queue, rulesDir)
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	d.rules = rules
	if refused := rules.String(); refused != "" {
		log.Warn("the card takes no flow rule for some RoCE packets, which come in on any queue",
			"device", name, "packets", refused)
	}
	log.Info("flow rules made", "device", name, "queue", queue,
		"rules", len(rules.Rules()))
	return nil
}
