package main

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"xroce/encap"
	"xroce/engine/gopacketlayer"
	"xroce/roce/wire"
)

// judgeByGopacket lets gopacket read the capture, the file as well as the headers up to UDP: of
// each packet that is no native one it finds the BTH that we find. It does so here and not in the
// command, which would touch six megabytes of tables each time that it starts.
func judgeByGopacket(t *testing.T, name string) {
	t.Helper()
	gopacketlayer.Register()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	source, err := pcapgo.NewNgReader(file, pcapgo.DefaultNgReaderOptions)
	if err != nil {
		t.Fatal(err)
	}
	packets, native := 0, 0
	for {
		data, _, err := source.ReadPacketData()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("packet %d: %v", packets+1, err)
		}
		packets++
		other := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.NoCopy)
		eth, ok := other.LinkLayer().(*layers.Ethernet)
		if ok && eth.EthernetType == encap.EtherTypeNative {
			native++
			continue
		}
		var p wire.Packet
		bth, ok := other.Layer(gopacketlayer.LayerTypeBTH).(*gopacketlayer.BTH)
		if r := p.Decode(data, nil); r != wire.OK || !ok || other.ErrorLayer() != nil ||
			bth.BTH != p.BTH {
			t.Errorf("packet %d: %v, of gopacket %v", packets, r, other)
		}
	}
	if packets < 1000 || native != 15 {
		t.Errorf("gopacket sees %d packets, %d of them native", packets, native)
	}
}
