package cc

import (
	"errors"
	"fmt"

	"xroce/roce/clock"
)

// A Config has what the flows of a device have in common. Zero parameters get the published
// values, by Defaults.
type Config struct {
	// Algorithm is that of flows for which no other is chosen.
	Algorithm Algorithm
	// LineRate is that of the port, in kbit/s: where a limit begins, and ends. A rate that is
	// too high costs a few CNPs more at the beginning; 0 is 100 Gb/s.
	LineRate uint32
	// CNPInterval is the least time between two CNPs of a flow, 50 us in the paper.
	CNPInterval clock.Time
	// CNPDSCP is the DSCP of CNPs, 1 to 63, and CNPPriority their priority on a VLAN, 1 to 7;
	// 0 is 48 and 6, as on ConnectX.
	CNPDSCP, CNPPriority uint8

	DCQCN DCQCNParams
	Swift SwiftParams
}

// defaultLineRate is 100 Gb/s.
const defaultLineRate = 100_000_000

// Defaults returns the configuration with the published values for those that are 0.
func (c Config) Defaults() Config {
	setDefault(&c.LineRate, defaultLineRate)
	setDefault(&c.CNPInterval, 50*clock.Microsecond)
	setDefault(&c.CNPDSCP, 48)
	setDefault(&c.CNPPriority, 6)
	c.DCQCN.setDefaults()
	c.Swift.setDefaults()
	return c
}

// Check tests the ranges of a configuration with its defaults. The error wraps ErrConfig.
func (c *Config) Check() error {
	switch {
	case !c.Algorithm.Known():
		return fmt.Errorf("%w: no algorithm %d", ErrConfig, c.Algorithm)
	case c.CNPDSCP > 63 || c.CNPPriority > 7:
		return fmt.Errorf("%w: DSCP %d and priority %d are not in 0..63 and 0..7", ErrConfig,
			c.CNPDSCP, c.CNPPriority)
	case c.CNPInterval < 0 || c.CNPInterval > maxPeriod:
		return fmt.Errorf("%w: %d ns between CNPs", ErrConfig, c.CNPInterval)
	}
	return errors.Join(c.DCQCN.check(c.LineRate), c.Swift.check())
}

// New returns the Controller of a new flow, nil for None. The configuration has its
// defaults and passed Check.
func (c *Config) New(a Algorithm) Controller {
	switch a {
	case AlgorithmDCQCN:
		return NewDCQCN(c.LineRate, c.DCQCN)
	case AlgorithmSwift:
		return NewSwift(c.Swift)
	}
	return nil
}
