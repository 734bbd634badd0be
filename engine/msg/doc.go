// Package msg sends messages of any size between devices, over connections of package cm: the
// machine of package roce/msg with a device, its memory and its connection manager.
//
//	endpoint, err := msg.Open(dev, manager, msg.Options{})
//	// One end:
//	listener, err := endpoint.Listen(netip.MustParseAddrPort("0.0.0.0:7471"))
//	conn, err := listener.Accept(ctx)
//	n, err := conn.Receive(ctx, buf)
//	// The other:
//	conn, err := endpoint.Dial(ctx, addr)
//	err = conn.Send(ctx, data)
//
// How a message travels is chosen for each: see roce/msg. Memory needs no registration by the
// caller; what is sent is not to be changed until Send returns.
//
// # Names
//
// What others call the same:
//
//	PostSend, Send.Wait      MPI_Isend, MPI_Wait     ucp_tag_send_nbx    fi_tsendv
//	Send with Matched        MPI_Ssend               ..._sync_nbx        FI_MATCH_COMPLETE
//	Inject                   -                       -                   fi_tinject
//	PostReceive              MPI_Irecv               ucp_tag_recv_nbx    fi_trecvv
//	Probe, TryProbe          MPI_Probe, MPI_Iprobe   ucp_tag_probe_nb    FI_PEEK
//	Claim, TryClaim          MPI_Mprobe, MPI_Improbe ..., remove = 1     FI_PEEK with FI_CLAIM
//	Message.Receive          MPI_Mrecv               ucp_tag_msg_recv_nbx FI_CLAIM
//	Send.Cancel              MPI_Cancel              ucp_request_cancel  fi_cancel
//	SendActive, Handle       -                       ucp_am_send_nbx     -
//	Flush                    -                       ucp_ep_flush_nbx    -
//	Send.Fence               -                       ucp_worker_fence    FI_FENCE
//	EventFD, TakeEvents      -                       ucp_worker_get_efd  fi_control, FI_GETWAIT
//	Send.Memory of a layout  MPI_Type_vector         ucp_dt_create_generic fi_sendv
//	Export, Import           MPI_Win_create          ucp_rkey_pack, ..._unpack fi_mr_reg
//	Remote.Put, Get          MPI_Put, MPI_Get        ucp_put_nbx, ucp_get_nbx fi_write, fi_read
//	Remote.FetchAdd          MPI_Fetch_and_op        ucp_atomic_op_nbx   fi_fetch_atomic
//	Remote.CompareSwap       MPI_Compare_and_swap    ucp_atomic_op_nbx   fi_compare_atomic
//	Close, Abort             MPI_Comm_disconnect     ucp_ep_close_nbx    fi_shutdown
//
// The 64 bits of a tag go with the message and are told to who receives it, under any mask: they
// are its immediate data, too. A receive that is shorter than its message gets the first part and
// ErrTruncated.
//
// # When a message is complete
//
// Send.Level says it: Buffered, when its memory may be used again; Transmitted, when the peer's
// device has it; Delivered, when it was taken out of the slots there, or is in its place; Matched,
// when a receive was there for it. Each includes those before it. Flush waits for Transmitted of
// all that was posted before. Messages that nobody asks for are kept at the receiver up to
// msg.Config.Unexpected bytes of each peer; then they stay in their slots, which are not
// given back, so that the sender waits: memory at the receiver does not grow.
//
// # Memory of the peer
//
// Who exports memory by a name lets its peers read and write it, and do atomics there, without
// being asked each time: Endpoint.Export, Conn.Import. That goes by the queue pairs of messages,
// but in no order with these: a call returns when it is done, and what is sent then finds it done.
// Memory of each peer has keys of its own, so no peer can use those of another one.
//
// # Memory that is registered
//
// A message can be sent from memory that the caller has registered, and received there, without
// being packed or registered again: a layout, or memory with on-demand paging, also all that the
// process has. See Endpoint.Region, Send.Memory and Receive.Memory.
//
// # Order
//
// Messages of a connection are matched in the order in which they were posted, whatever protocol
// each takes and whatever their tags: a receive takes the first one that fits, of several receives
// the one that was posted first. They need not be complete in that order, since a long one takes
// longer; Send.Fence has a message wait for those before it. Posts of several goroutines are in
// some order, that of the endpoint's lock: who wants a certain one has one post return before the
// next begins. There is no order between connections, nor between receives and handlers of active
// messages, which are called in the order of the posts of each peer. Results, such as
// Receive.Length, may be read by any goroutine once Wait has returned or Done is closed.
//
// # Waiting
//
// To wait for one of many things, or to be woken by a select, there is Done, of a Send, a Receive
// and a Conn; these are channels, and a goroutine that waits costs no thread. Who has a loop of
// poll(2) or epoll has a descriptor for it: Endpoint.EventFD.
//
// # The end
//
// A context that ends takes back what waited for it: Conn.Send and Receive.Wait return when the
// memory is the caller's again, after Options.CancelTimeout at the latest and then at the price
// of the connection. Conn.Close sends what was posted and waits for the peer to close;
// Conn.Abort ends it at once. Conn.Done and Conn.Err tell of each peer when and why it has ended,
// also of one that is dead and to which nobody sends: see Options.Machine.
//
// # Streams
//
// A Stream is a net.Conn, a StreamListener a net.Listener, for programs that want bytes:
//
//	listener, err := endpoint.ListenStream(netip.MustParseAddrPort("0.0.0.0:7471"))
//	err = server.Serve(listener)
//	// The other end:
//	client := http.Client{Transport: &http.Transport{DialContext: endpoint.DialContext}}
//
// Who writes copies into memory that goes to the peer as it is, who reads copies out of the
// memory where it arrived; ReadFrom and WriteTo lend that memory to a reader or a writer. It is all
// that a stream has: when the peer does not read, Write waits. A stream has the goroutine of its
// connection and no other. A peer that is silent because it is gone is noticed by who writes, and
// by who reads after Options.Machine.Keepalive and what its device needs to give the peer up.
//
// # Rails
//
// An endpoint that OpenRails makes has several devices, and so have its connections: long
// messages take all of them, and when one is lost the others go on.
//
//	endpoint, err := msg.OpenRails(msg.Options{}, msg.Rail{dev0, m0}, msg.Rail{dev1, m1})
//	conn, err := endpoint.Dial(ctx, addr0, addr1)
//
// # Who drives
//
// An Endpoint is an engine.Service: the device calls it when work is complete and when it is
// time, also while the application computes or sleeps. It has a lock, which is taken before
// those of the device, and one goroutine of its own, which registers memory, so that no
// connection waits for that of another. All methods are safe for concurrent use.
//
// Who calls does that work by itself where it can: who posts a message registers what that needs,
// and who waits, for a message or in a stream, takes completions for Options.Spin before it sleeps.
// On a device in direct mode it moves the packets, too. To post many short messages, PostSends and
// PostReceives cost less than a call for each.
package msg
