package main

import (
	"context"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"xroce/bench/load"
	"xroce/bench/stage"
	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// Tunnels of others.

// linkMissing says why the kernel makes no interface of a type, or "". It tries, in a namespace
// that goes with the command.
func linkMissing(kind string, more ...string) string {
	args := append([]string{"-n", "ip", "link", "add", "xr9", "type", kind}, more...)
	out, err := exec.Command("unshare", args...).CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("the kernel makes no %s: %s", kind,
		strings.Join(strings.Fields(string(out)+" "+err.Error()), " "))
}

// What the kernel has does not change meanwhile.
var (
	vxlanMissing = sync.OnceValue(func() string {
		return linkMissing("vxlan", "id", "7", "remote", "192.0.2.2", "dstport", "4789")
	})
	greMissing = sync.OnceValue(func() string {
		return linkMissing("gretap", "local", "192.0.2.1", "remote", "192.0.2.2")
	})
	wireGuardMissing = sync.OnceValue(func() string {
		if why := programMissing("wg", "wireguard-tools"); why != "" {
			return why
		}
		return linkMissing("wireguard")
	})
)

// programMissing says that a program is not there, and the package of Debian that has it, or "".
func programMissing(name, pkg string) string {
	if _, err := exec.LookPath(name); err != nil {
		return fmt.Sprintf("needs %s (Debian: apt-get install %s)", name, pkg)
	}
	return ""
}

// tunnelMissing says why a tunnel of others cannot run here, or "".
func tunnelMissing(who backend) string {
	switch who {
	case kernelVXLAN:
		return vxlanMissing()
	case kernelGRE:
		return greMissing()
	case kernelWireGuard:
		return wireGuardMissing()
	case openVPN:
		return programMissing("openvpn", "openvpn")
	case tinc:
		return programMissing("tincd", "tinc")
	case n2n:
		return programMissing("edge", "n2n")
	case vpnCloud:
		return "there is no package of Debian with vpncloud"
	}
	return ""
}

// both is done on each side.
func both(do func(stage.Side) error) error {
	return errors.Join(do(stage.A), do(stage.B))
}

// kernelTunnel joins by an interface of the kernel. Each line is a command, in which words like
// LOCAL stand for what differs; more are such words and what they stand for.
func kernelTunnel(more func(stage.Side) []string, lines ...string) joint {
	return func(ctx context.Context, p *place) (parting, error) {
		leave := func() ([]worker.Report, error) {
			ctx := context.WithoutCancel(ctx) // it may have ended
			return nil, both(func(side stage.Side) error {
				return p.Inside(ctx, side, "ip", "link", "del", load.InsideName)
			})
		}
		return leave, both(func(side stage.Side) error {
			pairs := []string{
				"INSIDE", load.InsideName, "OUTSIDE", p.Interface(side),
				"LOCAL", p.Address(side).String(), "REMOTE", p.Address(stage.B - side).String(),
			}
			if more != nil {
				pairs = append(pairs, more(side)...)
			}
			words := strings.NewReplacer(pairs...)
			for _, line := range lines {
				err := p.Inside(ctx, side, strings.Fields(words.Replace(line))...)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// Tunnels of the kernel, each with the MTU that it takes for itself.
var (
	vxlan = kernelTunnel(nil,
		"ip link add INSIDE type vxlan id 7 local LOCAL remote REMOTE dstport 4789 dev OUTSIDE",
		"ip link set INSIDE up")
	gretap = kernelTunnel(nil,
		"ip link add INSIDE type gretap local LOCAL remote REMOTE dev OUTSIDE",
		"ip link set INSIDE up")
)

// wireGuard is kernelTunnel with new keys.
func wireGuard(ctx context.Context, p *place) (parting, error) {
	var public [2]string
	err := both(func(side stage.Side) error {
		key, err := ecdh.X25519().GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		public[side] = base64.StdEncoding.EncodeToString(key.PublicKey().Bytes())
		return os.WriteFile(filepath.Join(p.dir, fmt.Sprint("wg-", side)),
			[]byte(base64.StdEncoding.EncodeToString(key.Bytes())), 0o600)
	})
	if err != nil {
		return nil, err
	}
	return kernelTunnel(func(side stage.Side) []string {
		return []string{
			"PRIVATE", filepath.Join(p.dir, fmt.Sprint("wg-", side)),
			"PUBLIC", public[stage.B-side],
		}
	},
		"ip link add INSIDE type wireguard",
		"wg set INSIDE private-key PRIVATE listen-port 51820 peer PUBLIC allowed-ips 0.0.0.0/0"+
			" endpoint REMOTE:51820",
		"ip link set INSIDE up")(ctx, p)
}

// madeLimit is how long a program may take to make its interface.
var madeLimit = timeout.Scaled(10 * time.Second)

// daemons joins by a program on each side, and waits until both have made their interfaces.
func daemons(ctx context.Context, p *place, argv func(stage.Side) []string, more ...*exec.Cmd) (
	leave parting, err error,
) {
	ctx, cancel := context.WithCancel(ctx)
	cmds := append(more, p.Command(ctx, stage.A, argv(stage.A)...),
		p.Command(ctx, stage.B, argv(stage.B)...))
	started := 0
	said := make([]strings.Builder, len(cmds))
	leave = func() ([]worker.Report, error) {
		cancel()
		for _, cmd := range cmds[:started] {
			_ = cmd.Process.Kill() // those before ours have another context
			_ = cmd.Wait()         // ended by that
		}
		return nil, nil
	}
	for i, cmd := range cmds {
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		cmd.WaitDelay = time.Second
		if err := cmd.Start(); err != nil {
			return leave, err
		}
		started++
	}
	making, done := context.WithTimeout(ctx, madeLimit)
	defer done()
	err = both(func(side stage.Side) error { return awaitInterface(making, p, side) })
	if err != nil {
		_, _ = leave()
		return nil, fmt.Errorf("%w; %q, %q", err, said[started-2].String(),
			said[started-1].String())
	}
	return leave, nil
}

// awaitInterface sets the interface of a side up as soon as it is there.
func awaitInterface(ctx context.Context, p *place, side stage.Side) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := p.Inside(ctx, side, "ip", "link", "set", load.InsideName, "up")
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return err
		}
	}
}

// joinOpenVPN joins by OpenVPN, point to point: each end knows the fingerprint of the other's
// certificate, and they agree on AES-256-GCM.
func joinOpenVPN(ctx context.Context, p *place) (parting, error) {
	var prints [2]string
	file := func(side stage.Side, what string) string {
		return filepath.Join(p.dir, fmt.Sprintf("openvpn-%s-%s", side, what))
	}
	err := both(func(side stage.Side) (err error) {
		prints[side], err = certificate(file(side, "cert"), file(side, "key"))
		return err
	})
	if err != nil {
		return nil, err
	}
	return daemons(ctx, p, func(side stage.Side) []string {
		role := []string{"--tls-client"}
		if side == stage.B {
			role = []string{"--tls-server", "--dh", "none"}
		}
		return append([]string{
			"openvpn", "--dev", load.InsideName, "--dev-type", "tap", "--proto", "udp4",
			"--local", p.Address(side).String(), "--remote", p.Address(stage.B - side).String(),
			"--port", "1194", "--cert", file(side, "cert"), "--key", file(side, "key"),
			"--peer-fingerprint", prints[stage.B-side], "--data-ciphers", "AES-256-GCM",
			"--disable-dco", "--fast-io", "--verb", "1",
		}, role...)
	})
}

// certificate writes a key and a certificate for it, and returns the fingerprint of that.
func certificate(certName, keyName string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour),
	}
	form.Subject.CommonName = "bench"
	cert, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(cert)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":"), errors.Join(
		writePEM(certName, "CERTIFICATE", cert), writePEM(keyName, "PRIVATE KEY", private))
}

