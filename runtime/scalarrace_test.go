package runtime

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
)

// TestScalarSetBesideReplays sets a scalar while other goroutines replay programs that read it twice: a Set is refused or falls
// between two replays. Under the race detector, which sees the device's reads too, also no access meets another.
func TestScalarSetBesideReplays(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithoutIndirect()}} {
		rt, _ := softRuntime(t, soft.Options{}, opts...)
		pool, err := NewScalarPool(rt, 1)
		require.NoError(t, err)
		v, err := NewScalar[uint32](pool, 0)
		require.NoError(t, err)
		x, y := sliceOf(t, rt, 0), sliceOf(t, rt, 0)
		encode := func(dst Slice[uint32]) func(p *Pass) error {
			return func(p *Pass) error {
				l := p.Kernel("fill")
				l.Write(0, dst.View())
				l.Uint32(1, 0)
				l.Scalars(func(b *ScalarBinder) error { return b.Uint32(1, v) })
				l.Uint32(2, 1)
				return l.Dispatch(D1(1), D1(1))
			}
		}
		a, err := rt.Record(encode(x))
		require.NoError(t, err)
		b, err := rt.Record(encode(y))
		require.NoError(t, err)
		both, err := Join(a, b)
		require.NoError(t, err)
		var set, refused, replayed atomic.Int64
		var wg sync.WaitGroup
		stop := make(chan struct{})
		wg.Go(func() {
			for i := uint32(1); ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				switch err := v.Set(i); {
				case err == nil:
					set.Add(1)
				case errors.Is(err, ErrBusy):
					refused.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
		for range 2 {
			wg.Go(func() {
				for i := 0; i < 60 || set.Load() == 0 && i < 1e6; i++ {
					if err := both.Run(); err != nil {
						t.Error(err)
						return
					}
					replayed.Add(1)
				}
			})
		}
		wg.Go(func() {
			for (replayed.Load() < 120 || set.Load() == 0) && !t.Failed() {
				if err := rt.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			}
			close(stop)
		})
		wg.Wait()
		require.NoError(t, both.Run())
		last, err := v.Get()
		require.NoError(t, err)
		require.Equal(t, []uint32{last}, contents(t, x))
		require.Equal(t, []uint32{last}, contents(t, y))
		t.Logf("%d times set, %d times refused, %d replays", set.Load(), refused.Load(), replayed.Load())
		require.NotZero(t, set.Load()+refused.Load())
	}
}
