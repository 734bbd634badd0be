// Package xsk moves Ethernet frames between queues of a network device and user
// space through AF_XDP sockets.
//
// # Background
//
// An AF_XDP socket is bound to one queue of one device. Frames live in the UMEM,
// memory that the process allocates and the kernel pins, cut into chunks of one
// size. Four rings in shared memory say who has which chunk:
//
//	Receive <-- RX ring <------+           +------- Reserve <-- completion ring
//	   |                       |           |                          ^
//	   v                     kernel        v                        kernel
//	(caller)                   ^        (caller)                      ^
//	   |                       |           |                          |
//	Release --> fill ring -----+        Transmit --> TX ring --(Flush)+
//
// Which received frames come here is decided by an XDP program on the device that
// redirects into an XSKMAP; package bpf has one, this package only needs its FD
// to be put there. A program that redirects everything takes the queue away from
// the rest of the machine, ARP and SSH included. Zero-copy mode may hand all
// memory of the UMEM to the device.
//
// Frame bytes are copied once by the kernel in copy mode and not at all in
// zero-copy mode. Nothing is copied here: the slices point into the UMEM.
//
// # Rings
//
//	ring        entries     producer  consumer  here
//	fill        addresses   we        kernel    Open, Release, completion of Forward
//	RX          descriptors kernel    we        Receive
//	TX          descriptors we        kernel    Transmit, Forward
//	completion  addresses   kernel    we        Reserve, Flush
//
// Index words are free-running 32-bit counts, read and written with sync/atomic;
// ring.go says why that order is enough. Each ring has a slot for every chunk
// that can be in it, so none overflows and the completion ring never stops the
// kernel.
//
// # Several queues
//
// A Group is a socket on each of several queues of a device, over one UMEM. Each has all four
// rings but for sending, which is done on the first queue alone; each has a part of the receive
// frames for good.
//
// # Ownership
//
// A chunk has one owner, kept in a byte and checked at each move:
//
//	           Reserve            Transmit             completion
//	free (TX) ---------> caller ------------> kernel -------------> free
//	               ^       | Return
//	               +-------+
//	           Open               Receive              Release
//	free (RX) ---------> kernel ------------> caller -------------> kernel
//	                       ^                    | Forward
//	                       +---- completion ----+
//
// Receive and transmit chunks are apart for good, so that neither direction
// starves the other. Giving a frame back twice, or sending one that was given
// back, panics: the alternative is silent corruption. Entries of the kernel that
// contradict the owners are ignored and counted in Stats.KernelFaults.
//
// With multi-buffer a transmit frame is two adjacent chunks, so its Data is
// contiguous and a second descriptor is used only for frames longer than a chunk.
// A received frame that outgrew a chunk comes as Head and Tail.
//
// # System calls
//
//	Open      socket, setsockopt, getsockopt, mmap, madvise, eventfd, bind
//	Flush     sendto, only when frames are queued and the ring asks for it
//	Receive   none; recvfrom when there is nothing and the driver asks for it
//	Reserve   none; sendto when there is nothing and a zero-copy driver sleeps
//	Release, Transmit, Return, Forward, Pending, Info   none
//	Wait      ppoll, and recvfrom after a time-out, read after a Wake
//	Wake      none; write when a Wait is sleeping
//	Stats     getsockopt
//	Close     munmap, close
//
// # Privileges
//
//	CAP_NET_RAW     the socket
//	CAP_IPC_LOCK    more UMEM than the locked-memory limit
//	CAP_NET_ADMIN   BusyPoll; SndBuf above net.core.wmem_max; the XDP program
//
// # Concurrency
//
// One goroutine at a time drives a socket, best one that is locked to its thread,
// and another may wait beside it; see Link. Send calls are raw system calls of
// bounded length, which a garbage collection waits for; see Kernel.Send.
//
// # Defaults
//
//	chunk        4096 bytes; a frame of up to 3840 bytes fits one
//	RxFrames     12288   48 MiB
//	FillTarget   RxFrames
//	TxFrames     2048    8 MiB, 16 MiB with multi-buffer
//	TxBudget     128 descriptors a send call
//	Mode         zero-copy if the driver can, reported in Info.ZeroCopy
//	MultiBuffer  if the MTU plus headers exceeds one chunk
//	BindTimeout  20 s
//
// # What is promised, and the test that holds it
//
//	indices wrap at 2^32                            TestRingIsAQueue
//	entries are visible before the index            TestRingAcrossThreads (-race)
//	no chunk is lost or doubled                     TestConservation
//	both ends at once, every byte                   TestTwoThreads, TestVethIntegrity
//	a late kernel index costs nothing               TestTransmitBehindStaleIndex
//	a held frame is not received into               TestHeldFrameIsNotReused
//	the kernel has few frames while those suffice   TestFewFrames, TestMoreFrames,
//	                                                TestKeptFrames, TestRaiseFillTarget
//	a frame is handed out once                      TestReserveIsExclusive
//	misuse is noticed                               TestOwnership
//	impossible kernel entries are ignored           TestKernelFaults
//	a failed Open leaves nothing                    TestOpenFailsAtEachCall,
//	                                                TestVethOpenFailsAtEachCall
//	Close frees the queue, fds and mappings         TestVethOpenClose
//	a taken queue is named with its holder          TestVethQueueTaken
//	a queue that nobody holds is waited for longer  TestOpenWaitsForTheKernel
//	a killed owner's queue can be had               TestVethOwnerKilled
//	one Flush sends more than one call's budget     TestFlushManyFrames,
//	                                                TestVethManyFramesOneFlush
//	each errno of a send call has its reaction      TestFlushErrors
//	EBUSY is one lost frame; each loss is counted   TestVethBusyIsLoss,
//	                                                TestVethEveryLossIsCounted
//	link down loses nothing that is queued          TestVethLinkDown
//	a deleted device is an error                    TestVethDeviceDeleted
//	kernel drops move the right counter             TestVethFillRingEmpty,
//	                                                TestVethRxRingFull, TestVethFrameTooLong
//	frames of two chunks, also across batches       TestVethMultiBuffer, TestReceiveMultiBuffer
//	frames of more are dropped and counted          TestVethOversize, TestReceiveOversize
//	forwarded frames go back to the fill ring       TestForward, TestVethForward
//	Wait touches no ring                            TestWaitTouchesNoRing,
//	                                                TestWaitBeside (-race), TestVethWaitBeside
//	no wake-up is lost                              TestWakeBeforeWait, TestWakeEndsWait,
//	                                                TestVethWake
//	no allocation on the data path                  TestNoAllocations, TestVethNoAllocations
//	errors are found by errors.Is                   TestOpenErrors, TestVethErrors
//	another implementation understands us           TestCrossBothWays (package asavie)
//
// # Environment
//
// Tests that need root skip without it and say so; with XROCE_ROOT_TESTS=1 they
// fail instead.
package xsk
