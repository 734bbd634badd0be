package load

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/roce/wire"
)

var (
	macA, macB = [6]byte{2, 0, 0, 0, 0, 1}, [6]byte{2, 0, 0, 0, 0, 2}
	ipA, ipB   = [4]byte{192, 0, 2, 1}, [4]byte{192, 0, 2, 2}
)

// frame is a whole frame of size bytes.
func frame(size int) []byte {
	b := make([]byte, size)
	copy(b, Header(size, macB, macA, ipA, ipB))
	return b
}

func TestHeader(t *testing.T) {
	for _, size := range []int{64, 1500, 4174} {
		packet := gopacket.NewPacket(frame(size), layers.LayerTypeEthernet, gopacket.Default)
		if err := packet.ErrorLayer(); err != nil {
			t.Fatalf("%d bytes: %v", size, err.Error())
		}
		eth := packet.Layer(layers.LayerTypeEthernet).(*layers.Ethernet)
		ip := packet.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		udp := packet.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !bytes.Equal(eth.DstMAC, macB[:]) || !bytes.Equal(eth.SrcMAC, macA[:]) {
			t.Errorf("%d bytes: from %v to %v", size, eth.SrcMAC, eth.DstMAC)
		}
		if !ip.SrcIP.Equal(ipA[:]) || !ip.DstIP.Equal(ipB[:]) || int(ip.Length) != size-14 {
			t.Errorf("%d bytes: IPv4 %v to %v, length %d", size, ip.SrcIP, ip.DstIP, ip.Length)
		}
		if udp.DstPort != 4791 || int(udp.Length) != size-34 {
			t.Errorf("%d bytes: UDP port %d, length %d", size, udp.DstPort, udp.Length)
		}
		if sum := ones(frame(size)[14:34]); sum != 0xffff {
			t.Errorf("%d bytes: the IPv4 header sums to %#x, want 0xffff", size, sum)
		}
	}
}

func TestReflect(t *testing.T) {
	b := frame(64)
	reflect(b)
	want := frame(64)
	copy(want, Header(64, macA, macB, ipB, ipA))
	if !bytes.Equal(b, want) {
		t.Errorf("reflected % x\nwant      % x", b[:headersLen], want[:headersLen])
	}
	if binary.BigEndian.Uint16(b[24:]) != binary.BigEndian.Uint16(frame(64)[24:]) {
		t.Error("the checksum changed")
	}
}

func TestPathMTU(t *testing.T) {
	for size, want := range map[int]wire.MTU{
		4096 + RCOverhead: wire.MTU4096, 4095 + RCOverhead: wire.MTU2048,
		2048 + RCOverhead: wire.MTU2048, 1024 + RCOverhead: wire.MTU1024,
		64 + RCOverhead: wire.MTU256,
	} {
		if got := pathMTU(size); got != want {
			t.Errorf("frames of %d bytes: path MTU %v, want %v", size, got, want)
		}
	}
}