func writePEM(name, kind string, b []byte) error {
	return os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600)
}

// joinTinc joins by tinc, as a switch, with the ciphers that it has by default.
func joinTinc(ctx context.Context, p *place) (parting, error) {
	dir := func(side stage.Side) string { return filepath.Join(p.dir, "tinc-"+side.String()) }
	if _, err := os.Stat(dir(stage.B)); errors.Is(err, os.ErrNotExist) {
		if err := tincFiles(p, dir); err != nil {
			return nil, err
		}
	}
	return daemons(ctx, p, func(side stage.Side) []string {
		return []string{"tincd", "-c", dir(side), "-D", "--pidfile", dir(side) + "/pid"}
	})
}

// tincFiles writes the configuration of both ends.
func tincFiles(p *place, dir func(stage.Side) string) error {
	return both(func(side stage.Side) error {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return err
		}
		private, host := filepath.Join(dir(side), "rsa_key.priv"), []byte(fmt.Sprintf(
			"Address = %s\n", p.Address(side)))
		host = append(host, pem.EncodeToMemory(&pem.Block{
			Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&key.PublicKey),
		})...)
		var errs []error
		for end := range stage.B + 1 {
			errs = append(errs, os.MkdirAll(filepath.Join(dir(end), "hosts"), 0o700),
				os.WriteFile(filepath.Join(dir(end), "hosts", side.String()), host, 0o600))
		}
		text := fmt.Sprintf("Name = %s\nConnectTo = %s\nMode = switch\nDeviceType = tap\n"+
			"Interface = %s\nAddressFamily = ipv4\n", side, stage.B-side, load.InsideName)
		return errors.Join(append(errs,
			writePEM(private, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)),
			os.WriteFile(filepath.Join(dir(side), "tinc.conf"), []byte(text), 0o600))...)
	})
}

// joinN2N joins by n2n: an edge on each side, and a supernode on B, by which they find each other.
func joinN2N(ctx context.Context, p *place) (parting, error) {
	const port = "7654"
	super := p.Command(context.WithoutCancel(ctx), stage.B, "supernode", "-l", port)
	return daemons(ctx, p, func(side stage.Side) []string {
		return []string{
			"edge", "-d", load.InsideName, "-a", insideAddress(side).String(), "-s",
			"255.255.255.0", "-c", "bench", "-k", "secret", "-l",
			p.Address(stage.B).String() + ":" + port,
		}
	}, super)
}
