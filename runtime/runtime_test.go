package runtime

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
)

func TestRunAndRead(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 100)
	require.NoError(t, err)
	require.Equal(t, 100, x.Len())
	require.Same(t, rt, x.Runtime())
	got := make([]uint32, 100)
	require.NoError(t, x.Read(got))
	require.Equal(t, make([]uint32, 100), got, "new memory is zero")

	y, err := SliceOf(rt, []uint32{1, 2, 3, 4})
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.Same(t, rt, p.Runtime())
		if err := fill(p, x.Slice(10, 14), 7); err != nil {
			return err
		}
		if err := bump(p, x.Slice(12, 13), 2); err != nil {
			return err
		}
		if err := duplicate(p, x.Slice(0, 4), y); err != nil {
			return err
		}
		require.Equal(t, 3, p.Count())
		require.Equal(t, 1, p.Barriers(), "only the bump conflicts")
		return nil
	}))
	require.NoError(t, x.Slice(0, 15).Read(got[:15]))
	require.Equal(t, []uint32{1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 7, 7, 23, 7, 0}, got[:15])
	require.NoError(t, y.Write([]uint32{9, 9, 9, 9}))
	require.NoError(t, rt.Run(func(p *Pass) error { return duplicate(p, x.Slice(0, 4), y) }))
	require.NoError(t, x.Slice(0, 4).Read(got[:4]))
	require.Equal(t, []uint32{9, 9, 9, 9}, got[:4])
	require.NoError(t, x.Release())
	require.NoError(t, rt.Close())
	require.ErrorIs(t, rt.Close(), ErrClosed)
	require.ErrorIs(t, rt.Err(), ErrClosed)
	require.ErrorIs(t, y.Read(make([]uint32, 4)), ErrClosed)
	require.ErrorIs(t, y.Release(), ErrClosed)
	_, err = NewSlice[uint32](rt, 1)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, rt.Run(func(*Pass) error { return nil }), ErrClosed)
}

func TestReusedMemoryIsZero(t *testing.T) {
	rt := new(fake).open(t)
	for range 3 {
		x, err := NewSlice[uint8](rt, 1000)
		require.NoError(t, err)
		b := make([]uint8, 1000)
		require.NoError(t, x.Read(b))
		require.Equal(t, make([]uint8, 1000), b)
		for i := range b {
			b[i] = 0xFF
		}
		require.NoError(t, x.Write(b))
		require.NoError(t, x.Release())
	}
	require.EqualValues(t, 1, rt.Stats().Buffers, "the same buffer each time")
	require.EqualValues(t, 3, rt.Stats().Allocations)
	require.Zero(t, rt.Stats().LiveBytes)
	require.Equal(t, 1024, rt.Stats().PooledBytes)
}

func TestSliceRefusals(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 8)
	require.NoError(t, err)
	require.ErrorIs(t, x.Slice(3, 9).Valid(), ErrShape)
	require.ErrorContains(t, x.Slice(3, 9).Valid(), "[3:9]")
	require.ErrorIs(t, x.Slice(-1, 2).Read(nil), ErrShape)
	require.ErrorIs(t, x.Slice(5, 4).Slice(0, 0).Valid(), ErrShape)
	require.ErrorIs(t, x.View().Bytes(4, 33).Valid(), ErrShape)
	require.NoError(t, x.View().Bytes(4, 32).Valid())
	require.ErrorIs(t, x.Read(make([]uint32, 7)), ErrShape)
	require.ErrorIs(t, x.Write(make([]uint32, 9)), ErrShape)
	require.ErrorIs(t, x.Slice(0, 8).Release(), ErrMisuse)
	require.ErrorIs(t, Slice[uint32]{}.Release(), ErrShape)
	require.ErrorIs(t, Slice[uint32]{}.Read(nil), ErrShape)
	require.Nil(t, View{}.Runtime())
	require.NoError(t, x.Slice(8, 8).Read(nil))
	require.NoError(t, x.Release())
	require.ErrorIs(t, x.Release(), ErrClosed)
	require.ErrorIs(t, x.Valid(), ErrClosed)
	require.ErrorIs(t, x.Slice(1, 2).Read(make([]uint32, 1)), ErrClosed)
	_, err = NewSlice[uint32](rt, -1)
	require.ErrorIs(t, err, ErrShape)
	_, err = NewSlice[uint32](nil, 1)
	require.ErrorIs(t, err, ErrMisuse)
	_, err = NewSlice[uint64](rt, 1<<61)
	require.ErrorIs(t, err, ErrShape)
	_, err = NewSlice[uint8](rt, 64<<20+1)
	require.ErrorIs(t, err, ErrLimit)
	big, err := NewSlice[uint8](rt, 64<<20-1)
	require.NoError(t, err, "up to the limit")
	require.NoError(t, big.Release())
}

func TestViews(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 16)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 16)
	require.NoError(t, err)
	a, b := x.Slice(0, 8).View(), x.Slice(8, 16).View()
	require.False(t, a.Overlaps(b))
	require.True(t, a.Overlaps(x.Slice(7, 9).View()))
	require.False(t, a.Overlaps(y.View()))
	require.False(t, a.Overlaps(x.Slice(4, 4).View()))
	require.False(t, View{}.Overlaps(View{}))
	require.True(t, a.Same(x.Slice(0, 8).View()))
	require.Equal(t, 32, b.Offset())
	require.Equal(t, 32, b.Len())
	require.Same(t, rt, b.Runtime())
}

