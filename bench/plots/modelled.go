package main

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/plotter"

	"xroce/bench/model"
	"xroce/bench/result"
	"xroce/roce/clock"
	"xroce/roce/msg"
)

// costsOf are the costs that were measured: of a step that of half a round trip of a short
// message, of a byte on the wire that of messages of 1 MiB, of a copied byte that of memory in no
// cache.
func costsOf(d *result.Document) (costs model.Costs, err error) {
	step, err := median(d, "msg-rtt-64", "ours")
	if err != nil {
		return costs, err
	}
	goodput, err := median(d, "msg-1m", "ours")
	if err != nil {
		return costs, err
	}
	copied, err := median(d, "msg-copy", "in no cache")
	if err != nil {
		return costs, err
	}
	register, err := median(d, "register", "4 KiB")
	if err != nil {
		return costs, err
	}
	return model.Costs{
		Step: clock.Time(step), PerByte: 8e9 / goodput, Copy: copied / (64 << 10),
		Register: clock.Time(register),
	}, nil
}

// ladder are large slots for any message here.
func ladder() msg.Config {
	c := msg.Config{AnySize: true}
	for n := 8 << 10; n <= mostCrossover; n *= 2 {
		c.Large = append(c.Large, n)
	}
	return c
}

// latency is that of a message of n bytes, in microseconds, behind others that have made slots.
func latency(costs model.Costs, n int, by msg.Protocol) (float64, error) {
	w, err := model.New(ladder(), costs, 1)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	var took clock.Time
	for range 2 {
		if took, _, err = w.Send(0, n, by); err != nil {
			return 0, err
		}
	}
	return float64(took) / 1e3, nil
}

// crossover is the shortest message, to an eighth, that goes sooner by get than by a provisioned
// slot; 0 when there is none of up to most bytes.
func crossover(costs model.Costs, most int) (int, error) {
	sooner := func(n int) (bool, error) {
		slot, err := latency(costs, n, msg.Provisioned)
		if err != nil {
			return false, err
		}
		get, err := latency(costs, n, msg.Get)
		return get < slot, err
	}
	low, high := 1<<10, 2<<10
	for ; ; low, high = high, 2*high {
		if high > most {
			return 0, nil
		}
		if ok, err := sooner(high); err != nil {
			return 0, err
		} else if ok {
			break
		}
	}
	for high-low > low/8 {
		middle := int(math.Sqrt(float64(low) * float64(high)))
		ok, err := sooner(middle)
		if err != nil {
			return 0, err
		}
		if ok {
			high = middle
		} else {
			low = middle
		}
	}
	return high, nil
}

// mostCrossover is the longest message that is looked at.
const mostCrossover = 16 << 20

// crossoverPanels have the latency by length where the link is short and long, and the length from
// which on a rendezvous is sooner, by the delay of the link.
func crossoverPanels(d *result.Document) ([]*panel, error) {
	costs, err := costsOf(d)
	if err != nil {
		return nil, err
	}
	by := newPanel("Latency over a modelled link", "length of the message", "latency, µs")
	by.logX(16, byteName)
	by.logY(10, plain)
	for i, delay := range []clock.Time{0, 10, 100} {
		costs.Delay = delay * clock.Microsecond
		for _, p := range []msg.Protocol{msg.Provisioned, msg.Get} {
			var at plotter.XYs
			for n := 4 << 10; n <= 4<<20; n *= 2 {
				us, err := latency(costs, n, p)
				if err != nil {
					return nil, err
				}
				at = append(at, plotter.XY{X: float64(n), Y: us})
			}
			how := []ink{green, blue, red}[i]
			name := fmt.Sprintf("slot, %d µs", delay)
			if p == msg.Get {
				how, name = how.dash(), fmt.Sprintf("get, %d µs", delay)
			}
			if err := by.line(name, how, at); err != nil {
				return nil, err
			}
		}
	}
	by.Legend.Top, by.Legend.Left = true, true
	by.headroom(8)
	cross := newPanel("From here on get is sooner", "delay of the link, one way, µs",
		"length of the message")
	cross.logY(4, byteName)
	pins, err := pinCosts(d)
	if err != nil {
		return nil, err
	}
	last := pins[len(pins)-1]
	for _, v := range []struct {
		name string
		ink  ink
		pin  float64 // nanoseconds a byte
	}{
		{"nothing is pinned", black, 0},
		{"memory is pinned (mlock)", red.dash(), last.Y * 1e3 / last.X},
	} {
		costs.PinByte = v.pin
		var at plotter.XYs
		for _, us := range []clock.Time{0, 5, 10, 20, 50, 100} {
			costs.Delay = us * clock.Microsecond
			n, err := crossover(costs, mostCrossover)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				at = append(at, plotter.XY{X: float64(us), Y: float64(n)})
			}
		}
		if err := cross.line(v.name, v.ink, at); err != nil {
			return nil, err
		}
	}
	cross.Legend.Top, cross.Legend.Left = true, true
	cross.headroom(8)
	return []*panel{by, cross}, nil
}

// registered are the bytes that the receiver has registered for so many peers, one in a hundred of
// which, and one at least, has sent a message of n bytes.
func registered(c msg.Config, peers, n int) (int64, error) {
	w, err := model.New(c, model.Costs{Step: clock.Microsecond}, peers)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	for i := range max(1, peers/100) {
		if _, _, err := w.Send(i, n, msg.Auto); err != nil {
			return 0, err
		}
	}
	return w.Registered(), nil
}

// registeredPanels have the bytes that the receiver has registered for its peers, one in a hundred
// of which, and one at least, sends messages of 64 KiB.
func registeredPanels(*result.Document) ([]*panel, error) {
	const long = 64 << 10
	p := newPanel("One peer in a hundred sends 64 KiB", "peers", "registered at the receiver")
	p.logX(10, plain)
	p.logY(16, byteName)
	for _, v := range []struct {
		name string
		ink  ink
		c    msg.Config
	}{
		{"32 slots of 64 KiB for each", red, msg.Config{
			EagerLimit: long, Slots: 32, Large: []int{}, AnySize: true, Registered: 1 << 40,
		}},
		{"2 slots of 64 KiB for each", orange, msg.Config{
			EagerLimit: long, Slots: 2, Large: []int{}, AnySize: true, Registered: 1 << 40,
		}},
		{"slots that grow", blue, msg.Config{}},
	} {
		var at plotter.XYs
		for _, peers := range []int{1, 3, 10, 30, 100, 300, 1000} {
			n, err := registered(v.c, peers, long)
			if err != nil {
				return nil, err
			}
			at = append(at, plotter.XY{X: float64(peers), Y: float64(n)})
		}
		if err := p.line(v.name, v.ink, at); err != nil {
			return nil, err
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.headroom(64)
	return []*panel{p}, nil
}
