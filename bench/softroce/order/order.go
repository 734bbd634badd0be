package order

// Port is the name of the virtio-serial port.
const Port = "xroce.agent"

// An Order is a line from the host to the agent.
type Order struct {
	// ID names a command. The host chooses it, and never twice.
	ID int `json:"id"`
	// Start is a shell command to start.
	Start string `json:"start,omitempty"`
	// Signal is sent to the command and all that it started, 0 for none.
	Signal int `json:"signal,omitempty"`
}

// A Notice is a line from the agent to the host.
type Notice struct {
	// ID is that of the order. 0 is the agent itself: it is ready.
	ID int `json:"id"`
	// Output is a piece of what the command wrote to stdout and stderr.
	Output []byte `json:"output,omitempty"`
	// Ended says that there will be no more; Status then is the exit status, or
	// 128 and the number of the signal that ended the command.
	Ended  bool `json:"ended,omitempty"`
	Status int  `json:"status,omitempty"`
}
