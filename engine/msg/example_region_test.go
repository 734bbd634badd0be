package msg_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce/mem"
)

// A column of a matrix, 4 bytes of every 16, is sent as it is, without being packed.
func ExampleEndpoint_Region() {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		log.Fatal(err)
	}
	dev, endpoint, end1 := openDevice(network, 1)
	defer end1()
	server, end2 := openEndpoint(network, 2)
	defer end2()
	ctx := context.Background()
	listener, err := server.Listen(at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	conn, err := endpoint.Dial(ctx, at)
	if err != nil {
		log.Fatal(err)
	}
	matrix := make([]byte, 1000*16)
	for row := range 1000 {
		binary.NativeEndian.PutUint32(matrix[row*16+4:], uint32(row))
	}
	if err := sendColumn(ctx, dev, endpoint, conn, matrix); err != nil {
		log.Fatal(err)
	}
	column := make([]byte, 1000*4)
	n, _, err := server.Receive(ctx, column)
	fmt.Println(n, binary.NativeEndian.Uint32(column[999*4:]), err)
	// Output: 4000 999 <nil>
}

func sendColumn(
	ctx context.Context, dev *engine.Device, endpoint *msg.Endpoint, conn *msg.Conn, matrix []byte,
) error {
	pd := dev.AllocPD()
	whole, err := dev.RegMR(pd, matrix, mem.LocalWrite)
	if err != nil {
		return err
	}
	column, err := dev.RegIndirect(pd, 1)
	if err != nil {
		return err
	}
	err = column.ReregInterleaved(mem.ChangeTranslation, nil, 0, []uint64{1000},
		[]mem.Block{whole.Block(4, 4, 16)}) // 1000 times 4 bytes, 16 apart, the first at 4
	if err != nil {
		return err
	}
	region, err := endpoint.Region(column)
	if err != nil {
		return err
	}
	send := &msg.Send{Memory: region.Span(0, 4000)}
	if err := conn.PostSend(send); err != nil {
		return err
	}
	return send.Wait(ctx)
}
