package runtime

import (
	"fmt"
	"math"
	"math/bits"
)

// slotInfo is what reflection says of one buffer argument of a kernel.
type slotInfo struct {
	name     string
	writable bool
	used     bool
	size     int // of what the argument points to, 0 if not known
	align    int
	scalar   bindKind // of a constant that is a scalar, or kindNone
}

// kernelInfo is what reflection says of a kernel, as far as a launch must fit it.
type kernelInfo struct {
	name       string
	slots      [MaxBuffers]slotInfo
	declared   uint32 // buffer slots that the kernel has
	needed     uint32 // those that it uses
	groups     uint32 // threadgroup memory arguments that it has
	maxThreads int    // threads in a threadgroup of this pipeline
	staticTG   int    // bytes of static threadgroup memory
}

// limits are those of a device.
type limits struct {
	threads       Size // of a threadgroup
	threadgroup   int  // bytes of threadgroup memory
	buffer        int  // bytes of a buffer
	constantAlign int  // of offsets of constant buffers
	indirectOff   uint64
	indirectMax   int // commands of an indirect command buffer
	// exact is set for the software device, which checks accesses against the length of the buffer: allocations then are
	// not rounded up, so that a kernel that reads beyond one is found.
	exact bool
}

// validate says what keeps the launch from being encoded.
func (l *Launch) validate(k *kernelInfo, lim *limits, grid, threads Size, exact bool) *Error {
	if l.bound != k.declared || l.groups != k.groups {
		if e := l.validateSlots(k); e != nil {
			return e
		}
	}
	for rest := l.bound; rest != 0; rest &= rest - 1 {
		slot := bits.TrailingZeros32(rest)
		if e := l.validateBinding(slot, &l.binds[slot], &k.slots[slot]); e != nil {
			return e
		}
	}
	return l.validateGrid(k, lim, grid, threads, exact)
}

func (l *Launch) validateSlots(k *kernelInfo) *Error {
	switch {
	case l.bound&^k.declared != 0:
		return l.wrong(bits.TrailingZeros32(l.bound&^k.declared), "a binding", "one of the kernel's "+slotList(k.declared), ErrKernel)
	case k.needed&^l.bound != 0:
		slot := bits.TrailingZeros32(k.needed &^ l.bound)
		return &Error{Func: l.name, Arg: fmt.Sprintf("slot %d (%s)", slot, k.slots[slot].name), Have: "nothing",
			Need: "a binding at each of " + slotList(k.needed), Err: ErrKernel}
	case l.groups&^k.groups != 0:
		return &Error{Func: l.name, Arg: fmt.Sprintf("threadgroup memory %d", bits.TrailingZeros32(l.groups&^k.groups)),
			Have: "a length", Need: "one of the kernel's " + slotList(k.groups), Err: ErrKernel}
	case k.groups&^l.groups != 0:
		return &Error{Func: l.name, Arg: fmt.Sprintf("threadgroup memory %d", bits.TrailingZeros32(k.groups&^l.groups)),
			Have: "no length", Need: "a length for each of " + slotList(k.groups), Err: ErrKernel}
	}
	return nil
}

func (l *Launch) wrong(slot int, have, need string, sentinel error) *Error {
	return &Error{Func: l.name, Arg: fmt.Sprintf("slot %d", slot), Have: have, Need: need, Err: sentinel}
}

func (l *Launch) validateBinding(slot int, b *binding, s *slotInfo) *Error {
	if b.n < s.size {
		return l.wrong(slot, fmt.Sprintf("%d bytes", b.n), fmt.Sprintf("at least %d for %q", s.size, s.name), ErrShape)
	}
	if b.kind != kindView {
		if s.writable {
			return l.wrong(slot, b.kind.String(), fmt.Sprintf("a view, since the kernel writes %q", s.name), ErrKernel)
		}
		if b.kind.scalar() && s.scalar != kindNone && b.kind != s.scalar {
			return l.wrong(slot, b.kind.String(), fmt.Sprintf("%v for %q", s.scalar, s.name), ErrKernel)
		}
		return nil
	}
	switch {
	case b.access == accessRead && s.writable:
		return l.wrong(slot, "a view bound with Read", fmt.Sprintf("Write or ReadWrite, since the kernel may write %q", s.name), ErrKernel)
	case b.access&accessWrite != 0 && !s.writable:
		return l.wrong(slot, "a view bound with Write or ReadWrite", fmt.Sprintf("Read, since the kernel only reads %q", s.name), ErrKernel)
	case s.align > 1 && b.off%s.align != 0:
		return l.wrong(slot, fmt.Sprintf("byte offset %d", b.off), fmt.Sprintf("a multiple of %d for %q", s.align, s.name), ErrShape)
	}
	if b.a.released.Load() {
		return l.wrong(slot, "memory that was released", "live memory", ErrClosed)
	}
	return nil
}

func (l *Launch) validateGrid(k *kernelInfo, lim *limits, grid, threads Size, exact bool) *Error {
	refuse := func(arg, have, need string) *Error {
		return &Error{Func: l.name, Arg: arg, Have: have, Need: need, Err: ErrLimit}
	}
	arg := "groups"
	if exact {
		arg = "grid"
	}
	extent := func(n int) bool { return n >= 1 && uint64(n) <= math.MaxUint32 }
	if !grid.each(extent) {
		return refuse(arg, grid.String(), "1 to 2^32-1 in each dimension")
	}
	if threads.X < 1 || threads.Y < 1 || threads.Z < 1 || threads.X > lim.threads.X || threads.Y > lim.threads.Y || threads.Z > lim.threads.Z {
		return refuse("threads", threads.String(), "1*1*1 to "+lim.threads.String())
	}
	if n := threads.X * threads.Y * threads.Z; n > k.maxThreads {
		return refuse("threads", fmt.Sprintf("%v = %d threads", threads, n), fmt.Sprintf("at most %d for this kernel on this device", k.maxThreads))
	}
	if !exact {
		// The position of a thread in the grid is a uint.
		if uint64(grid.X)*uint64(threads.X) > math.MaxUint32+1 || uint64(grid.Y)*uint64(threads.Y) > math.MaxUint32+1 || uint64(grid.Z)*uint64(threads.Z) > math.MaxUint32+1 {
			return refuse(arg, fmt.Sprintf("%v groups of %v threads", grid, threads), "thread positions below 2^32 in each dimension")
		}
	}
	if l.groups != 0 {
		total := uint64(k.staticTG)
		for rest := l.groups; rest != 0; rest &= rest - 1 {
			total += uint64(l.tg[bits.TrailingZeros32(rest)])
		}
		if total > uint64(lim.threadgroup) {
			return refuse("threadgroup memory", fmt.Sprintf("%d bytes, %d of them static", total, k.staticTG), fmt.Sprintf("at most %d", lim.threadgroup))
		}
	}
	return nil
}
