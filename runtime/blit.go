package runtime

import (
	"context"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// Work of the blit encoder for private and managed memory: copies between it and memory that the host sees, clearing, and
// bringing the host's copy up to date.

// stagingBytes is how much one copy of the device moves: longer ones are made in parts, so that the memory in between stays
// small.
const stagingBytes = 8 << 20

// blit submits what encode encodes. It holds the allocations until that has completed. Only an allocation that is marked
// counts as used, or written: the others are kept from everybody else by the caller.
func (rt *Runtime) blit(fn string, encode func(mtl.BlitCommandEncoder), marked *allocation, held ...*allocation) (uint64, error) {
	if err := rt.enter(fn); err != nil {
		return 0, err
	}
	defer rt.leave()
	defer objc.NewPool().Drain()
	st := rt.newPassState(false)
	defer func() {
		if st != nil {
			st.abandon()
		}
	}()
	gone := &Error{Func: fn, Have: "memory that was released", Need: "live memory", Err: ErrClosed}
	for _, a := range held {
		if st.use(a, false, false) < 0 {
			return 0, gone
		}
	}
	if marked != nil {
		pos := st.use(marked, true, true)
		if pos < 0 {
			return 0, gone
		}
		st.uses[pos].note(0, marked.class, true)
	}
	work := rt.traceWork("copy")
	defer func() { work.dropped() }()
	cb, err := rt.queue.newCommandBuffer(fn)
	if err != nil {
		return 0, err
	}
	enc := cb.BlitCommandEncoder()
	if enc.IsNil() {
		return 0, &Error{Func: fn, Err: &DeviceError{Op: "blitCommandEncoder", Text: "the command buffer made no encoder"}}
	}
	encode(enc)
	enc.EndEncoding()
	work.ended(0)
	seq, err := rt.queue.commit(fn, flight{cb: cb, st: st, times: rt.newTimes(), trace: work})
	if err != nil {
		return 0, err
	}
	st, work = nil, nil // the queue gives them back
	return seq, nil
}

// zeroOnDevice clears bytes of memory that the host does not see. Work that is submitted later finds them cleared.
func (rt *Runtime) zeroOnDevice(fn string, a *allocation, lo, hi int) error {
	if lo, hi = words(lo, hi); lo == hi {
		return nil
	}
	_, err := rt.blit(fn, func(enc mtl.BlitCommandEncoder) {
		enc.FillBuffer(a.buf, mtl.Range{Location: uint(lo), Length: uint(hi - lo)}, 0)
	}, a)
	return err
}

// words widens a range of bytes to whole words, which is what blits move. Buffers that are blitted consist of whole words.
func words(lo, hi int) (int, int) {
	if lo == hi {
		return lo, lo
	}
	return lo &^ 3, (hi + 3) &^ 3
}

// copyOut copies bytes of memory from offset off on to dst. The caller has begun a host access.
func (a *allocation) copyOut(fn string, dst []byte, off int) error {
	span := a.rt.traceHost()
	defer span.end(laneHostCopy, fn, 0, len(dst))
	a.rt.stats.bytesRead.Add(uint64(len(dst)))
	switch {
	case len(dst) == 0:
	case a.storage == Private:
		return a.stage(fn, dst, off, false)
	case a.storage == Managed:
		if err := a.synchronize(fn); err != nil {
			return err
		}
		fallthrough
	default:
		copy(dst, a.at(off, len(dst)))
	}
	return nil
}

// copyIn copies src to the memory from offset off on. The caller has begun a host access for writing.
func (a *allocation) copyIn(fn string, src []byte, off int) error {
	span := a.rt.traceHost()
	defer span.end(laneHostCopy, fn, 0, len(src))
	a.rt.stats.bytesWritten.Add(uint64(len(src)))
	switch {
	case len(src) == 0:
	case a.storage == Private:
		return a.stage(fn, src, off, true)
	default:
		copy(a.at(off, len(src)), src)
		a.modified(off, len(src))
	}
	return nil
}

// synchronize brings the host's copy of managed memory up to date.
func (a *allocation) synchronize(fn string) error {
	seq, err := a.rt.blit(fn, func(enc mtl.BlitCommandEncoder) { enc.SynchronizeResource(a.buf.Resource) }, nil, a)
	if err != nil {
		return err
	}
	return a.rt.queue.wait(context.Background(), fn, seq)
}

// modified tells the device what the host has written to managed memory.
func (a *allocation) modified(off, n int) {
	if a.storage == Managed {
		a.buf.DidModifyRange(mtl.Range{Location: uint(off), Length: uint(n)})
	}
}

// stage copies between host memory and private memory, in parts, through memory that both see.
func (a *allocation) stage(fn string, host []byte, off int, in bool) error {
	lo, hi := words(off, off+len(host))
	s, err := a.rt.allocate(fn, min(hi-lo, stagingBytes), Shared, false)
	if err != nil {
		return err
	}
	defer func() {
		s.released.Store(true)
		s.unref()
	}()
	for at := lo; at < hi; at += stagingBytes {
		end := min(at+stagingBytes, hi)
		// The bytes of the caller's among the words from at to end.
		first, last := max(at, off), min(end, off+len(host))
		part, staged := host[first-off:last-off], s.at(first-at, last-first)
		if in && first == at && last == end {
			copy(staged, part)
			if err := a.move(fn, s, at, end, true); err != nil {
				return err
			}
			continue
		}
		if err := a.move(fn, s, at, end, false); err != nil {
			return err
		}
		if !in {
			copy(part, staged)
			continue
		}
		// The bytes beside the caller's in the same words stay as they are.
		copy(staged, part)
		if err := a.move(fn, s, at, end, true); err != nil {
			return err
		}
	}
	return nil
}

// move copies the words from lo to hi from staging memory, or to it, and waits for that.
func (a *allocation) move(fn string, s *allocation, lo, hi int, in bool) error {
	seq, err := a.rt.blit(fn, func(enc mtl.BlitCommandEncoder) {
		if in {
			enc.CopyFromBuffer(s.buf, 0, a.buf, uint(lo), uint(hi-lo))
		} else {
			enc.CopyFromBuffer(a.buf, uint(lo), s.buf, 0, uint(hi-lo))
		}
	}, nil, s, a)
	if err != nil {
		return err
	}
	return a.rt.queue.wait(context.Background(), fn, seq)
}
