package simt

import (
	"fmt"
	"strings"

	"github.com/ingot-metal/ingot/metallib/air"
)

// The kinds of faults.
const (
	FaultOutOfBounds      = "out of bounds"
	FaultMisaligned       = "misaligned access"
	FaultUnbound          = "unbound buffer slot"
	FaultNull             = "null pointer access"
	FaultBadPointer       = "access through a pointer into no memory"
	FaultConstantWrite    = "write to constant memory"
	FaultDivergentBarrier = "divergent barrier"
	FaultTooManyThreads   = "too many threads per threadgroup"
	FaultThreadgroup      = "threadgroup memory"
	FaultDispatch         = "invalid dispatch"
	FaultStepLimit        = "step limit"
	FaultUnreachable      = "unreachable code"
	FaultInternal         = "internal error"
)

// The memory that a fault concerns.
const (
	MemoryBuffer      = "buffer"
	MemoryThreadgroup = "threadgroup"
	MemoryPrivate     = "private"
	MemoryConstant    = "constant"
)

// A Fault is a violation that ended a dispatch. Threadgroups other than the faulting one may have run, wholly or in part.
type Fault struct {
	Kernel string
	Kind   string // one of the Fault constants
	// Instruction is the text of the faulting instruction, empty if there is none.
	Instruction string
	// Thread is the thread's position in the grid, Threadgroup that of its threadgroup.
	Thread, Threadgroup [3]uint32
	// Memory says which memory was accessed (a Memory constant, or empty); Name is the source name of the argument or
	// variable if known.
	Memory, Name string
	// Slot is the buffer or threadgroup slot, -1 if there is none.
	Slot int
	// Offset is the byte offset of the access from the start of the binding or variable (below zero as two's complement),
	// Size the size of the access, Length the size of the binding or variable.
	Offset, Size, Length uint64
	// Align is the alignment that the access needs.
	Align uint64
	// Detail says more where the fields do not.
	Detail string
}

// Error says all of it in one line.
func (f *Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel %s: %s", f.Kernel, f.Kind)
	if f.Memory != "" {
		fmt.Fprintf(&b, ": %s", f.Memory)
		if f.Slot >= 0 {
			fmt.Fprintf(&b, " %d", f.Slot)
		}
		if f.Name != "" {
			fmt.Fprintf(&b, " (%s)", f.Name)
		}
	}
	if f.Size > 0 {
		fmt.Fprintf(&b, ": %d bytes at offset %d", f.Size, int64(f.Offset))
		switch f.Kind {
		case FaultMisaligned:
			fmt.Fprintf(&b, ", which needs alignment %d", f.Align)
		case FaultOutOfBounds:
			fmt.Fprintf(&b, " of %d", f.Length)
		}
	}
	if f.Detail != "" {
		fmt.Fprintf(&b, ": %s", f.Detail)
	}
	if f.Instruction != "" {
		fmt.Fprintf(&b, "; instruction %q", f.Instruction)
	}
	switch f.Kind {
	case FaultTooManyThreads, FaultThreadgroup, FaultDispatch:
	default:
		fmt.Fprintf(&b, "; thread (%d, %d, %d) of the grid, threadgroup (%d, %d, %d)",
			f.Thread[0], f.Thread[1], f.Thread[2], f.Threadgroup[0], f.Threadgroup[1], f.Threadgroup[2])
	}
	return b.String()
}

// describe prints an instruction for a report.
func describe(in *air.Instr) string {
	if in == nil {
		return ""
	}
	if s, ok := any(in).(fmt.Stringer); ok {
		return s.String()
	}
	var b strings.Builder
	if in.Name != "" {
		fmt.Fprintf(&b, "%%%s = ", in.Name)
	}
	b.WriteString(opName(in.Op))
	if f := in.CalleeFunction(); f != nil {
		fmt.Fprintf(&b, " @%s", f.Name)
	} else if in.Ty != nil && in.Ty.Kind != air.VoidKind {
		fmt.Fprintf(&b, " %s", in.Ty)
	}
	for i, a := range in.Args {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %s%s", a.Type(), operandName(a))
	}
	return b.String()
}

func operandName(v air.Value) string {
	switch v := v.(type) {
	case *air.Instr:
		if v.Name != "" {
			return " %" + v.Name
		}
	case *air.Arg:
		if v.Name != "" {
			return " %" + v.Name
		}
		return fmt.Sprintf(" %%%d", v.Index)
	case *air.Global:
		return " @" + v.Name
	case *air.Const:
		if v.Kind == air.IntConst {
			return fmt.Sprintf(" %d", int64(v.Bits))
		}
	}
	return ""
}

// fault ends the dispatch; lane is the offending lane.
func (w *warp) fault(f *Fault, in *inst, lane int) {
	f.Kernel = w.prog.name
	if in != nil && in.x != nil {
		f.Instruction = describe(in.x.src)
	}
	f.Threadgroup = w.group
	t := w.threadPosition(lane)
	for i := range t {
		f.Thread[i] = w.origin[i] + t[i]
	}
	panic(f)
}

// accessFault reports an access to address p that resolve refused.
func (w *warp) accessFault(p uint64, lane int, size, align uint64, write bool, in *inst) {
	f := &Fault{Slot: -1, Size: size, Align: align}
	r := w.regionAt(p, in)
	if r == 0 || r >= len(w.regs) {
		f.Kind = FaultBadPointer
		if p>>40 == 0 || p>>40 == 1<<24-1 {
			f.Kind = FaultNull
		}
		f.Offset = p
		f.Detail = "the pointer was not made from a buffer or variable"
		w.fault(f, in, lane)
	}
	rg := &w.regs[r]
	f.Offset, f.Length = p-rg.origin, rg.size
	unbound := false
	if r < firstRegion {
		f.Memory, f.Slot = MemoryBuffer, r-1
		f.Name = w.prog.bufferNames[r-1]
		unbound = rg.base == nil
		if n := w.bufs[r-1].Name; n != "" {
			f.Name = strings.TrimPrefix(f.Name+" = "+n, " = ")
		}
	} else {
		info := &w.prog.mem.regions[r-firstRegion]
		f.Name = info.name
		switch info.kind {
		case regionConst:
			f.Memory = MemoryConstant
		case regionPrivate:
			f.Memory = MemoryPrivate
		case regionShared:
			f.Memory = MemoryThreadgroup
		case regionSharedArg:
			f.Memory, f.Slot = MemoryThreadgroup, info.slot
		}
	}
	switch {
	case unbound:
		f.Kind = FaultUnbound
	case size > rg.size || f.Offset > rg.size-size:
		f.Kind = FaultOutOfBounds
	case p&(align-1) != 0:
		f.Kind = FaultMisaligned
	default:
		f.Kind = FaultConstantWrite
	}
	w.fault(f, in, lane)
}
