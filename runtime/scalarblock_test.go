package runtime

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScalarBlock(t *testing.T) {
	rt, other := new(fake).open(t), new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	pool, err := NewScalarPool(rt, 4)
	require.NoError(t, err)
	seven := []byte{7, 0, 0, 0}
	v, err := NewScalarBlock(pool, seven)
	require.NoError(t, err)
	long, err := NewScalarBlock(pool, make([]byte, 36))
	require.NoError(t, err)
	require.Equal(t, 36, long.Len())
	require.Equal(t, 36, long.View().Len())
	require.Equal(t, scalarStride, long.View().Offset())
	n, err := NewScalar[uint32](pool, 4)
	require.NoError(t, err)
	require.Equal(t, 3*scalarStride, n.View().Offset(), "behind the two places of the block")
	require.Equal(t, 4, pool.Len())
	require.Equal(t, []int{0, 1, 1, 2, 128}, []int{ScalarPlaces(0), ScalarPlaces(4), ScalarPlaces(32), ScalarPlaces(33), ScalarPlaces(4096)})
	foreignPool, err := NewScalarPool(other, 1)
	require.NoError(t, err)
	foreign, err := NewScalarBlock(foreignPool, seven)
	require.NoError(t, err)

	call := func(p *Pass, value byte, bind func(*ScalarBinder) error) error {
		l := p.Kernel("fill")
		l.Write(0, x.View())
		l.Params(1, []byte{value, 0, 0, 0})
		l.Uint32(2, 4)
		l.Scalars(bind)
		return l.Dispatch(D1(1), D1(32))
	}
	with := func(block ScalarBlock) func(*ScalarBinder) error {
		return func(b *ScalarBinder) error { return errors.Join(b.Block(1, block), b.Uint32(2, n)) }
	}
	for name, c := range map[string]struct {
		want error
		text string
		bind func(b *ScalarBinder) error
	}{
		"missing":         {ErrMisuse, "index 1: have no scalar", func(b *ScalarBinder) error { return b.Uint32(2, n) }},
		"longer":          {ErrScalar, "have 36 bytes, need 4", with(long)},
		"zero block":      {ErrMisuse, "the zero ScalarBlock", with(ScalarBlock{})},
		"foreign":         {ErrForeign, "another runtime", with(foreign)},
		"scalar for it":   {ErrScalar, "have a uint32, need parameters", func(b *ScalarBinder) error { return b.Uint32(1, n) }},
		"block elsewhere": {ErrScalar, "have parameters, need a uint32", func(b *ScalarBinder) error { return b.Block(2, v) }},
		"no slot":         {ErrKernel, "need one of slots 1, 2", func(b *ScalarBinder) error { return b.Block(0, v) }},
		"twice":           {ErrMisuse, "a second scalar", func(b *ScalarBinder) error { return errors.Join(b.Block(1, v), b.Block(1, v)) }},
	} {
		err := refused(t, rt, "fill", func(l *Launch) error { return call(l.p, 7, c.bind) })
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.text, name)
	}
	require.ErrorContains(t, refused(t, rt, "fill", func(l *Launch) error { return call(l.p, 8, with(v)) }), "other bytes, need those that were validated")

	got := make([]uint32, 4)
	prog, err := rt.Record(func(p *Pass) error { return call(p, 7, with(v)) })
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	require.NoError(t, x.Read(got))
	require.Equal(t, []uint32{7, 7, 7, 7}, got)
	// A recorded program reads the block anew on each replay.
	require.NoError(t, v.Set([]byte{9, 1, 0, 0}))
	require.NoError(t, prog.Run())
	require.NoError(t, x.Read(got))
	require.Equal(t, []uint32{0x109, 0x109, 0x109, 0x109}, got)
	now := make([]byte, 4)
	require.NoError(t, v.Get(now))
	require.Equal(t, []byte{9, 1, 0, 0}, now)

	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, v.Set(seven))
		require.NoError(t, call(p, 7, with(v)))
		require.ErrorIs(t, v.Set(seven), ErrBusy)
		require.NoError(t, long.Set(make([]byte, 36)), "another block of the pool is free")
		return nil
	}))
	require.ErrorIs(t, v.Set(make([]byte, 8)), ErrShape)
	require.ErrorIs(t, v.Get(make([]byte, 3)), ErrShape)
	require.ErrorIs(t, ScalarBlock{}.Set(nil), ErrMisuse)
	require.ErrorIs(t, ScalarBlock{}.Get(nil), ErrMisuse)
	require.Error(t, ScalarBlock{}.View().Valid())

	_, err = NewScalarBlock(pool, seven)
	require.ErrorIs(t, err, ErrLimit, "the pool is full")
	room, err := NewScalarPool(rt, 1)
	require.NoError(t, err)
	for _, n := range []int{0, 3, 6, MaxInlineBytes + 4, 33 * 4} {
		_, err = NewScalarBlock(room, make([]byte, n))
		require.ErrorIs(t, err, ErrLimit, n)
	}
	_, err = NewScalarBlock(nil, seven)
	require.ErrorIs(t, err, ErrMisuse)
	require.NoError(t, pool.Release())
	require.ErrorIs(t, v.Set(seven), ErrClosed)
	require.ErrorIs(t, v.Get(now), ErrClosed)
	_, err = NewScalarBlock(pool, seven)
	require.ErrorIs(t, err, ErrClosed)
}
