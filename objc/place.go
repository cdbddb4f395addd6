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
	byPointer bool // large structures go by pointer, not by stack
	packs     bool // small stack arguments are packed (Apple's arm64): not supported
}

var (
	amd64 = arch{registers: 4}
	arm64 = arch{registers: 6, byPointer: true, packs: true}
)

// place lays out the integer arguments. Floating-point arguments are not for SyscallN: it fails on them.
func (a arch) place(s shape) ([]slot, error) {
	var regs, stack []slot
	word := uint8(0)
	full := false // arm64: no register is used after an argument went to the stack
	for i, v := range s.args {
		switch {
		case v.kind == kindFloat32 || v.kind == kindFloat64:
			return nil, fmt.Errorf("objc: argument %d is a floating-point number", i)
		case v.words > 2 && !a.byPointer:
			for k := range v.words {
				stack = append(stack, slot{slotWord, word + uint8(k)})
			}
		default:
			in := make([]slot, 0, 2)
			if v.words > 2 {
				in = append(in, slot{slotPointer, word})
			} else {
				for k := range v.words {
					in = append(in, slot{slotWord, word + uint8(k)})
				}
			}
			if !full && len(regs)+len(in) <= a.registers {
				regs = append(regs, in...)
				break
			}
			if a.packs {
				full = true
				if smallerThanWord(v.kind) {
					return nil, fmt.Errorf("objc: argument %d is smaller than 8 bytes and on the stack, which Apple's arm64 convention packs", i)
				}
			}
			stack = append(stack, in...)
		}
		word += uint8(v.words)
	}
	if len(stack) == 0 {
		return regs, nil
	}
	for len(regs) < a.registers {
		regs = append(regs, slot{how: slotPad})
	}
	return append(regs, stack...), nil
}

func smallerThanWord(k kind) bool {
	switch k {
	case kindBool, kindInt8, kindUint8, kindInt16, kindUint16, kindInt32, kindUint32:
		return true
	}
	return false
}
