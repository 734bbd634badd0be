package msg_test

import (
	"context"
	"fmt"
	"log"

	"xroce/engine/msg"
	"xroce/roce/mem"
)

// A counter and a text of a server, which its peers use without it.
func ExampleEndpoint_Export() {
	server, endpoint, end := twoEndpoints()
	defer end()
	listener, err := server.Listen(at)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	go func() { _, _ = listener.Accept(context.Background()) }()
	memory := make([]byte, 4096)
	export, err := server.Export("board", memory,
		mem.RemoteRead|mem.RemoteWrite|mem.RemoteAtomic)
	if err != nil {
		log.Fatal(err)
	}
	conn, err := endpoint.Dial(context.Background(), at)
	if err != nil {
		log.Fatal(err)
	}
	if err := useBoard(context.Background(), conn); err != nil {
		log.Fatal(err)
	}
	fmt.Println(export.Close()) // nobody uses it any more
	fmt.Printf("%s\n", memory[64:69])
	// Output:
	// 0, then 5: hello
	// <nil>
	// hello
}

func useBoard(ctx context.Context, conn *msg.Conn) error {
	board, err := conn.Import(ctx, "board")
	if err != nil {
		return err
	}
	first, err := board.FetchAdd(ctx, 0, 5)
	if err != nil {
		return err
	}
	if err := board.Put(ctx, 64, []byte("hello")); err != nil {
		return err
	}
	text := make([]byte, 5)
	if err := board.Get(ctx, 64, text); err != nil {
		return err
	}
	second, err := board.FetchAdd(ctx, 0, 1)
	fmt.Printf("%d, then %d: %s\n", first, second, text)
	return err
}