func TestEncodeErrorAndPanicSubmitNothing(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	want := errors.New("no")
	require.Equal(t, want, rt.Run(func(p *Pass) error {
		require.NoError(t, fill(p, x, 1))
		return want
	}))
	var stale *Pass
	require.PanicsWithValue(t, "oops", func() {
		_ = rt.Run(func(p *Pass) error {
			stale = p
			require.NoError(t, fill(p, x, 1))
			panic("oops")
		})
	})
	_, err = rt.Record(func(p *Pass) error {
		require.NoError(t, fill(p, x, 1))
		return want
	})
	require.Equal(t, want, err)
	n, _ := d.counts()
	require.Zero(t, n)
	require.ErrorIs(t, fill(stale, x, 1), ErrMisuse)
	require.ErrorIs(t, stale.Barrier(), ErrMisuse)
	require.Zero(t, stale.Count())
	require.ErrorIs(t, rt.Run(nil), ErrMisuse)
	_, err = rt.Record(nil)
	require.ErrorIs(t, err, ErrMisuse)
	require.NoError(t, rt.Run(func(*Pass) error { return nil }))
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }), "still works")
}

func TestCloseDuringPass(t *testing.T) {
	rt := new(fake).open(t)
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.ErrorIs(t, rt.Close(), ErrBusy)
		return nil
	}))
}

func TestHostAccessDuringPass(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	b := make([]uint32, 4)
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, duplicate(p, y, x))
		require.NoError(t, x.Read(b), "the pass only reads it")
		require.ErrorIs(t, x.Write(b), ErrBusy)
		require.ErrorIs(t, y.Read(b), ErrBusy)
		return nil
	}))
	require.NoError(t, y.Read(b))
	require.NoError(t, x.Write(b))
}

func TestReleaseBeforeCompletion(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	y, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	s, err := rt.Submit(func(p *Pass) error {
		if err := fill(p, x, 5); err != nil {
			return err
		}
		if err := x.Release(); err != nil {
			return err
		}
		require.ErrorIs(t, fill(p, x, 6), ErrClosed)
		require.Equal(t, 1, p.Count())
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Wait(context.Background()))
	require.True(t, s.Done())
	require.NoError(t, s.Err())
	require.Equal(t, 500*time.Millisecond, s.GPUTime())
	require.NoError(t, y.Release())
	var none context.Context
	require.NoError(t, Submission{}.Wait(none))
	require.NoError(t, s.Wait(none), "no context is no deadline")
	require.True(t, Submission{}.Done())
	require.NoError(t, Submission{}.Err())
	require.Zero(t, Submission{}.GPUTime())
}

func TestForeignMemory(t *testing.T) {
	a := new(fake).open(t)
	x, err := NewSlice[uint32](a, 4)
	require.NoError(t, err)
	b := new(fake).open(t)
	require.NoError(t, b.Run(func(p *Pass) error {
		require.ErrorIs(t, fill(p, x, 1), ErrForeign)
		require.Zero(t, p.Count())
		return nil
	}))
}

func TestNestedPasses(t *testing.T) {
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 1)
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error {
		require.NoError(t, bump(p, x, 1))
		return rt.Run(func(q *Pass) error { return fill(q, x, 10) }) // committed first
	}))
	got := []uint32{0}
	require.NoError(t, x.Read(got))
	require.EqualValues(t, 31, got[0])
}

func TestOptionsRefused(t *testing.T) {
	queue := softDevice(t, soft.Options{}).NewCommandQueue()
	defer queue.Release()
	for sentinel, options := range map[error][]Option{
		ErrLimit:  {WithMaxInFlight(0), WithMaxInFlight(61), WithTimeout(0), WithPoolLimit(-1)},
		ErrMisuse: {WithHazards(9), WithLibrary(nil), WithDevice(mtl.Device{}), WithDevice(mtl.DeviceOf(queue.ID()))},
	} {
		for _, o := range options {
			_, err := Open(o)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "Open", e.Func)
			require.ErrorIs(t, err, sentinel)
		}
	}
}

func TestOptions(t *testing.T) {
	rt := new(fake).open(t, nil, WithLogger(nil), WithMaxInFlight(1), WithTimeout(time.Hour), WithHazards(HazardsManual), WithPoolLimit(0))
	for range 5 {
		x, err := NewSlice[uint32](rt, 1)
		require.NoError(t, err)
		_, err = rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
		require.NoError(t, err)
		require.NoError(t, x.Release())
		require.LessOrEqual(t, rt.Stats().InFlight, 1)
	}
	require.Zero(t, rt.Stats().PooledBytes)
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*Error{
		"f: x: have 3, need 4: shape mismatch": {Func: "f", Arg: "x", Have: "3", Need: "4", Err: ErrShape},
		"f: need 4":                            {Func: "f", Need: "4"},
		"x: have 1":                            {Arg: "x", Have: "1"},
		"closed or released":                   {Err: ErrClosed},
	} {
		require.Equal(t, want, e.Error())
	}
	d := &DeviceError{Op: "command buffer", Domain: "D", Code: 3, Text: "bad", Encoders: []string{"a faulted", "b pending"}}
	require.Equal(t, "command buffer: D 3: bad [a faulted; b pending]", d.Error())
	require.Equal(t, "x: Metal gave no reason", (&DeviceError{Op: "x"}).Error())
	e := &Error{Func: "f", Err: because(ErrTimeout, d)}
	require.ErrorIs(t, e, ErrTimeout)
	require.ErrorIs(t, e, ErrDevice)
	require.NotErrorIs(t, e, ErrClosed)
	var de *DeviceError
	require.ErrorAs(t, fmt.Errorf("wrapped: %w", e), &de)
}
