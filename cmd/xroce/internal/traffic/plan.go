package traffic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// A Plan says what to send, in the words of the command line and of scenario files.
type Plan struct {
	To       string     `yaml:"to"`        // host, or MAC address of raw Ethernet frames
	Seed     uint64     `yaml:"seed"`      // of what is by chance
	LineRate string     `yaml:"line_rate"` // of which a rate may be a percentage
	Burst    int        `yaml:"burst"`     // frames that go at once; 1 for 0
	Count    uint64     `yaml:"count"`     // no more frames than that, 0 for no number
	Steps    []PlanStep `yaml:"steps"`
	Flows    []PlanFlow `yaml:"flows"`
}

// A PlanStep is a rate, or a ramp from one to another, for a while.
type PlanStep struct {
	Rate     string        `yaml:"rate"` // as 10kpps, or 1kpps..10kpps for a ramp; "" for max
	Duration time.Duration `yaml:"duration"`
}

// A PlanFlow is one flow, or as many that differ in their UDP source port.
type PlanFlow struct {
	Kind      string   `yaml:"kind"` // udp, ethernet, roce or pfc; "" for udp
	Flows     int      `yaml:"flows"`
	Size      string   `yaml:"size"` // as gen.ParseSizes reads it; "" for 64, of RoCE 128
	Port      uint16   `yaml:"port"` // UDP destination port
	EtherType uint16   `yaml:"ethertype"`
	VLAN      uint16   `yaml:"vlan"` // 0 for that of the route
	Priority  uint8    `yaml:"priority"`
	TOS       uint8    `yaml:"tos"`
	TTL       uint8    `yaml:"ttl"` // 64 for 0
	FlowLabel uint32   `yaml:"flow_label"`
	Payload   string   `yaml:"payload"` // zeros, count, random or bytes, as 0xdeadbeef
	Vary      []string `yaml:"vary"`
	Faults    []string `yaml:"faults"`
	Format    string   `yaml:"format"` // of encap that frames are put into, "" for none
	RoCE      PlanRoCE `yaml:"roce"`
	PFC       PlanPFC  `yaml:"pfc"`
}

// PlanPFC is what is special to frames of flow control.
type PlanPFC struct {
	Priorities []uint `yaml:"priorities"` // 0 to 7
	Quanta     uint16 `yaml:"quanta"`     // 0 to go on
}

// PlanRoCE is what is special to RoCE packets.
type PlanRoCE struct {
	V1      bool     `yaml:"v1"`
	Opcodes []string `yaml:"opcodes"` // names as in RC_SEND_ONLY
	DestQP  uint32   `yaml:"dest_qp"`
	SrcQP   uint32   `yaml:"src_qp"`
	PSN     uint32   `yaml:"psn"`
	PKey    uint16   `yaml:"pkey"`
	QKey    uint32   `yaml:"qkey"`
	MTU     int      `yaml:"mtu"`
	VA      uint64   `yaml:"va"`
	RKey    uint32   `yaml:"rkey"`
	ReadLen uint32   `yaml:"read_length"`
	AckReq  bool     `yaml:"ack_request"`
}

// maxFlowsSent is how many flows a generator has at the most: numbers have 16 bits.
const maxFlowsSent = 1 << 16

// ErrPlan says that a plan is none. It is wrapped with what is wrong.
var ErrPlan = errors.New("bad plan")

func badPlan(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrPlan}, args...)...)
}

