package roce

// qpFlags are what is to be kept of a QP by the bit, and what RESET forgets.
type qpFlags uint8

const (
	ackPassed       qpFlags = 1 << iota // the ACK in front let a request pass
	fatal                               // EventQPFatal was raised
	ended                               // what a QP does once when it comes to ERR was done
	established                         // a request came since the connection was made
	tellDrained                         // EventSQDrained is wanted
	tellEstablished                     // EventCommEst is wanted in RTS, too
	sentRequest                         // what was written last is of a request
	sentAgain                           // it was sent before
)

// has reports whether any of the flags is set.
func (f *qpFlags) has(flags qpFlags) bool { return *f&flags != 0 }

// put sets flags, or takes them away.
func (f *qpFlags) put(flags qpFlags, on bool) {
	if *f &^= flags; on {
		*f |= flags
	}
}
