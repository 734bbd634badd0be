package gopacketlayer_test

import (
	"encoding/hex"
	"fmt"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"xroce/engine/gopacketlayer"
)

func Example() {
	gopacketlayer.Register()

	// A NAK of a Soft-RoCE host: memory that the requester may not touch.
	frame, _ := hex.DecodeString("020000000002020000000001" + "0800" +
		"4500003012354000401100000a0000010a000002" + "c12312b7001c0000" +
		"1100ffff0000001200000064" + "62000007" + "00000000")

	packet := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
	for _, layer := range packet.Layers() {
		fmt.Println(layer.LayerType())
	}
	aeth := packet.Layer(gopacketlayer.LayerTypeAETH).(*gopacketlayer.AETH)
	fmt.Println(aeth)
	bth := packet.Layer(gopacketlayer.LayerTypeBTH).(*gopacketlayer.BTH)
	fmt.Printf("%s to QP 0x%06x\n", bth.Opcode, bth.DestQP)
	// Output:
	// Ethernet
	// IPv4
	// UDP
	// BTH
	// AETH
	// aeth.syndrome=NAK(remote_access_error) msn=7
	// RC_ACK to QP 0x000012
}
