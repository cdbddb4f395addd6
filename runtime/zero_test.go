package runtime

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNilErrors: a nil pointer in an error is a mistake that must not become a panic where it is printed.
func TestNilErrors(t *testing.T) {
	var e *Error
	var d *DeviceError
	require.Equal(t, "<nil>", e.Error())
	require.Equal(t, "<nil>", d.Error())
	require.NoError(t, e.Unwrap())
	require.NotErrorIs(t, error(e), ErrClosed)
	require.ErrorIs(t, error(d), ErrDevice)
	require.Empty(t, (&Error{}).Error())
	require.Equal(t, ": Metal gave no reason", (&DeviceError{}).Error())
	require.Equal(t, "f: <nil>", (&Error{Func: "f", Err: e}).Error())
	for _, s := range []fmt.Stringer{Storage(200), Origin(200), Size{}} {
		require.NotEmpty(t, s.String())
	}
}

// TestNilAndZero calls what is exported on values that no function of the package made: an error or nothing, no panic.
func TestNilAndZero(t *testing.T) {
	for _, rt := range []*Runtime{nil, {}} {
		for name, call := range map[string]func() error{
			"Err":           rt.Err,
			"Wait":          func() error { return rt.Wait(t.Context()) },
			"SelfTest":      rt.SelfTest,
			"Close":         rt.Close,
			"Reopen":        func() error { _, err := rt.Reopen(); return err },
			"Run":           func() error { return rt.Run(func(*Pass) error { return nil }) },
			"Submit":        func() error { _, err := rt.Submit(func(*Pass) error { return nil }); return err },
			"Record":        func() error { _, err := rt.Record(func(*Pass) error { return nil }); return err },
			"Kernel":        func() error { _, err := rt.Kernel("fill"); return err },
			"NewSlice":      func() error { _, err := NewSlice[uint32](rt, 1); return err },
			"NewScalarPool": func() error { _, err := NewScalarPool(rt, 1); return err },
		} {
			err := call()
			require.ErrorIs(t, err, ErrMisuse, name)
			require.ErrorContains(t, err, name+": rt: have ")
		}
		require.Zero(t, rt.Stats().Submissions)
		require.Empty(t, rt.Device().Name)
		require.Equal(t, OriginNone, rt.LibraryOrigin())
		require.Equal(t, OriginNone, rt.KernelOrigin("fill"))
	}
	for _, p := range []*Pass{nil, {}} {
		require.Nil(t, p.Runtime())
		require.Zero(t, p.Count()+p.Barriers())
		require.ErrorIs(t, p.Barrier(), ErrMisuse)
		require.ErrorIs(t, p.Kernel("fill").Dispatch(D1(1), D1(1)), ErrMisuse)
	}
	for _, l := range []*Launch{nil, {}} {
		l.Uint32(0, 1)
		l.Bytes(1, []byte{1})
		l.Read(2, View{})
		l.ConstantBool(0, true)
		l.ThreadgroupMemory(0, 16)
		l.Scalars(func(*ScalarBinder) error { return nil })
		require.ErrorIs(t, l.Dispatch(D1(1), D1(1)), ErrMisuse)
		require.ErrorIs(t, l.DispatchThreads(D1(1), D1(1)), ErrMisuse)
	}
	for _, b := range []*ScalarBinder{nil, {}} {
		require.ErrorIs(t, b.Uint32(0, Scalar[uint32]{}), ErrMisuse)
	}
	for _, prog := range []*Program{nil, {}} {
		ok, _ := prog.Indirect()
		require.False(t, ok)
		require.Zero(t, prog.Stats())
		require.Equal(t, "program of 0 commands, 0 barriers, encoded again", prog.String())
		require.ErrorIs(t, prog.Run(), ErrClosed)
		require.ErrorIs(t, prog.Release(), ErrClosed)
	}
	for _, pool := range []*ScalarPool{nil, {}} {
		require.Zero(t, pool.Len()+pool.Cap())
		require.Nil(t, pool.Runtime())
		require.ErrorIs(t, pool.Release(), ErrMisuse)
		_, err := NewScalar[uint32](pool, 1)
		require.Error(t, err)
	}
}

// TestBindTakesNothingElse uses the launch and the pass of an Unsafe variant from within its bind function: a second launch
// would take the place of the first, which would then not run.
func TestBindTakesNothingElse(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	pool, err := NewScalarPool(rt, 2)
	require.NoError(t, err)
	v, err := NewScalar[uint32](pool, 7)
	require.NoError(t, err)
	n, err := NewScalar[uint32](pool, 4)
	require.NoError(t, err)
	bind := func(b *ScalarBinder) error { return errors.Join(b.Uint32(1, v), b.Uint32(2, n)) }

	err = rt.Run(func(p *Pass) error {
		return unsafeFill(p, x, 7, func(b *ScalarBinder) error {
			return errors.Join(bind(b), unsafeFill(p, y, 9, nil))
		})
	})
	require.ErrorIs(t, err, ErrMisuse)
	require.ErrorContains(t, err, "fill: bind: fill: launch: have one within the bind function of another")

	// The inner error may be lost; the outer launch is what it was.
	require.NoError(t, rt.Run(func(p *Pass) error {
		return unsafeFill(p, x, 7, func(b *ScalarBinder) error {
			_ = unsafeFill(p, y, 9, nil)
			return bind(b)
		})
	}))
	got := make([]uint32, 4)
	require.NoError(t, x.Read(got))
	require.Equal(t, []uint32{7, 7, 7, 7}, got)
	require.NoError(t, y.Read(got))
	require.Equal(t, []uint32{0, 0, 0, 0}, got)

	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, unsafeFill(p, x, 7, bind))
		if !raceEnabled {
			plain := func(b *ScalarBinder) error { _ = b.Uint32(1, v); return b.Uint32(2, n) }
			require.Zero(t, testing.AllocsPerRun(100, func() { _ = unsafeFill(p, x, 7, plain) }))
		}
		return nil
	}))

	for name, call := range map[string]func(l *Launch){
		"binding":   func(l *Launch) { l.Uint32(3, 1) },
		"constant":  func(l *Launch) { l.ConstantBool(0, true) },
		"memory":    func(l *Launch) { l.ThreadgroupMemory(0, 16) },
		"again":     func(l *Launch) { l.Scalars(bind) },
		"dispatch":  func(l *Launch) { _ = l.Dispatch(D1(1), D1(1)) },
		"recovered": func(l *Launch) { panic("a panic of the caller") },
	} {
		err := rt.Run(func(p *Pass) error {
			l := p.Kernel("fill")
			l.Write(0, x.View())
			l.Uint32(1, 7)
			l.Uint32(2, 4)
			func() {
				defer func() { _ = recover() }()
				l.Scalars(func(b *ScalarBinder) error {
					call(l)
					return bind(b)
				})
			}()
			err := l.Dispatch(D1(1), D1(32))
			require.NoError(t, unsafeFill(p, x, 7, bind), name) // the pass goes on
			return err
		})
		require.ErrorIs(t, err, ErrMisuse, name)
		require.ErrorContains(t, err, "fill: bind: have a ", name)
	}
}
