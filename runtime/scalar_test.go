package runtime

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// unsafeFill is fill with the caller's own scalars.
func unsafeFill(p *Pass, dst Slice[uint32], v uint32, bind func(*ScalarBinder) error) error {
	l := p.Kernel("fill")
	l.Write(0, dst.View())
	l.Uint32(1, v)
	l.Uint32(2, uint32(dst.Len()))
	l.Scalars(bind)
	return l.Dispatch(D1(1), D1(32))
}

func TestScalarBinder(t *testing.T) {
	rt, other := new(fake).open(t), new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	pool, err := NewScalarPool(rt, 4)
	require.NoError(t, err)
	require.Same(t, rt, pool.Runtime())
	v, err := NewScalar[uint32](pool, 7)
	require.NoError(t, err)
	n, err := NewScalar[uint32](pool, 4)
	require.NoError(t, err)
	f, err := NewScalar[float32](pool, 4)
	require.NoError(t, err)
	i, err := NewScalar[int32](pool, 4)
	require.NoError(t, err)
	require.Equal(t, 4, pool.Len())
	require.Equal(t, 4, pool.Cap())
	_, err = NewScalar[uint32](pool, 1)
	require.ErrorIs(t, err, ErrLimit)
	pool2, err := NewScalarPool(other, 1)
	require.NoError(t, err)
	foreign, err := NewScalar[uint32](pool2, 7)
	require.NoError(t, err)

	var kept *ScalarBinder
	for name, c := range map[string]struct {
		want error
		text string
		bind func(b *ScalarBinder) error
	}{
		"undocumented index": {ErrKernel, "need one of slots 1, 2", func(b *ScalarBinder) error { return b.Uint32(0, v) }},
		"index out of range": {ErrKernel, "index 99", func(b *ScalarBinder) error { return b.Uint32(99, v) }},
		"twice":              {ErrMisuse, "a second scalar", func(b *ScalarBinder) error { return errors.Join(b.Uint32(1, v), b.Uint32(1, v)) }},
		"missing":            {ErrMisuse, "index 2: have no scalar", func(b *ScalarBinder) error { return b.Uint32(1, v) }},
		"wrong value":        {ErrScalar, "have 4, need 7", func(b *ScalarBinder) error { return b.Uint32(1, n) }},
		"float for uint":     {ErrScalar, "have a float32, need a uint32", func(b *ScalarBinder) error { return b.Float32(2, f) }},
		"int for uint":       {ErrScalar, "have an int32", func(b *ScalarBinder) error { return b.Int32(2, i) }},
		"foreign":            {ErrForeign, "another runtime", func(b *ScalarBinder) error { return b.Uint32(1, foreign) }},
		"zero scalar":        {ErrMisuse, "the zero Scalar", func(b *ScalarBinder) error { return b.Uint32(1, Scalar[uint32]{}) }},
		"the caller's error": {ErrLimit, "limit", func(b *ScalarBinder) error { return errors.Join(b.Uint32(1, v), b.Uint32(2, n), ErrLimit) }},
		"an error ignored": {ErrScalar, "index 1", func(b *ScalarBinder) error {
			_ = b.Uint32(1, n)
			_ = b.Uint32(2, n)
			kept = b
			return nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			err := refused(t, rt, "fill", func(l *Launch) error { return unsafeFill(l.p, x, 7, c.bind) })
			require.ErrorIs(t, err, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
	require.ErrorIs(t, kept.Uint32(1, v), ErrMisuse)

	both := func(b *ScalarBinder) error { return errors.Join(b.Uint32(1, v), b.Uint32(2, n)) }
	prog, err := rt.Record(func(p *Pass) error { return unsafeFill(p, x, 7, both) })
	require.NoError(t, err)
	got := make([]uint32, 4)
	require.NoError(t, prog.Run())
	require.NoError(t, x.Read(got))
	require.EqualValues(t, []uint32{7, 7, 7, 7}, got)
	// A recorded program reads the scalar anew on each replay.
	require.NoError(t, v.Set(9))
	require.NoError(t, prog.Run())
	require.NoError(t, x.Read(got))
	require.EqualValues(t, []uint32{9, 9, 9, 9}, got)
	w, err := v.Get()
	require.NoError(t, err)
	require.EqualValues(t, 9, w)

	// With the right values directly, and with nil for the runtime's own storage.
	require.NoError(t, rt.Run(func(p *Pass) error { return errors.Join(unsafeFill(p, x, 9, both), unsafeFill(p, x, 3, nil)) }))
	require.NoError(t, x.Read(got))
	require.EqualValues(t, 3, got[0])

	require.NoError(t, pool.Release())
	require.ErrorIs(t, pool.Release(), ErrClosed)
	require.ErrorIs(t, v.Set(1), ErrClosed)
	_, err = v.Get()
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, refused(t, rt, "fill", func(l *Launch) error { return unsafeFill(l.p, x, 9, both) }), ErrClosed)
	require.NoError(t, prog.Run(), "the program keeps the storage")
	_, err = NewScalar[uint32](pool, 1)
	require.ErrorIs(t, err, ErrClosed)
}

func TestScalarSet(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	pool, err := NewScalarPool(rt, 2)
	require.NoError(t, err)
	f, err := NewScalar[float32](pool, 1.5)
	require.NoError(t, err)
	n, err := NewScalar[uint32](pool, 4)
	require.NoError(t, err)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		require.ErrorIs(t, f.Set(float32(bad)), ErrScalar)
	}
	v, err := f.Get()
	require.NoError(t, err)
	require.EqualValues(t, 1.5, v)
	require.NoError(t, n.Set(4))
	require.Equal(t, 4, n.View().Len())
	require.Equal(t, scalarStride, n.View().Offset())

	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	bind := func(b *ScalarBinder) error {
		one, err := NewScalarPool(rt, 1)
		if err != nil {
			return err
		}
		v, err := NewScalar[uint32](one, 1)
		return errors.Join(err, b.Uint32(1, v), b.Uint32(2, n), one.Release())
	}
	_, err = rt.Submit(func(p *Pass) error {
		// A scalar of storage that was released before the launch reached the encoder.
		require.ErrorIs(t, unsafeFill(p, x, 1, bind), ErrClosed)
		return nil
	})
	require.NoError(t, err)

	require.NoError(t, rt.Run(func(p *Pass) error {
		l := p.Kernel("fill")
		l.Write(0, x.View())
		l.Uint32(1, 1)
		l.Read(2, n.View())
		require.NoError(t, l.Dispatch(D1(1), D1(1)))
		require.ErrorIs(t, n.Set(3), ErrBusy, "the pass is open")
		require.ErrorIs(t, f.Set(3), ErrBusy, "bound as a view: the whole storage counts")
		return nil
	}))
	require.NoError(t, n.Set(4))
	require.NoError(t, f.Set(1.5))

	prog, err := rt.Record(func(p *Pass) error {
		l := p.Kernel("fill")
		l.Write(0, x.View())
		l.Bytes(1, []byte{1, 0, 0, 0})
		l.Uint32(2, 4)
		l.Scalars(func(b *ScalarBinder) error { return b.Uint32(2, n) })
		return l.Dispatch(D1(1), D1(1))
	})
	require.NoError(t, err)
	require.NoError(t, n.Set(3), "no replay is in flight")
	d.block.Lock()
	s, err := prog.Replay()
	require.NoError(t, err)
	require.ErrorIs(t, n.Set(2), ErrBusy)
	require.NoError(t, f.Set(2.5), "another scalar of the pool is free")
	d.block.Unlock()
	require.NoError(t, s.Wait(t.Context()))
	require.NoError(t, n.Set(2))

	require.ErrorIs(t, Scalar[uint32]{}.Set(1), ErrMisuse)
	_, err = Scalar[uint32]{}.Get()
	require.ErrorIs(t, err, ErrMisuse)
	require.Error(t, Scalar[uint32]{}.View().Valid())
	_, err = NewScalarPool(rt, 0)
	require.ErrorIs(t, err, ErrLimit)
	_, err = NewScalarPool(nil, 1)
	require.ErrorIs(t, err, ErrMisuse)
	_, err = NewScalar[uint32](nil, 1)
	require.ErrorIs(t, err, ErrMisuse)
}
