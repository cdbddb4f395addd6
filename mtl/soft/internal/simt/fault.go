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
	// Those of the checking mode.
	FaultUnwritten = "read of memory never written"
	FaultRace      = "race within a threadgroup"
	FaultGroupRace = "race between threadgroups"
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
	// Of a race, Access says what the thread did ("read", "wrote" or "changed atomically"), and Other is what it met.
	Access string
	Other  Party
}

// A Party is the earlier access of a race.
type Party struct {
	Access, Instruction string
	Thread, Threadgroup [3]uint32
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
	if o := &f.Other; o.Access != "" {
		fmt.Fprintf(&b, " %s what thread (%d, %d, %d) of threadgroup (%d, %d, %d) %s", f.Access,
			o.Thread[0], o.Thread[1], o.Thread[2], o.Threadgroup[0], o.Threadgroup[1], o.Threadgroup[2], o.Access)
		if o.Instruction != "" {
			fmt.Fprintf(&b, " with %q", o.Instruction)
		}
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

// sourceName is what the source calls a variable of a function, whose mangled name ends in E, a length and that name.
func sourceName(name string) string {
	if !strings.HasPrefix(name, "_ZZ") {
		return name
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] != 'E' {
			continue
		}
		n, k := 0, i+1
		for ; k < len(name) && name[k] >= '0' && name[k] <= '9' && n < len(name); k++ {
			n = 10*n + int(name[k]-'0')
		}
		if n > 0 && n <= len(name)-k {
			return name[k : k+n]
		}
	}
	return name
}

// memoryOf describes the memory of a region in a fault.
func (w *warp) memoryOf(f *Fault, r int) {
	f.Length = w.regs[r].size
	if r < firstRegion {
		f.Memory, f.Slot, f.Name = MemoryBuffer, r-1, w.bufferName(r-1)
		return
	}
	info := &w.prog.mem.regions[r-firstRegion]
	f.Name = sourceName(info.name)
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

// bufferName is the name of an argument and, if it has one, of the buffer.
func (w *warp) bufferName(slot int) string {
	name := w.prog.bufferNames[slot]
	if n := w.bufs[slot].Name; n != "" {
		name = strings.TrimPrefix(name+" = "+n, " = ")
	}
	return name
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
	f.Offset = p - rg.origin
	w.memoryOf(f, r)
	unbound := r < firstRegion && rg.base == nil
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