// Schedule makes the schedule of a share of a plan: one of so many senders.
func (p *Plan) Schedule(senders int) (*gen.Schedule, error) {
	line := gen.Rate{}
	if p.LineRate != "" {
		var err error
		if line, err = gen.ParseRate(p.LineRate); err != nil {
			return nil, err
		}
		if line.Unit == gen.Packets || line.Unit == gen.OfLineRate {
			return nil, badPlan("line rate %s: give bits a second, as 10gbps", p.LineRate)
		}
	}
	steps := make([]gen.Step, 0, len(p.Steps))
	for _, s := range p.Steps {
		step, err := s.step(line.Value, senders)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	if len(steps) == 0 {
		steps = []gen.Step{{}}
	}
	return gen.NewSchedule(max(1, p.Burst), steps...)
}

// Counted reports whether a sink counts any frames of the plan: those of flow control, and RoCE
// packets without a payload, have no signature. What is no plan is counted, and refused by Make.
func (p *Plan) Counted() bool {
	for i := range p.Flows {
		if p.Flows[i].counted() {
			return true
		}
	}
	return len(p.Flows) == 0
}

// counted reports whether a sink counts any frames of a flow.
func (f *PlanFlow) counted() bool {
	kind := gen.KindUDP
	if f.Kind != "" {
		var err error
		if kind, err = gen.ParseKind(f.Kind); err != nil {
			return true
		}
	}
	if kind != gen.KindRoCE || len(f.RoCE.Opcodes) == 0 { // of which those of RoCE are datagrams
		return kind != gen.KindPFC
	}
	return slices.ContainsFunc(f.RoCE.Opcodes, func(name string) bool {
		op, known := opcode(name)
		return !known || gen.Carries(op)
	})
}

// step reads one step.
func (s PlanStep) step(line float64, senders int) (step gen.Step, err error) {
	from, to, ramp := strings.Cut(s.Rate, "..")
	for _, r := range []struct {
		text string
		rate *gen.Rate
		use  bool
	}{{from, &step.From, s.Rate != ""}, {to, &step.To, ramp}} {
		if !r.use {
			continue
		}
		if *r.rate, err = gen.ParseRate(r.text); err != nil {
			return step, err
		}
		if *r.rate, err = r.rate.Resolve(line); err != nil {
			return step, fmt.Errorf("%w: give it with --line-rate", err)
		}
		r.rate.Value /= float64(senders)
	}
	step.For = clock.Time(s.Duration)
	switch {
	case s.Duration < 0:
		return step, badPlan("a step of %s", s.Duration)
	case ramp && s.Duration == 0:
		return step, badPlan("the ramp %s has no duration", s.Rate)
	case ramp && (step.From.IsMax() || step.To.IsMax()):
		return step, badPlan("%s: a ramp leads from a number to a number", s.Rate)
	}
	return step, nil
}

// A Route is where a plan's frames go.
type Route struct {
	Path     wire.Path // addresses, and the source port that answers come to
	MaxFrame int       // longest frame of the interface
	Run      uint8     // of this run

	ids *atomic.Uint32 // of what goes in segments, of all flows
}

// Make makes the flows of a plan.
func (p *Plan) Make(r Route) ([]*gen.Flow, error) {
	configs, err := p.Configs(r)
	if err != nil {
		return nil, err
	}
	flows := make([]*gen.Flow, 0, len(configs))
	for _, c := range configs {
		flow, err := gen.NewFlow(c)
		if err != nil {
			return nil, err
		}
		flows = append(flows, flow)
	}
	return flows, nil
}

// Configs makes the configurations of the flows of a plan, at least one.
func (p *Plan) Configs(r Route) ([]gen.Config, error) {
	var configs []gen.Config
	r.ids = new(atomic.Uint32)
	r.ids.Store(uint32(r.Run) << 8) // what is left of another run has others
	for i := range p.Flows {
		f := &p.Flows[i]
		many := max(1, f.Flows)
		if f.Flows < 0 || len(configs)+many > maxFlowsSent {
			return nil, badPlan("there can be %d flows", maxFlowsSent)
		}
		for n := range many {
			c, err := f.config(p, r, n)
			if err != nil {
				return nil, err
			}
			c.Flow = uint16(len(configs))
			configs = append(configs, c)
		}
	}
	if len(configs) == 0 {
		return nil, badPlan("it has no flows")
	}
	return configs, nil
}

// config makes the configuration of flow n of those that are alike.
func (f *PlanFlow) config(p *Plan, r Route, n int) (c gen.Config, err error) {
	c = gen.Config{
		Path: r.Path, MaxFrame: r.MaxFrame, Run: r.Run, Seed: p.Seed + uint64(n), DstPort: f.Port,
		EtherType: f.EtherType,
	}
	if f.Kind != "" {
		if c.Kind, err = gen.ParseKind(f.Kind); err != nil {
			return c, err
		}
	}
	size := f.Size
	if size == "" {
		size = map[bool]string{false: "64", true: "128"}[c.Kind == gen.KindRoCE]
	}
	if c.Sizes, err = gen.ParseSizes(size, c.Seed); err != nil {
		return c, err
	}
	for _, p := range f.PFC.Priorities {
		if p > 7 {
			return c, badPlan("flow control of priority %d: there are 0 to 7", p)
		}
		c.PFC.Priorities |= 1 << p
	}
	c.PFC.Quanta = f.PFC.Quanta
	if f.Payload != "" {
		if c.Fill, c.Pattern, err = gen.ParseFill(f.Payload); err != nil {
			return c, err
		}
	}
	if err := f.path(&c, n); err != nil {
		return c, err
	}
	for _, text := range f.Faults {
		fault, err := gen.ParseFault(text)
		if err != nil {
			return c, err
		}
		c.Faults = append(c.Faults, fault)
	}
	if c.RoCE, err = f.RoCE.config(n); err != nil {
		return c, err
	}
	if f.Format != "" {
		c.Wrap, err = wrap(f.Format, &c, r.ids)
	}
	return c, err
}

// path sets the headers. Flows that are alike have source ports of their own, so that a
// receiver spreads them over its queues.
func (f *PlanFlow) path(c *gen.Config, n int) error {
	p := &c.Path
	if f.VLAN > 0 {
		p.Tags = wire.VLAN(f.VLAN).Tags(0)
	}
	if f.VLAN > 4094 || f.Priority > 7 {
		return badPlan("VLAN %d, priority %d: there are 1 to 4094, and 0 to 7", f.VLAN, f.Priority)
	}
	p.Tags = p.Tags.WithPriority(f.Priority)
	p.TClass, p.HopLimit, p.FlowLabel = f.TOS, f.TTL, f.FlowLabel
	if p.HopLimit == 0 {
		p.HopLimit = 64
	}
	if f.RoCE.V1 {
		p.Framing = wire.FramingV1
	}
	varies := false
	for _, text := range f.Vary {
		v, err := gen.ParseVary(text, c.Seed)
		if err != nil {
			return err
		}
		varies = varies || v.Field == gen.FieldSrcPort
		c.Vary = append(c.Vary, v)
	}
	if n > 0 && !varies && c.Kind != gen.KindEthernet && !f.RoCE.V1 {
		port := max(uint64(firstPort), (uint64(p.SrcPort)+uint64(n))&0xffff)
		c.Vary = append(c.Vary, gen.Vary{Field: gen.FieldSrcPort, Values: gen.List(port)})
	}
	return nil
}

// firstPort is the first that programs may use as they like.
const firstPort = 1024

// config makes the part of RoCE. Flows that are alike go to QPs with numbers that follow.
func (r *PlanRoCE) config(n int) (c gen.RoCE, err error) {
	c = gen.RoCE{
		DestQP: r.DestQP + uint32(n), SrcQP: r.SrcQP, PSN: wire.PSN(r.PSN), PKey: r.PKey,
		QKey: r.QKey, VA: r.VA, RKey: r.RKey, ReadLen: r.ReadLen, AckReq: r.AckReq,
	}
	if r.MTU != 0 {
		var ok bool
		if c.MTU, ok = wire.MTUFromBytes(r.MTU); !ok {
			return c, badPlan("path MTU %d: there are 256, 512, 1024, 2048 and 4096", r.MTU)
		}
	}
	for _, name := range r.Opcodes {
		op, ok := opcode(name)
		if !ok {
			return c, badPlan("no opcode %q: they are named as RC_SEND_ONLY is", name)
		}
		c.Opcodes = append(c.Opcodes, op)
	}
	return c, nil
}

// opcode finds an opcode by its name.
func opcode(name string) (wire.Opcode, bool) {
	for op, spec := range wire.Opcodes() {
		if strings.EqualFold(spec.Name, name) {
			return op, true
		}
	}
	return 0, false
}
