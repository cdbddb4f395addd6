package objc

import "fmt"

// Placement turns the logical words of a message into the words that SyscallN puts into integer registers and, when
// those are used up, onto the stack, on the right of self and the selector.
//
// amd64 (System V): six integer registers. A structure of more than two words is copied to the stack; one of two words
// takes two registers, or the stack when fewer than two are left; later arguments still take the register that is
// left over. arm64 (AAPCS64): eight integer registers. A structure of more than two words is passed as a pointer to a
// copy; one of two words takes two registers, or the stack when fewer than two are left, and then nothing later takes
// a register.

// slot says what one physical word is.
type slot struct {
	how  slotKind
	word uint8 // index of the logical word
}

type slotKind uint8

const (
	slotWord    slotKind = iota
	slotPad              // a register that the convention skips
	slotPointer          // the address of the logical word: the copy is the message's own frame
)

type arch struct {
	registers int  // integer registers left after self and the selector
	byPointer bool // large structures go by pointer, not by stack; and nothing takes a register after a stack argument
	stret     bool // a large result takes the first integer register, and a function of its own
	packs     bool // small stack arguments are packed (Apple's arm64): not supported
}

var (
	amd64 = arch{registers: 4, stret: true}
	arm64 = arch{registers: 6, byPointer: true, packs: true}
)

const (
	maxPhysical = 32 // what SyscallN takes
	maxFloats   = 8  // floating-point registers
)

// placement is where the arguments of a message go, in the order of the integer registers and the stack, and of the
// floating-point registers.
type placement struct {
	slots  []slot
	floats []slot
	stret  bool // send with objc_msgSend_stret: the address of the result stands before self
}

// place lays out the arguments of a message.
func (a arch) place(s shape) (placement, error) {
	var p placement
	var stack []slot
	registers := a.registers
	if a.stret && s.ret.words > 2 {
		p.stret = true
		registers--
	}
	word := uint8(0)
	full := false // arm64: no register is used after an argument went to the stack
	for i, v := range s.args {
		var in []slot
		switch {
		case v.kind == kindFloat32 || v.kind == kindFloat64:
			p.floats = append(p.floats, slot{slotWord, word})
			word++
			continue
		case v.words > 2 && a.byPointer:
			in = []slot{{slotPointer, word}}
		default:
			for k := range v.words {
				in = append(in, slot{slotWord, word + uint8(k)})
			}
		}
		word += uint8(v.words)
		onStack := v.words > 2 && !a.byPointer
		if !onStack && !full && len(p.slots)+len(in) <= registers {
			p.slots = append(p.slots, in...)
			continue
		}
		if a.packs && smallerThanWord(v.kind) {
			return p, fmt.Errorf("objc: argument %d is smaller than 8 bytes and on the stack, which Apple's arm64 convention packs", i)
		}
		full = a.byPointer
		stack = append(stack, in...)
	}
	if len(p.floats) > maxFloats {
		return p, fmt.Errorf("objc: %d floating-point arguments; at most %d are supported", len(p.floats), maxFloats)
	}
	if len(stack) > 0 {
		for len(p.slots) < registers {
			p.slots = append(p.slots, slot{how: slotPad})
		}
		p.slots = append(p.slots, stack...)
	}
	if n := len(p.slots) + 3; n > maxPhysical {
		return p, fmt.Errorf("objc: %d words in registers and on the stack; at most %d are supported", n, maxPhysical)
	}
	return p, nil
}

func smallerThanWord(k kind) bool {
	switch k {
	case kindBool, kindInt8, kindUint8, kindInt16, kindUint16, kindInt32, kindUint32:
		return true
	}
	return false
}
