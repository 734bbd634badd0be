package demo

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"xroce/encap"
	"xroce/engine/gopacketlayer"
	"xroce/roce/wire"
)

// TestGopacketReadsTheCapture: gopacket reads the file as well as the headers up to UDP, and of
// each packet that is no native one it finds the BTH that we find. It is linked to this test and
// not to the command or its tests, whose processes would touch six megabytes of tables as they
// start.
func TestGopacketReadsTheCapture(t *testing.T) {
	name := filepath.Join(t.TempDir(), "demo.pcapng")
	report, err := Run(t.Context(), Options{
		Simulated: true, Sizes: []int{64}, CellTime: time.Millisecond, FileSize: 100_000,
		Capture: name,
	})
	if err != nil || len(report.Failures) > 0 {
		t.Fatalf("%v, %q", err, report.Failures)
	}
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
	if packets < 500 || packets != report.Capture.Packets || native != 15 {
		t.Errorf("gopacket sees %d packets of %d, %d of them native", packets,
			report.Capture.Packets, native)
	}
}
