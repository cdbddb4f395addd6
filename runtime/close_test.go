package runtime

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestCloseWaitsForTheDevice has a device that holds command buffers for a while after they have completed: nothing is
// left of them when Close has returned.
func TestCloseWaitsForTheDevice(t *testing.T) {
	d := &fake{}
	d.holds = 20 * time.Millisecond
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 16)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }))
	}
}

// TestCloseUnderUse closes a runtime while other goroutines use it in every way: each of their calls succeeds or says
// why not, and nothing is left at the end.
func TestCloseUnderUse(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{}, WithMaxInFlight(3))
	shared, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, shared, 1) })
	require.NoError(t, err)
	pool, err := NewScalarPool(rt, 1)
	require.NoError(t, err)
	scalar, err := NewScalar[uint32](pool, 1)
	require.NoError(t, err)
	work := []func() error{
		func() error {
			x, err := NewSlice[uint32](rt, 300)
			if err != nil {
				return err
			}
			return errors.Join(rt.Run(func(p *Pass) error { return fill(p, x, 1) }), x.Release())
		},
		func() error {
			s, err := prog.Replay()
			if err != nil {
				return err
			}
			_ = s.GPUTime()
			return s.Wait(t.Context())
		},
		func() error { return shared.Read(make([]uint32, 64)) },
		func() error { return shared.Write(make([]uint32, 64)) },
		func() error {
			_, err := rt.Kernel("copy")
			_ = rt.Stats()
			return err
		},
		func() error {
			if err := scalar.Set(1); err != nil {
				return err
			}
			_, err := scalar.Get()
			return err
		},
		func() error {
			p, err := rt.Record(func(p *Pass) error { return fill(p, shared, 1) })
			if err != nil {
				return err
			}
			return errors.Join(p.Run(), p.Release())
		},
	}
	var wg sync.WaitGroup
	for range 2 {
		for _, f := range work {
			wg.Go(func() {
				for {
					if err := f(); errors.Is(err, ErrClosed) {
						return
					} else if err != nil && !errors.Is(err, ErrBusy) {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	time.Sleep(30 * time.Millisecond)
	// It is refused when a goroutine that is in the middle of a pass does not get to run for a second.
	eventually(t, func() bool {
		err = rt.Close()
		return !errors.Is(err, ErrBusy)
	}, "still busy")
	require.NoError(t, err)
	wg.Wait()
	require.Zero(t, rt.Stats().LiveAllocations)
	require.Zero(t, rt.Stats().InFlight)
}

func TestManyCommands(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	const n = maxIndirectCommands + 10
	prog, err := rt.Record(func(p *Pass) error {
		for i := range n {
			if err := fill(p, x.Slice(i%64, i%64+1), uint32(i)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 2, prog.Stats().IndirectBuffers)
	require.Equal(t, n, prog.Stats().Commands)
	require.LessOrEqual(t, prog.Stats().Messages, 20)
	require.NoError(t, prog.Run())
	executed, _ := d.counts()
	require.Equal(t, n, executed)
	got := make([]uint32, 64)
	require.NoError(t, x.Read(got))
	require.EqualValues(t, n-1, got[(n-1)%64])
	require.EqualValues(t, n-64, got[n%64])
}

// TestManyBuffers declares more buffers than one message takes.
func TestManyBuffers(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x := make([]Slice[uint32], declareAtOnce+20)
	for i := range x {
		var err error
		x[i], err = NewSlice[uint32](rt, 1)
		require.NoError(t, err)
	}
	prog, err := rt.Record(func(p *Pass) error {
		for i := range x {
			if err := fill(p, x[i], uint32(i)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 9, prog.Stats().Messages)
	require.NoError(t, prog.Run())
	got := []uint32{0}
	for i := range x {
		require.NoError(t, x[i].Read(got))
		require.EqualValues(t, i, got[0])
	}
}
