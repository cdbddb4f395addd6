package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
)

// refused runs one launch that must be refused, with the pass unchanged, and gives its error.
func refused(t *testing.T, rt *Runtime, kernel string, build func(l *Launch) error) error {
	t.Helper()
	var err error
	require.NoError(t, rt.Run(func(p *Pass) error {
		err = build(p.Kernel(kernel))
		require.Error(t, err)
		require.Zero(t, p.Count())
		require.Zero(t, p.Barriers())
		return nil
	}))
	var e *Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Func)
	return err
}

func TestLaunchRefusals(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	bytes, err := NewSlice[uint8](rt, 64)
	require.NoError(t, err)
	gone, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	require.NoError(t, gone.Release())
	good := func(l *Launch) {
		l.Write(0, x.View())
		l.Uint32(1, 1)
		l.Uint32(2, 4)
	}
	one := D1(1)
	for _, c := range []struct {
		name, kernel string
		want         error
		text         string
		build        func(l *Launch) error
	}{
		{"no kernel", "nothing", ErrKernel, "library does not have", func(l *Launch) error { return l.Dispatch(one, one) }},
		{"missing slot", "fill", ErrKernel, "slot 2 (n): have nothing, need a binding at each of slots 0, 1, 2", func(l *Launch) error {
			l.Write(0, x.View())
			l.Uint32(1, 1)
			return l.Dispatch(one, one)
		}},
		{"undeclared slot", "fill", ErrKernel, "slot 7: have a binding, need one of the kernel's slots 0, 1, 2", func(l *Launch) error {
			good(l)
			l.Uint32(7, 1)
			return l.Dispatch(one, one)
		}},
		{"slot 31", "fill", ErrKernel, "slot 31", func(l *Launch) error { l.Uint32(31, 1); return l.Dispatch(one, one) }},
		{"slot -1", "fill", ErrKernel, "slot -1", func(l *Launch) error { l.Read(-1, x.View()); return l.Dispatch(one, one) }},
		{"twice", "fill", ErrMisuse, "two bindings", func(l *Launch) error { good(l); l.Uint32(1, 1); return l.Dispatch(one, one) }},
		{"read of a writable slot", "fill", ErrKernel, "may write", func(l *Launch) error {
			l.Read(0, x.View())
			l.Uint32(1, 1)
			l.Uint32(2, 4)
			return l.Dispatch(one, one)
		}},
		{"write of a read-only slot", "copy", ErrKernel, "only reads", func(l *Launch) error {
			l.Write(0, x.Slice(0, 4).View())
			l.Write(1, x.Slice(4, 8).View())
			l.Uint32(2, 4)
			return l.Dispatch(one, one)
		}},
		{"scalar at a written slot", "fill", ErrKernel, "writes", func(l *Launch) error {
			l.Uint32(0, 1)
			l.Uint32(1, 1)
			l.Uint32(2, 4)
			return l.Dispatch(one, one)
		}},
		{"int for a uint", "fill", ErrKernel, "have an int32, need a uint32", func(l *Launch) error {
			l.Write(0, x.View())
			l.Int32(1, -1)
			l.Uint32(2, 4)
			return l.Dispatch(one, one)
		}},
		{"scalar of another type", "fill", ErrKernel, "have a float32, need a uint32 for \"value\"", func(l *Launch) error {
			l.Write(0, x.View())
			l.Float32(1, 1)
			l.Uint32(2, 4)
			return l.Dispatch(one, one)
		}},
		{"short view", "fill", ErrShape, "have 3 bytes, need at least 4", func(l *Launch) error {
			l.Write(0, bytes.Slice(0, 3).View())
			l.Uint32(1, 1)
			l.Uint32(2, 4)
			return l.Dispatch(one, one)
		}},
		{"misaligned view", "fill", ErrShape, "byte offset 2, need a multiple of 4", func(l *Launch) error {
			l.Write(0, bytes.Slice(2, 10).View())
			l.Uint32(1, 1)
			l.Uint32(2, 1)
			return l.Dispatch(one, one)
		}},
		{"empty view", "fill", ErrShape, "empty", func(l *Launch) error { l.Write(0, x.Slice(4, 4).View()); return l.Dispatch(one, one) }},
		{"zero view", "fill", ErrShape, "the zero Slice or View", func(l *Launch) error { l.Write(0, View{}); return l.Dispatch(one, one) }},
		{"bad slice", "fill", ErrShape, "[60:70]", func(l *Launch) error { l.Write(0, x.Slice(60, 70).View()); return l.Dispatch(one, one) }},
		{"released", "fill", ErrClosed, "released", func(l *Launch) error { l.Write(0, gone.View()); return l.Dispatch(one, one) }},
		{"no bytes", "fill", ErrLimit, "0 bytes", func(l *Launch) error { l.Bytes(1, nil); return l.Dispatch(one, one) }},
		{"odd parameters", "fill", ErrLimit, "multiple of 4", func(l *Launch) error { l.Params(1, make([]byte, 6)); return l.Dispatch(one, one) }},
		{"no parameters", "fill", ErrLimit, "0 bytes", func(l *Launch) error { l.Params(1, nil); return l.Dispatch(one, one) }},
		{"long bytes", "fill", ErrLimit, "4097 bytes", func(l *Launch) error { l.Bytes(1, make([]byte, 4097)); return l.Dispatch(one, one) }},
		{"no groups", "fill", ErrLimit, "0*1*1", func(l *Launch) error { good(l); return l.Dispatch(Size{0, 1, 1}, one) }},
		{"many groups", "fill", ErrLimit, "4294967296*1*1", func(l *Launch) error { good(l); return l.Dispatch(D1(math.MaxUint32+1), one) }},
		{"many threads in all", "fill", ErrLimit, "below 2^32", func(l *Launch) error { good(l); return l.Dispatch(D1(1<<31), D1(4)) }},
		{"no threads", "fill", ErrLimit, "1*0*1", func(l *Launch) error { good(l); return l.Dispatch(one, Size{1, 0, 1}) }},
		{"many threads of the device", "fill", ErrLimit, "1*1*65", func(l *Launch) error { good(l); return l.Dispatch(one, D3(1, 1, 65)) }},
		{"many threads of the kernel", "fill", ErrLimit, "320 threads, need at most 256", func(l *Launch) error { good(l); return l.Dispatch(one, D2(32, 10)) }},
		{"a big grid", "fill", ErrLimit, "grid", func(l *Launch) error { good(l); return l.DispatchThreads(D1(math.MaxUint32+1), D1(32)) }},
		{"threadgroup memory not there", "fill", ErrKernel, "threadgroup memory 0: have a length", func(l *Launch) error {
			good(l)
			l.ThreadgroupMemory(0, 16)
			return l.Dispatch(one, one)
		}},
		{"threadgroup memory missing", "scale", ErrKernel, "threadgroup memory 0: have no length", func(l *Launch) error {
			l.ReadWrite(0, x.View())
			l.Float32(1, 1)
			return l.Dispatch(one, one)
		}},
		{"threadgroup memory over the limit", "scale", ErrLimit, "32832 bytes, 64 of them static, need at most 32768", func(l *Launch) error {
			l.ReadWrite(0, x.View())
			l.Float32(1, 1)
			l.ThreadgroupMemory(0, 32753)
			return l.Dispatch(one, one)
		}},
		{"threadgroup memory of length 0", "scale", ErrLimit, "0 bytes", func(l *Launch) error { l.ThreadgroupMemory(0, 0); return l.Dispatch(one, one) }},
		{"threadgroup memory 31", "scale", ErrKernel, "threadgroup memory 31", func(l *Launch) error { l.ThreadgroupMemory(31, 16); return l.Dispatch(one, one) }},
		{"threadgroup memory twice", "scale", ErrMisuse, "two lengths", func(l *Launch) error {
			l.ThreadgroupMemory(0, 16)
			l.ThreadgroupMemory(0, 16)
			return l.Dispatch(one, one)
		}},
		{"constant twice", "fill", ErrMisuse, "two values", func(l *Launch) error {
			l.ConstantUint32(3, 1)
			l.ConstantBool(3, true)
			return l.Dispatch(one, one)
		}},
		{"constant index", "fill", ErrKernel, "constant 65536", func(l *Launch) error { l.ConstantInt32(65536, 1); return l.Dispatch(one, one) }},
		{"many constants", "fill", ErrLimit, "17 constants", func(l *Launch) error {
			for i := range 17 {
				l.ConstantFloat32(i, 1)
			}
			return l.Dispatch(one, one)
		}},
		{"wrong execution width", "wide", ErrLimit, "execution width 64", func(l *Launch) error { return l.Dispatch(one, one) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := refused(t, rt, c.kernel, c.build)
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
	n, _ := d.counts()
	require.Zero(t, n)

	// The first error counts, and a new launch starts without it.
	require.NoError(t, rt.Run(func(p *Pass) error {
		l := p.Kernel("fill")
		l.Uint32(40, 1)
		l.Uint32(50, 1)
		require.ErrorContains(t, l.Dispatch(one, one), "slot 40")
		return fill(p, x, 3)
	}))
	// A slot that the kernel does not use may stay empty, or be bound.
	require.NoError(t, rt.Run(func(p *Pass) error {
		for i := range 2 {
			l := p.Kernel("scale")
			l.ReadWrite(0, x.View())
			l.Float32(1, 1)
			l.ThreadgroupMemory(0, 17)
			if i == 1 {
				l.Bytes(5, []byte{1, 2, 3, 4})
			}
			if err := l.Dispatch(D1(2), D1(256)); err != nil {
				return err
			}
		}
		require.EqualValues(t, 32, p.st.enc.tg[0], "rounded up to a multiple of 16")
		require.NoError(t, fill(p, x, 1))
		require.Zero(t, p.st.enc.tg[0], "reset for a kernel that has none")
		return nil
	}))
}

func TestStaleLaunch(t *testing.T) {
	rt := new(fake).open(t)
	var stale *Launch
	require.NoError(t, rt.Run(func(p *Pass) error {
		stale = p.Kernel("fill")
		return nil
	}))
	require.ErrorIs(t, stale.Dispatch(D1(1), D1(1)), ErrMisuse)
	require.ErrorIs(t, (*Pass)(nil).Kernel("fill").Dispatch(D1(1), D1(1)), ErrMisuse)
}

func TestConstantsMakePipelines(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	run := func(set func(l *Launch)) {
		require.NoError(t, rt.Run(func(p *Pass) error {
			l := p.Kernel("fill")
			set(l)
			l.Write(0, x.View())
			l.Bytes(1, []byte{1, 0, 0, 0})
			l.Uint32(2, 4)
			return l.DispatchThreads(D1(40), D1(32))
		}))
	}
	for range 2 {
		run(func(l *Launch) {})
		run(func(l *Launch) { l.ConstantBool(0, true); l.ConstantInt32(4, -1) })
		run(func(l *Launch) { l.ConstantInt32(4, -1); l.ConstantBool(0, true) }) // the order does not matter
		run(func(l *Launch) { l.ConstantBool(0, false); l.ConstantInt32(4, -1) })
		run(func(l *Launch) { l.ConstantFloat32(0, 1.5) })
		run(func(l *Launch) { l.ConstantUint32(0, math.Float32bits(1.5)) })
	}
	require.EqualValues(t, 5, rt.Stats().Pipelines)
	require.Equal(t, "fill 0=true 4=-1 9=1.5 10=7", label("fill", []constant{{0, constantBool, 1}, {4, constantInt32, math.MaxUint32},
		{9, constantFloat32, math.Float32bits(1.5)}, {10, constantUint32, 7}}))
}

func TestKernelInfo(t *testing.T) {
	rt := new(fake).open(t)
	k, err := rt.Kernel("scale")
	require.NoError(t, err)
	require.Equal(t, KernelInfo{Name: "scale", MaxThreads: 256, StaticThreadgroupMemory: 64, Indirect: true, Origin: OriginUser, Slots: []SlotInfo{
		{Slot: 0, Name: "x", Writable: true, Used: true, Size: 4, Alignment: 4},
		{Slot: 1, Name: "f", Used: true, Size: 4, Alignment: 4},
		{Slot: 5, Name: "spare", Size: 4, Alignment: 4},
	}}, k)
	_, err = rt.Kernel("nothing")
	require.ErrorIs(t, err, ErrKernel)
	for o, s := range map[Origin]string{OriginNone: "none", OriginEmbedded: "embedded", OriginSource: "source", OriginUser: "user"} {
		require.Equal(t, s, o.String())
	}
}

func TestDeviceInfo(t *testing.T) {
	rt := (&fake{families: 8}).open(t)
	require.Equal(t, DeviceInfo{Name: "Fake", Architecture: "fake", Family: 8, MaxThreads: Size{1024, 1024, 64}, MaxThreadgroupMemory: 32768,
		MaxBuffer: 64 << 20, WorkingSet: 1 << 30, UnifiedMemory: true, BFloat: true, SIMDMatrix: true, Indirect: true, Primed: true}, rt.Device())
	_, err := Open(WithDevice(mtl.Device{}))
	require.ErrorIs(t, err, ErrMisuse)
}
