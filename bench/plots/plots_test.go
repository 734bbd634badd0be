package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/plotter"

	"xroce/bench/machine"
	"xroce/bench/model"
	"xroce/bench/result"
	"xroce/bench/worker"
	"xroce/roce/clock"
)

// measured makes a case: the median of each variant, in three rounds that differ a little.
func measured(name string, values map[string]float64) result.Case {
	c := result.Case{Name: name}
	for v, value := range values {
		c.Variants = append(c.Variants, v)
		for round := range 3 {
			by := 0.9 + 0.1*float64(round)
			p50 := int64(value * by)
			rtt := worker.RTT{Samples: 9, P50: p50, P90: 2 * p50, P99: 5 * p50, P999: 50 * p50}
			var nth []worker.Nth
			for _, n := range []int{1, 2, 10} {
				one := rtt
				one.P50 = 4 * p50 / int64(n)
				nth = append(nth, worker.Nth{Message: n, RTT: one})
			}
			c.Rows = append(c.Rows, result.Row{
				Round: round, Variant: v, Value: value * by,
				Workers: []worker.Report{{RTT: &rtt, Nth: nth, Total: 2e6}},
			})
		}
	}
	return c
}

// document has something for each plot.
func document() *result.Document {
	d := result.New(time.Unix(0, 0), machine.Facts{}, 0)
	add := func(name string, values map[string]float64) {
		d.Cases = append(d.Cases, measured(name, values))
	}
	add("msg-rtt-64", map[string]float64{"ours": 4000})
	add("msg-1m", map[string]float64{"ours": 8e9})
	add("msg-copy", map[string]float64{"in no cache": 10_000})
	add("register", map[string]float64{"4 KiB": 700})
	add("msg-overlap", map[string]float64{
		"ours": 1.5e6, "asleep meanwhile": 1.6e6, "computing meanwhile": 1.9e6,
	})
	add("msg-announce", map[string]float64{"ours": 5000, "computing meanwhile": 9000})
	add("msg-key", map[string]float64{"its key": 40, "forged keys": 30, "no key": 5})
	for n := 64; n <= 1<<20; n *= 4 {
		by := map[string]float64{"ours": 5e8, "get": 1e8, "put": 0.7e8, "frag": 4e8}
		if n <= 1024 {
			by["eager"] = 5.1e8
		}
		if n <= 196608 {
			by["provision"] = 4.9e8
		}
		for v := range by {
			by[v] *= float64(n) / (float64(n) + 60_000) * 20
		}
		add(fmt.Sprint(result.SizePrefix, n), by)
		for v := range by {
			by[v] = 8000 + float64(n)*1e9/(3*by[v]+1e9)
		}
		add(fmt.Sprint(firstPrefix, n), by)
	}
	pin := measured("msg-pin", map[string]float64{"4096": 1000, "65536": 9000, "1048576": 150_000})
	for _, n := range []int{4096, 65536, 1048576} {
		pin.At = append(pin.At, result.Point{Variant: fmt.Sprint(n), At: float64(n)})
	}
	d.Cases = append(d.Cases, pin)
	for i, name := range []string{"send-64", "goodput-1024", "goodput-4096"} {
		for _, end := range []string{"sends", "receives"} {
			parts := result.Parts{
				Kernel: 0.5 - 0.1*float64(i), Copy: 0.1 * float64(i+1), CRC: 0.1, Protocol: 0.1,
				Rounds: 0.1, Rest: 0.1,
			}
			d.Profiles = append(d.Profiles, result.Profile{Case: name, End: end, Parts: parts})
		}
	}
	return d
}

