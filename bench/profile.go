package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// Where the time of a packet goes, by a profile of both ends. It is taken in a run of its own:
// what is measured is not disturbed.

// profiled are the cases of which a variant of ours has a profile: the first, or one by name.
// Each has a goal that is missed now and then.
var profiled = []struct{ name, variant string }{
	{"send-64", ""},
	{"rtt-64", ""},
	{"rtt-64", piggybacked},
	{"rpc-64", piggybacked},
	{"goodput-1024", ""},
	{"goodput-2048", ""},
	{"goodput-4096", ""},
	{"qps-64", "1 QP"},
	{"qps-64", "10000 QPs"},
}

// profileWindow is how long a profile is taken at least: it has a sample each 10 ms.
const profileWindow = 3 * time.Second

// profile adds the profiles of the cases to the document. It returns what failed.
func (b *bench) profile(ctx context.Context, d *result.Document, cases []benchCase) []error {
	var failures []error
	longer := *b
	if !b.quick {
		longer.window = max(b.window, profileWindow)
	}
	for _, w := range profiled {
		i := slices.IndexFunc(cases, func(c benchCase) bool { return c.name == w.name })
		if i < 0 || ctx.Err() != nil {
			continue
		}
		list, err := longer.profileCase(ctx, &cases[i], w.variant)
		d.Profiles = append(d.Profiles, list...)
		// A starved machine may make a connection give up.
		if err != nil && !errors.Is(err, errGaveUp) && !errors.Is(err, errNothing) {
			failures = append(failures, fmt.Errorf("profile of %s: %w", w.name, err))
		}
	}
	return failures
}

// profileCase runs a variant of a case once, with profiles; without a name the first.
func (b *bench) profileCase(
	ctx context.Context, c *benchCase, variant string,
) (list []result.Profile, err error) {
	v, name := &c.variants[0], c.name
	for i := range c.variants {
		if c.variants[i].name == variant {
			v, name = &c.variants[i], c.name+", "+strings.TrimPrefix(variant, "ours, ")
		}
	}
	options := c.stage
	options.Even = b.quick
	st, err := stage.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	file := filepath.Join(b.dir, c.name)
	files := [2]string{file + "-a.prof", file + "-b.prof"}
	run := v.run.with(func(side stage.Side, o *worker.Options) {
		o.Profile = files[side]
	})
	if _, err := run(ctx, &place{bench: b, Stage: st, c: c}); err != nil {
		return nil, err
	}
	for side, end := range []string{"sends", "receives"} {
		out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodefraction=0",
			"-nodecount=100000", files[side]).Output()
		if err != nil {
			return nil, fmt.Errorf("go tool pprof: %w", err)
		}
		parts, err := parseTop(out)
		if err != nil {
			return nil, err
		}
		list = append(list, result.Profile{Case: name, End: end, Parts: parts})
	}
	return list, nil
}

// errTop means that go tool pprof printed something else than was expected.
var errTop = errors.New("no table of go tool pprof -top")

// parseTop adds up the table of functions of go tool pprof -top by what they are for.
func parseTop(text []byte) (parts result.Parts, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	total := 0.0
	for lines.Scan() {
		// flat, its share, the sum so far, and the same with what is called, name
		f := strings.Fields(lines.Text())
		if len(f) < 6 || !strings.HasSuffix(f[1], "%") {
			continue
		}
		share, err := strconv.ParseFloat(strings.TrimSuffix(f[1], "%"), 64)
		if err != nil {
			continue // the header
		}
		total += share
		*part(&parts, f[5]) += share / 100
	}
	if err := lines.Err(); err != nil {
		return parts, err
	}
	if total < 50 || total > 101 {
		return parts, errTop
	}
	return parts, nil
}

// part is what a function is for.
func part(p *result.Parts, function string) *float64 {
	contains := func(list ...string) bool {
		return slices.ContainsFunc(list, func(one string) bool {
			return strings.Contains(function, one)
		})
	}
	switch {
	case contains("runtime/syscall", "runtime.futex", "runtime.epollwait", "vdso"),
		strings.HasPrefix(function, "syscall."):
		return &p.Kernel
	case function == "runtime.memmove":
		return &p.Copy
	case contains("/wire.crc", "/wire.icrc", "/wire.ICRC", "hash/crc32."):
		return &p.CRC
	case contains("/roce.", "/roce/"):
		return &p.Protocol
	case contains("/engine.", "/engine/", "/xsk."):
		return &p.Rounds
	}
	return &p.Rest
}
