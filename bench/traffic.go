package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// xroce pktgen and xroce sink, as people run them: whether the rate is kept that was asked for,
// and whether each frame is accounted for.

// sinkReport is what is read of the JSON of xroce sink.
type sinkReport struct {
	Received uint64
	Kernel   struct {
		Dropped  uint64 `json:"rx_dropped"`
		RingFull uint64 `json:"rx_ring_full"`
	}
}

// traffic sends from xroce pktgen on A to xroce sink on B, which ends when the flows have.
func (p *place) traffic(ctx context.Context, more ...string) (
	sent pktgenReport, got sinkReport, err error,
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path, _ := p.command()
	reader := p.Command(ctx, stage.B, path, "sink", "-d", p.Interface(stage.B), "--json")
	var text, complaints bytes.Buffer
	reader.Stdout = &text
	stderr, err := reader.StderrPipe()
	if err == nil {
		err = reader.Start()
	}
	if err != nil {
		return sent, got, fmt.Errorf("xroce sink: %w", err)
	}
	lines := bufio.NewScanner(stderr)
	ready := lines.Scan() && strings.Contains(lines.Text(), "ready")
	if !ready {
		complaints.WriteString(lines.Text())
		err = errors.New("it is not ready")
	} else if err = p.Settle(ctx); err == nil {
		sent, err = p.generates(ctx, more...)
	}
	if err != nil {
		cancel()
	}
	_, _ = io.Copy(&complaints, stderr) // until it ends
	if ended := reader.Wait(); err == nil && ended != nil {
		err = fmt.Errorf("xroce sink: %w", ended)
	}
	if err == nil {
		err = json.Unmarshal(text.Bytes(), &got)
	}
	if err != nil {
		return sent, got, fmt.Errorf("pktgen and sink: %w: %s", err, complaints.Bytes())
	}
	return sent, got, nil
}

// generates runs xroce pktgen for a window.
func (p *place) generates(ctx context.Context, more ...string) (r pktgenReport, err error) {
	cmd := p.Command(ctx, stage.A, p.pktgen(p.window, more...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		return r, fmt.Errorf("xroce pktgen: %w: %s", err, stderr.Bytes())
	}
	if r.Sent == 0 || r.Seconds == 0 {
		return r, errNothing
	}
	return r, nil
}

// workers are the two ends as rows have them.
func ends(sent *pktgenReport, got *sinkReport) []worker.Report {
	return []worker.Report{
		{
			Packets: sent.Sent, Total: sent.Sent, Seconds: sent.Seconds, Mode: "xroce pktgen",
			Counters: map[string]uint64{"tx_dropped": sent.Dropped},
		},
		{
			Packets: got.Received, Total: got.Received, Seconds: sent.Seconds, Mode: "xroce sink",
			Counters: map[string]uint64{
				"rx_dropped": got.Kernel.Dropped, "rx_ring_full": got.Kernel.RingFull,
			},
		},
	}
}

// ratesAsked are rates in packets a second; 0 stands for eight tenths of the largest.
var ratesAsked = []struct {
	name string
	rate float64
}{
	{result.Rate1k, 1e3}, {result.Rate10k, 1e4}, {result.Rate100k, 1e5}, {result.RateMost, 0},
}

// rateCases measure whether xroce pktgen keeps the rate that it is asked for.
func rateCases() []benchCase {
	c := benchCase{
		name: result.RateCase, title: "frames of 64 bytes at a rate", unit: "of the rate asked for",
		lossless: true, full: true, maxRounds: 5,
		stage: stage.Options{MTU: 1500, Threaded: true}, sockets: rawSockets(shortLength),
	}
	for _, asked := range ratesAsked {
		c.variants = append(c.variants, variant{
			name: asked.name, needs: []backend{command}, at: asked.rate, run: paced(asked.rate),
		})
	}
	c.control, c.reference = c.variants[0].name, c.variants[0].name
	return []benchCase{c}
}

// mostOf is the share of the largest rate that is to be kept.
const mostOf = 0.8

// paced measures what was sent of what was asked for.
func paced(rate float64) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		asked := rate
		if asked == 0 {
			most, _, err := p.traffic(ctx)
			if err != nil {
				return measurement{}, err
			}
			asked = mostOf * float64(most.Sent) / most.Seconds
		}
		sent, got, err := p.traffic(ctx, "--rate", fmt.Sprintf("%.0fpps", asked))
		if err != nil {
			return measurement{}, err
		}
		return measurement{
			value: float64(sent.Sent) / sent.Seconds / asked, loss: loss(sent.Sent, got.Received),
			workers: ends(&sent, &got),
		}, nil
	}
}

// sinkCases measure whether each frame that was sent was received, or counted as lost by the
// kernel: by the sender's interface, or at the socket of xroce sink. The pair is as veth makes it,
// where a full ring drops.
func sinkCases() []benchCase {
	c := benchCase{
		name: result.SinkCase, title: "frames received or counted as lost, of those sent",
		unit: "of the frames sent", full: true, maxRounds: 5,
		stage: stage.Options{MTU: 1500, Untuned: true}, sockets: rawSockets(shortLength),
		control: result.SinkSlow, reference: result.SinkSlow,
	}
	for _, v := range []struct {
		name string
		more []string
	}{
		{result.SinkFast, nil},
		{result.SinkSlow, []string{"--rate", "10kpps"}},
		{result.SinkBursts, []string{"--rate", "100kpps", "--burst", "4096"}},
	} {
		c.variants = append(c.variants, variant{
			name: v.name, needs: []backend{command},
			run: func(ctx context.Context, p *place) (measurement, error) {
				sent, got, err := p.traffic(ctx, v.more...)
				if err != nil {
					return measurement{}, err
				}
				counted := sent.Dropped + got.Kernel.Dropped + got.Kernel.RingFull
				return measurement{
					value:   float64(got.Received+counted) / float64(sent.Sent),
					loss:    loss(sent.Sent, got.Received),
					workers: ends(&sent, &got),
				}, nil
			},
		})
	}
	return []benchCase{c}
}
