package runtime

import (
	"errors"
	"math"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

// Bugs that other Metal runtimes have recorded about hazards, pipelines and recorded programs. Each test is one of them.

// A switch for the whole process, turned by one goroutine, dropped the barriers of another's work.
func TestHazardsBelongToTheirRuntime(t *testing.T) {
	dev := softDevice(t, soft.Options{Order: soft.Shuffled})
	var wg sync.WaitGroup
	for _, h := range []Hazards{HazardsTracked, HazardsManual, HazardsTracked} {
		wg.Go(func() {
			rt, err := Open(WithDevice(dev), WithLibrary(testKernels), WithHazards(h))
			if err != nil {
				t.Error(err)
				return
			}
			defer rt.Close()
			x, err := NewSlice[uint32](rt, 4)
			if err != nil {
				t.Error(err)
				return
			}
			for range 100 {
				err := rt.Run(func(p *Pass) error {
					err := fill(p, x, 1)
					if h == HazardsManual {
						err = errors.Join(err, p.Barrier())
					}
					err = errors.Join(err, bump(p, x, 1))
					if n := p.Barriers(); n != 1 {
						t.Errorf("%d barriers", n)
					}
					return err
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// The second dispatch of a kernel was recorded without what it shares with the first: alone it had nothing bound.
func TestEveryCommandHasAllItsBindings(t *testing.T) {
	for _, opts := range [][]Option{nil, {WithoutIndirect()}} {
		rt, _ := softRuntime(t, soft.Options{}, opts...)
		x, y := sliceOf(t, rt, 1, 2), sliceOf(t, rt, 0, 0)
		prog, err := rt.Record(func(p *Pass) error {
			return errors.Join(duplicate(p, y, x), duplicate(p, y, x), bump(p, y, 1), bump(p, y, 1))
		})
		require.NoError(t, err)
		for i, want := range [][]uint32{{1, 2}, {1, 2}, {4, 7}, {13, 22}} {
			s, err := prog.ReplayRange(i, i+1)
			require.NoError(t, err)
			require.NoError(t, s.Wait(t.Context()))
			require.Equal(t, want, contents(t, y))
		}
	}
}

// Commands of kernels that cannot be in an indirect command buffer were left out of it, and nobody was told.
func TestMixedProgramsRunWhole(t *testing.T) {
	d := &fake{refuseICB: "add"}
	rt := d.open(t)
	x := sliceOf(t, rt, 0)
	prog, err := rt.Record(func(p *Pass) error { return errors.Join(fill(p, x, 1), bump(p, x, 1), fill(p, x, 2), bump(p, x, 1)) })
	require.NoError(t, err)
	ok, why := prog.Indirect()
	require.False(t, ok)
	require.Contains(t, why, "add")
	require.NoError(t, prog.Run())
	n, _ := d.counts()
	require.Equal(t, 4, n)
	require.Equal(t, []uint32{7}, contents(t, x))
}

// A replay that ran nothing was counted and reported as a success, and left its program in flight for ever.
func TestFailedReplaysAreNone(t *testing.T) {
	for _, selector := range []string{"commandBufferWithDescriptor:", "computeCommandEncoderWithDispatchType:"} {
		d := new(fake)
		rt := d.open(t)
		x, y := sliceOf(t, rt, 0), sliceOf(t, rt, 0)
		prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
		require.NoError(t, err)
		d.refuse.Store(&selector)
		for range maxEditions + 1 {
			_, err = prog.Replay()
			require.ErrorIs(t, err, ErrDevice)
		}
		d.refuse.Store(nil)
		require.Zero(t, rt.Stats().Replays)
		require.Zero(t, rt.Stats().Submissions)
		require.NoError(t, prog.Bind(Rebind(x, y)))
		require.Equal(t, 1, prog.Stats().Editions, "nothing is in flight")
		require.NoError(t, prog.Run())
		require.EqualValues(t, 1, rt.Stats().Replays)
		n, _ := d.counts()
		require.Equal(t, 1, n)
		require.NoError(t, prog.Release())
	}
}

// An indirect command buffer was freed while the device executed it.
func TestProgramsLastUntilTheirReplaysAreDone(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	live := objc.LiveObjects()
	x := sliceOf(t, rt, 0)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	icb := objc.Value(prog.now.indirect[0].mtl.ID())
	d.block.Lock()
	s, err := prog.Replay()
	require.NoError(t, err)
	require.NoError(t, prog.Release())
	require.NoError(t, x.Release())
	require.NotNil(t, icb)
	require.Greater(t, objc.LiveObjects(), live)
	require.Len(t, prog.editions[0].indirect, 1)
	d.block.Unlock()
	require.NoError(t, s.Wait(t.Context()))
	require.Empty(t, prog.editions[0].indirect)
}

// Barriers were left out for small buffers, which were taken for constants.
func TestSmallBuffersHaveHazardsToo(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{Order: soft.Reversed})
	x, y := sliceOf(t, rt, 1), sliceOf(t, rt, 0)
	encode := func(p *Pass) error {
		err := errors.Join(bump(p, x, 1), duplicate(p, y, x), bump(p, x, 1))
		require.Equal(t, 2, p.Barriers())
		return err
	}
	prog, err := rt.Record(encode)
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	require.Equal(t, []uint32{4}, contents(t, y))
	require.Equal(t, []uint32{13}, contents(t, x))
}

// Slot 31 was accepted and dropped, indices of threadgroup memory were not looked at, and a count beyond 32 bits wrapped.
func TestIndicesAndCountsAreChecked(t *testing.T) {
	rt := new(fake).open(t)
	x := sliceOf(t, rt, 1)
	good := func(l *Launch) {
		l.Write(0, x.View())
		l.Uint32(1, 1)
		l.Uint32(2, 1)
	}
	for name, use := range map[string]func(l *Launch) error{
		"slot 31":      func(l *Launch) error { l.Uint32(31, 1); return l.Dispatch(D1(1), D1(1)) },
		"slot max":     func(l *Launch) error { l.Read(math.MaxInt, x.View()); return l.Dispatch(D1(1), D1(1)) },
		"slot -1":      func(l *Launch) error { l.Bytes(-1, []byte{1}); return l.Dispatch(D1(1), D1(1)) },
		"memory 31":    func(l *Launch) error { l.ThreadgroupMemory(31, 16); return l.Dispatch(D1(1), D1(1)) },
		"memory max":   func(l *Launch) error { l.ThreadgroupMemory(math.MaxInt, 16); return l.Dispatch(D1(1), D1(1)) },
		"2^32 groups":  func(l *Launch) error { return l.Dispatch(D1(1<<32), D1(1)) },
		"2^32 threads": func(l *Launch) error { return l.DispatchThreads(D1(1<<32), D1(32)) },
		"wrapping":     func(l *Launch) error { return l.Dispatch(D1(1<<31), D1(32)) },
		"no threads":   func(l *Launch) error { return l.Dispatch(D1(1), D1(0)) },
	} {
		for _, recorded := range []bool{false, true} {
			encode := func(p *Pass) error {
				l := p.Kernel("fill")
				good(l)
				err := use(l)
				require.Error(t, err, name)
				require.Zero(t, p.Count(), name)
				return err
			}
			var err error
			if recorded {
				_, err = rt.Record(encode)
			} else {
				err = rt.Run(encode)
			}
			var e *Error
			require.ErrorAs(t, err, &e, name)
		}
	}
	require.Zero(t, rt.Stats().Submissions)
}

// A kernel of an added library with a name that was there already could never be reached.
func TestNoKernelHidesAnother(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	require.NoError(t, rt.AddLibrary(moreKernels))
	require.ErrorIs(t, rt.AddLibrary(moreKernels), ErrKernel)
	require.ErrorIs(t, rt.AddLibrary(testKernels), ErrKernel)
	x := sliceOf(t, rt, 5)
	require.NoError(t, rt.Run(func(p *Pass) error {
		l := p.Kernel("triple")
		l.ReadWrite(0, x.View())
		return errors.Join(l.Dispatch(D1(1), D1(1)), bump(p, x, 1))
	}))
	require.Equal(t, []uint32{46}, contents(t, x))
}

// Waiting by looking again and again added more than a millisecond to short work: a wait sleeps on the event.
func TestWaitsDoNotPoll(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x := sliceOf(t, rt, 1)
	d.block.Lock()
	s, err := rt.Submit(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	go func() {
		time.Sleep(100 * time.Millisecond)
		d.block.Unlock()
	}()
	begun := time.Now()
	n := int64(messages(rt, func() { err = s.Wait(t.Context()) }))
	require.NoError(t, err)
	require.Less(t, n, 20+4*time.Since(begun).Milliseconds()/10, "a look at event and status every 10 ms, and a few when it is done")
}

// Without checks, bad work hung the GPU for minutes. There is no way to turn them off here, and what only the device can see ends
// there.
func TestBadWorkEnds(t *testing.T) {
	library, err := os.ReadFile("../mtl/soft/testdata/kernels.metallib")
	require.NoError(t, err)
	dev := softDevice(t, soft.Options{StepLimit: 100_000})
	rt, err := Open(WithDevice(dev), WithLibrary(library), WithHazards(HazardsManual), WithoutIndirect())
	require.NoError(t, err)
	defer rt.Close()
	x := sliceOf(t, rt, 0, 0)
	require.ErrorIs(t, rt.Run(func(p *Pass) error {
		l := p.Kernel("endless")
		return l.Dispatch(D1(1), D1(1<<20))
	}), ErrKernel)
	err = rt.Run(func(p *Pass) error {
		l := p.Kernel("endless")
		l.ReadWrite(0, x.View())
		return l.Dispatch(D1(1), D1(1))
	})
	require.ErrorIs(t, err, ErrDevice)
	require.ErrorContains(t, err, "endless")
	t.Log(err)
}
