package runtime

import "fmt"

// blitStep is what the offset and length of a copy or a fill must be a multiple of on macOS.
const blitStep = 4

// Copy copies the bytes of src to dst, which must be of the same length and not overlap it; offsets and length are
// multiples of 4, as macOS wants. A view copied to itself, or an empty one, is nothing to do.
//
// Copies and fills are ordered with the dispatches of the pass by the bytes they touch, as dispatches are among
// themselves. They are encoded into a blit encoder, and changing between dispatches and blits ends an encoder: where that
// costs too much, a copy kernel does the same within one.
func (p *Pass) Copy(dst, src View) error {
	const fn = "Pass.Copy"
	if err := p.blittable(fn, "dst", dst); err != nil {
		return err
	}
	if err := p.blittable(fn, "src", src); err != nil {
		return err
	}
	switch {
	case dst.n != src.n:
		return &Error{Func: fn, Arg: "src", Have: fmt.Sprintf("%d bytes", src.n), Need: fmt.Sprintf("%d, the length of dst", dst.n), Err: ErrShape}
	case dst.n == 0 || dst.Same(src):
		return nil
	case dst.Overlaps(src):
		return &Error{Func: fn, Arg: "dst", Have: "a view that overlaps src", Need: "one that does not, or src itself", Err: ErrOverlap}
	}
	return p.blit(fn, command{kind: kindCopy},
		bufferBind{buf: src.a.buf, a: src.a, off: uint64(src.off), n: src.n, access: accessRead},
		bufferBind{buf: dst.a.buf, a: dst.a, off: uint64(dst.off), n: dst.n, access: accessWrite})
}

// Fill sets every byte of dst to value, under the same rules as Copy.
func (p *Pass) Fill(dst View, value byte) error {
	const fn = "Pass.Fill"
	if err := p.blittable(fn, "dst", dst); err != nil || dst.n == 0 {
		return err
	}
	return p.blit(fn, command{kind: kindFill, value: value},
		bufferBind{buf: dst.a.buf, a: dst.a, off: uint64(dst.off), n: dst.n, access: accessWrite})
}

// blittable says why a view cannot be an operand of a blit of this pass.
func (p *Pass) blittable(fn, arg string, v View) error {
	switch {
	case !p.live():
		return &Error{Func: fn, Have: "a pass that is over", Need: "a pass that is being encoded", Err: ErrMisuse}
	case p.inBind:
		return &Error{Func: fn, Have: "a call within the bind function of a launch", Need: "calls of the binder only", Err: ErrMisuse}
	}
	if e := v.invalid(); e != nil {
		return &Error{Func: fn, Arg: arg, Have: e.Have, Need: e.Need, Err: e.Err}
	}
	switch {
	case v.a.rt != p.rt:
		return &Error{Func: fn, Arg: arg, Have: "memory of another runtime", Need: "memory of the pass's runtime", Err: ErrForeign}
	case v.off%blitStep != 0 || v.n%blitStep != 0:
		return &Error{Func: fn, Arg: arg, Have: fmt.Sprintf("%d bytes at offset %d", v.n, v.off), Need: fmt.Sprintf("multiples of %d", blitStep), Err: ErrShape}
	}
	return nil
}

func (p *Pass) blit(fn string, cmd command, binds ...bufferBind) error {
	st := p.st
	n := copy(st.binding[:], binds)
	for i := range st.binding[:n] {
		b := &st.binding[i]
		if b.use = st.use(b.a, b.writes(), true); b.use < 0 {
			return &Error{Func: fn, Have: "memory that was released", Need: "live memory", Err: ErrClosed}
		}
		if st.mapped(b) {
			return &Error{Func: fn, Have: "memory that the host has mapped", Need: "the end of the mapping", Err: ErrBusy}
		}
		if e := st.admit(b.a, b.writes()); e != nil {
			return &Error{Func: fn, Have: e.Have, Need: e.Need, Err: e.Err}
		}
	}
	st.cmd = cmd
	if err := st.add(fn, n, 0); err != nil {
		return err
	}
	p.rt.stats.blits.Add(1)
	return nil
}
