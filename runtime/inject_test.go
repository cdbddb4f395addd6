package runtime

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft"
	"github.com/ingot-metal/ingot/objc"
)

// everything uses a device in every way that a runtime has. Each call gives a right result or an error; the errors are
// returned.
func everything(t *testing.T, dev mtl.Device, opts ...Option) (failed []error) {
	t.Helper()
	check := func(err error) bool {
		if err == nil {
			return true
		}
		var e *Error
		require.ErrorAs(t, err, &e, "%v", err)
		failed = append(failed, err)
		return false
	}
	want := func(what string, got []uint32, value uint32) {
		t.Helper()
		for i, v := range got {
			require.Equal(t, value, v, "%s: element %d, after %v", what, i, failed)
		}
	}
	rt, err := Open(append([]Option{WithDevice(dev), WithLibrary(testKernels)}, opts...)...)
	if !check(err) {
		return failed
	}
	defer func() {
		check(rt.Close())
		if !errors.Is(errors.Join(failed...), ErrTimeout) { // then the device may still write to what it got
			require.Zero(t, rt.Stats().LiveAllocations)
		}
	}()
	got := make([]uint32, 8)

	x, errX := NewSlice[uint32](rt, 8)
	if check(errX) && check(rt.Run(func(p *Pass) error { return errors.Join(fill(p, x, 2), bump(p, x, 1)) })) && check(x.Read(got)) {
		want("run", got, 7)
	}
	y, err := SliceOf(rt, []uint32{3, 3, 3, 3, 3, 3, 3, 3}, Private)
	if check(err) {
		if check(y.Read(got)) {
			want("private memory", got, 3)
		}
		if check(y.Write(make([]uint32, 8))) && check(y.Read(got)) {
			want("private memory written", got, 0)
		}
		check(y.Release())
	}
	if z, err := NewSlice[uint32](rt, 8); check(err) {
		prog, err := rt.Record(func(p *Pass) error { return errors.Join(fill(p, z, 1), bump(p, z, 2)) })
		if check(err) {
			for range 2 {
				if check(prog.Run()) && check(z.Read(got)) {
					want("replay", got, 5)
				}
			}
			check(prog.Release())
		}
		if m, err := z.Map(); check(err) {
			for i := range m.Data() {
				m.Data()[i] = 9
			}
			if check(m.Unmap()) && check(z.Read(got)) {
				want("mapping", got, 9)
			}
		}
		check(z.Release())
	}
	if temps, err := NewTempArena(rt, 1024); check(err) {
		for range 2 {
			if a, err := Temp[uint32](temps, 8); check(err) && check(rt.Run(func(p *Pass) error { return bump(p, a, 4) })) && check(a.Read(got)) {
				want("temporary", got, 4)
			}
			check(temps.Reset())
		}
		check(temps.Release())
	}
	if pool, err := NewScalarPool(rt, 4); check(err) {
		if v, err := NewScalar[uint32](pool, 6); check(err) {
			check(v.Set(7))
		}
		check(pool.Release())
	}
	if s, err := rt.NewStream(); check(err) {
		// One result of a stream is the source of the next, over some chunks.
		var last *Future[uint32]
		value := uint32(0)
		for i := range uint32(20) {
			from := last
			f, err := Compute(s, 8, func(p *Pass, out Slice[uint32]) error {
				if from == nil {
					return fill(p, out, i)
				}
				return errors.Join(duplicate(p, out, from.Slice()), bump(p, out, i))
			})
			if !check(err) {
				break
			}
			value = 3*value + i
			if last != nil {
				check(last.Release())
			}
			last = f
		}
		if last != nil {
			if check(last.Read(context.Background(), got)) {
				want("stream", got, value)
			}
			check(last.Release())
		}
		check(s.Wait(context.Background()))
		check(s.Close())
	}
	check(rt.Wait(context.Background()))
	return failed
}

