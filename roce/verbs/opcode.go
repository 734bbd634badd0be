package verbs

import "fmt"

// Opcode is what a send work request asks for, with the values of enum
// ibv_wr_opcode.
type Opcode uint8

// The operations of a send queue.
const (
	OpWrite       Opcode = 0
	OpWriteImm    Opcode = 1
	OpSend        Opcode = 2
	OpSendImm     Opcode = 3
	OpRead        Opcode = 4
	OpCmpSwap     Opcode = 5
	OpFetchAdd    Opcode = 6
	OpLocalInv    Opcode = 7
	OpBindMW      Opcode = 8
	OpSendInv     Opcode = 9
	OpUMR         Opcode = 11 // IBV_WR_DRIVER1, as mlx5 has it
	OpFlush       Opcode = 14
	OpAtomicWrite Opcode = 15

	// OpRegMR is the kernel's name for what OpUMR does with a list.
	OpRegMR = OpUMR
)

// String returns the operation as verbs spells it.
func (o Opcode) String() string {
	if o.Known() {
		return ops[o].Name
	}
	return fmt.Sprintf("opcode %d", uint8(o))
}

// Known reports whether there is such an operation.
func (o Opcode) Known() bool { return int(o) < len(ops) && ops[o].Name != "" }

// Op returns the operation's row of the table. It panics when there is no such operation:
// what comes from outside is checked first, with Known or MayPost.
func (o Opcode) Op() *Op { return &ops[o] }