// stored writes a document as the bench does.
func stored(t *testing.T, d *result.Document) string {
	t.Helper()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "result.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestPlots draws all of them, as files that others can read.
func TestPlots(t *testing.T) {
	out := t.TempDir()
	if kept := os.Getenv("PLOTS"); kept != "" {
		out = kept // to look at them
	}
	var said bytes.Buffer
	if err := run(stored(t, document()), out, "", &said); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(said.String(), "left out") {
		t.Errorf("said %q", &said)
	}
	for _, f := range figures {
		text, err := os.ReadFile(filepath.Join(out, f.name+".png"))
		if err != nil {
			t.Fatal(err)
		}
		if picture, err := png.Decode(bytes.NewReader(text)); err != nil {
			t.Errorf("%s: %v", f.name, err)
		} else if size := picture.Bounds().Size(); size.X < 300 || size.Y < 300 {
			t.Errorf("%s is a picture of %v", f.name, size)
		}
		text, err = os.ReadFile(filepath.Join(out, f.name+".svg"))
		if err != nil {
			t.Fatal(err)
		}
		decoder := xml.NewDecoder(bytes.NewReader(text))
		for err == nil {
			_, err = decoder.Token()
		}
		if err != io.EOF {
			t.Errorf("%s.svg: %v", f.name, err)
		}
	}
}

// TestPlotsLeaveOut: what was not measured is not drawn, and that is said.
func TestPlotsLeaveOut(t *testing.T) {
	var said bytes.Buffer
	out := t.TempDir()
	empty := stored(t, result.New(time.Unix(0, 0), machine.Facts{}, 0))
	if err := run(empty, out, "", &said); err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		_, err := os.Stat(filepath.Join(out, f.name+".png"))
		drawn := err == nil
		if told := strings.Contains(said.String(), f.name+": left out"); told == drawn {
			t.Errorf("%s: drawn %v, left out %v", f.name, drawn, told)
		}
	}
	if err := run(filepath.Join(out, "none"), out, "", &said); err == nil {
		t.Error("no file, and no error")
	}
}

func TestBetween(t *testing.T) {
	line := plotter.XYs{{X: 10, Y: 100}, {X: 20, Y: 200}, {X: 40, Y: 300}}
	for x, want := range map[float64]float64{
		0: 100, 10: 100, 15: 150, 20: 200, 30: 250, 40: 300, 60: 400,
	} {
		if got := between(line, x); got != want {
			t.Errorf("between(%v) = %v, want %v", x, got, want)
		}
	}
}

// TestCrossover: the longer the link, the longer a message may be that goes sooner in a slot.
func TestCrossover(t *testing.T) {
	costs := model.Costs{Step: 4000, PerByte: 1, Copy: 0.2, Register: 700}
	last := 0
	for _, us := range []clock.Time{0, 10, 100} {
		costs.Delay = us * clock.Microsecond
		n, err := crossover(costs, mostCrossover)
		if err != nil || n <= last {
			t.Errorf("%d us: %d bytes behind %d, %v", us, n, last, err)
		}
		last = n
	}
	costs.Copy = 0 // nothing is saved by a rendezvous
	if n, err := crossover(costs, 1<<20); n != 0 || err != nil {
		t.Errorf("without the cost of a copy: %d bytes, %v", n, err)
	}
}

func TestCosts(t *testing.T) {
	costs, err := costsOf(document())
	if err != nil || costs.Step != 4000 || costs.PerByte != 1 || costs.Register != 700 {
		t.Errorf("%+v, %v", costs, err)
	}
	d := document()
	d.Cases = d.Cases[1:]
	if _, err := costsOf(d); !errors.Is(err, errMissing) {
		t.Errorf("without a half round trip: %v", err)
	}
}

func TestNames(t *testing.T) {
	for v, want := range map[float64]string{
		64: "64 B", 1024: "1 KiB", 196608: "192 KiB", 1 << 20: "1 MiB", 1 << 31: "2 GiB",
	} {
		if got := byteName(v); got != want {
			t.Errorf("byteName(%v) = %q, want %q", v, got, want)
		}
	}
	ticks := powers{4, byteName}.Ticks(math.Log2(60), math.Log2(5000))
	if len(ticks) != 4 || ticks[0].Label != "64 B" || ticks[3].Label != "4 KiB" {
		t.Errorf("ticks %+v", ticks)
	}
}