// TestFaultEverywhere lets each allocation, mapping, pipeline and commit of everything fail in turn: no call gives a wrong
// result, nothing is left, and the next runtime works.
func TestFaultEverywhere(t *testing.T) {
	goroutines := goruntime.NumGoroutine()
	dev := softDevice(t, soft.Options{Workers: 1})
	require.Empty(t, everything(t, dev))
	before := soft.Stats(dev)
	require.Empty(t, everything(t, dev))
	after := soft.Stats(dev)
	sent := func(selector string) int { return int(after.Messages[selector] - before.Messages[selector]) }
	for _, c := range []struct {
		name  string
		times int
		fault func(n int) soft.Faults
	}{
		{"allocation", sent("newBufferWithLength:options:") + sent("newIndirectCommandBufferWithDescriptor:maxCommandCount:options:"),
			func(n int) soft.Faults { return soft.Faults{Allocation: n} }},
		{"allocations", sent("newBufferWithLength:options:"), func(n int) soft.Faults { return soft.Faults{Allocation: n, Times: 2} }},
		{"contents", sent("contents"), func(n int) soft.Faults { return soft.Faults{Contents: n} }},
		{"pipeline", sent("newComputePipelineStateWithDescriptor:options:reflection:error:"), func(n int) soft.Faults { return soft.Faults{Pipeline: n} }},
		{"pipelines", sent("newComputePipelineStateWithDescriptor:options:reflection:error:"), func(n int) soft.Faults { return soft.Faults{Pipeline: n, Times: 8} }},
		{"commit", int(after.Commits - before.Commits), func(n int) soft.Faults { return soft.Faults{Commit: n} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NotZero(t, c.times)
			seen := 0
			for n := 1; n <= c.times; n++ {
				live := objc.LiveObjects()
				require.NoError(t, soft.Inject(dev, c.fault(n)))
				failed := everything(t, dev)
				require.NoError(t, soft.Inject(dev, soft.Faults{}))
				for _, err := range failed {
					require.ErrorIs(t, err, ErrDevice, "%s %d", c.name, n)
				}
				if len(failed) > 0 {
					seen++
				}
				require.Equal(t, live, objc.LiveObjects(), "%s %d", c.name, n)
				require.Zero(t, soft.Stats(dev).Objects)
				require.Zero(t, soft.Stats(dev).Allocated)
				require.Empty(t, everything(t, dev), "the next runtime after %s %d", c.name, n)
			}
			t.Logf("%d of %d were reported, the others made good", seen, c.times)
			if c.name != "allocation" && c.name != "pipeline" { // which are tried twice
				require.NotZero(t, seen)
			}
		})
	}
	awaitGoroutines(t, goroutines)
}

// TestRemovalEverywhere loses the device at each commit in turn.
func TestRemovalEverywhere(t *testing.T) {
	count := softDevice(t, soft.Options{Workers: 1})
	require.Empty(t, everything(t, count))
	commits := int(soft.Stats(count).Commits)
	for n := 1; n <= commits; n++ {
		live := objc.LiveObjects()
		dev := soft.New(soft.Options{Workers: 1, Faults: soft.Faults{Remove: n}})
		failed := everything(t, dev)
		if uint64(n) > soft.Stats(dev).Commits { // a stream commits more or less often
			dev.Release()
			break
		}
		require.NotEmpty(t, failed)
		for _, err := range failed {
			require.ErrorIs(t, err, ErrDevice, "removal at %d", n)
		}
		require.ErrorIs(t, errors.Join(failed...), ErrDeviceLost)
		require.Zero(t, soft.Stats(dev).Objects)
		dev.Release()
		require.Equal(t, live, objc.LiveObjects(), "removal at %d", n)
	}
	require.Empty(t, everything(t, count), "another device goes on")
}

// TestHangEverywhere has the device never complete a commit, each in turn.
func TestHangEverywhere(t *testing.T) {
	goroutines := goruntime.NumGoroutine()
	for n := 1; n <= 13; n++ {
		dev := soft.New(soft.Options{Workers: 1, Faults: soft.Faults{Hang: n}})
		failed := everything(t, dev, WithTimeout(300*time.Millisecond))
		if uint64(n) <= soft.Stats(dev).Commits {
			require.NotEmpty(t, failed)
		}
		// Beyond that there are failures only where a machine is so slow that good work takes too long.
		for _, err := range failed {
			require.ErrorIs(t, err, ErrTimeout, "hang at %d: %v", n, err)
		}
		require.NoError(t, soft.Remove(dev)) // which ends what hangs
		awaitIdle(t, dev)
		dev.Release()
	}
	awaitGoroutines(t, goroutines)
}
