package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// cSources are the peers in C. They travel inside the binary, so that it does not
// matter where it is started.
//
//go:embed cpeer/*.c cpeer/*.h
var cSources embed.FS

// peers are the built C peers. A peer that could not be built has a reason
// instead of a path.
type peers struct {
	cpeer, udppeer               string
	cpeerMissing, udppeerMissing string
}

// buildPeers compiles the C peers into dir with gcc against the distribution's
// libraries. extra are more flags for the compiler.
func buildPeers(ctx context.Context, dir string, extra ...string) (peers, error) {
	entries, err := cSources.ReadDir("cpeer")
	if err != nil {
		return peers{}, fmt.Errorf("peers: %w", err)
	}
	for _, e := range entries {
		text, err := cSources.ReadFile("cpeer/" + e.Name())
		if err != nil {
			return peers{}, fmt.Errorf("peers: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), text, 0o600); err != nil {
			return peers{}, fmt.Errorf("peers: %w", err)
		}
	}
	p := peers{cpeer: filepath.Join(dir, "cpeer"), udppeer: filepath.Join(dir, "udppeer")}
	p.cpeerMissing = compile(ctx, dir, append(extra, "-o", p.cpeer,
		"cpeer.c", "xsk.c", "peer.c", "cost.c", "-lxdp", "-lbpf"))
	if p.cpeerMissing != "" {
		p.cpeerMissing = "needs gcc, libxdp-dev and libbpf-dev: " + p.cpeerMissing
	}
	p.udppeerMissing = compile(ctx, dir, append(extra, "-o", p.udppeer,
		"udppeer.c", "peer.c", "cost.c"))
	if p.udppeerMissing != "" {
		p.udppeerMissing = "needs gcc: " + p.udppeerMissing
	}
	return p, nil
}

// compile returns what went wrong, in one line, or "".
func compile(ctx context.Context, dir string, args []string) string {
	cmd := exec.CommandContext(ctx, "gcc", append([]string{"-O2", "-Wall", "-Wextra"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "error") || strings.Contains(line, "cannot find") {
			return strings.TrimSpace(line)
		}
	}
	return err.Error()
}

// missing says why a backend cannot run here, or "".
func (b *bench) missing(who backend) string {
	switch who {
	case libxdp:
		return b.peers.cpeerMissing
	case sockets:
		return b.peers.udppeerMissing
	case iperf3:
		return iperfMissing()
	case ucx:
		return ucxMissing()
	case tshark:
		return programMissing("tshark", "tshark")
	case capinfos:
		return programMissing("capinfos", "wireshark-common")
	case command:
		_, why := b.command()
		return why
	case ram:
		_, why := b.ram.open()
		return why
	case testpmd:
		return b.testpmdMissing()
	}
	return tunnelMissing(who)
}
