//go:build linux && objcdouble

package double

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/nn"
	"github.com/ingot-metal/ingot/runtime"
	"github.com/ingot-metal/ingot/runtime/half"
	"github.com/stretchr/testify/require"
)

// launches is the number of dispatches of the test's program: as many as a decode step of a large model has.
const launches = 1000

// program records work of two kinds, with barriers between.
func program(t testing.TB, rt *runtime.Runtime) (encode func(*runtime.Pass) error) {
	t.Helper()
	const rows, dim = 4, 128
	x, err := runtime.NewSlice[float32](rt, rows*dim)
	require.NoError(t, err)
	weight, err := runtime.NewSlice[float32](rt, dim)
	require.NoError(t, err)
	out, err := runtime.NewSlice[half.BFloat16](rt, rows*dim)
	require.NoError(t, err)
	return func(p *runtime.Pass) error {
		for range launches / 2 {
			if err := nn.RMSNormBF16(p, out, x, weight, rows, dim, 1e-6); err != nil {
				return err
			}
			if err := nn.RMSNormResidualAddF32(p, x, x, weight, rows, dim, 1e-6, 1); err != nil {
				return err
			}
		}
		return nil
	}
}

func open(t testing.TB, family mtl.GPUFamily) *runtime.Runtime {
	t.Helper()
	call(t, "objcdouble_set_newest_apple_family", uintptr(family))
	t.Cleanup(func() { call(t, "objcdouble_set_newest_apple_family", uintptr(mtl.GPUFamilyApple9)) }) // as it is for other tests
	d, err := mtl.SystemDefaultDevice()
	require.NoError(t, err)
	rt, err := runtime.Open(runtime.WithDevice(d))
	require.NoError(t, err)
	d.Release()
	return rt
}

// replayMessages counts the messages of one replay with its wait, which on the double is over at once.
func replayMessages(t *testing.T, prog *runtime.Program) int {
	t.Helper()
	before := call(t, "objcdouble_messages")
	s, err := prog.Replay()
	require.NoError(t, err)
	sent := call(t, "objcdouble_messages") - before
	require.NoError(t, s.Wait(context.Background()))
	return int(sent)
}

// A replay's host path allocates nothing and sends a few messages, whatever the number of dispatches.
func TestReplayThroughMessages(t *testing.T) {
	ledger(t)
	rt := open(t, mtl.GPUFamilyApple9)
	defer func() { require.NoError(t, rt.Close()) }()
	prog, err := rt.Record(program(t, rt))
	require.NoError(t, err)
	indirect, why := prog.Indirect()
	require.True(t, indirect, why)
	for range 5 {
		require.NoError(t, prog.Run())
	}
	executed := call(t, "objcdouble_executed_commands")
	sent := replayMessages(t, prog)
	require.Equal(t, executed+launches, call(t, "objcdouble_executed_commands"))
	stats := prog.Stats()
	require.Equal(t, launches, stats.Commands)
	require.Greater(t, stats.Barriers, launches/2-1)
	require.Equal(t, 1, stats.Encoders)
	require.LessOrEqual(t, sent, 16, "with the autorelease pool, its retain and the look at its status")
	ctx := context.Background()
	goruntime.GC()
	allocs := testing.AllocsPerRun(200, func() {
		s, err := prog.Replay()
		if err == nil {
			err = s.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, allocs, "allocations of a replay")
	require.NoError(t, prog.Release())
	t.Logf("%s: %d dispatches, %d barriers, %d messages per replay, %v allocations", goruntime.GOARCH, launches, stats.Barriers, sent, allocs)
}

// The first Apple GPU families need each pipeline set once more, with a dispatch of nothing: two messages each.
func TestReplayOnFirstFamilies(t *testing.T) {
	ledger(t)
	rt := open(t, mtl.GPUFamilyApple7)
	defer func() { require.NoError(t, rt.Close()) }()
	prog, err := rt.Record(program(t, rt))
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	sent := replayMessages(t, prog)
	pipelines := prog.Stats().Pipelines
	require.Equal(t, 2, pipelines)
	require.LessOrEqual(t, sent, 16+2*pipelines)
	require.NoError(t, prog.Release())
	t.Logf("%d messages per replay", sent)
}

// Direct encoding of the same work, in messages and allocations.
func TestDirectThroughMessages(t *testing.T) {
	ledger(t)
	rt := open(t, mtl.GPUFamilyApple9)
	defer func() { require.NoError(t, rt.Close()) }()
	encode := program(t, rt)
	for range 5 {
		require.NoError(t, rt.Run(encode))
	}
	before := call(t, "objcdouble_messages")
	s, err := rt.Submit(encode)
	require.NoError(t, err)
	sent := call(t, "objcdouble_messages") - before
	require.NoError(t, s.Wait(context.Background()))
	goruntime.GC()
	allocs := testing.AllocsPerRun(100, func() {
		if err := rt.Run(encode); err != nil {
			t.Fatal(err)
		}
	})
	t.Logf("%d dispatches, %d messages, %v allocations", launches, sent, allocs)
	require.Less(t, allocs, float64(launches)/8, "allocations of a whole pass")
}

// The host's work for 1,000 dispatches: a replay, the same encoded anew from the program's list, and by the program's
// author. Every message is a real one; the double does next to nothing for it.
func BenchmarkThousand(b *testing.B) {
	rt := open(b, mtl.GPUFamilyApple9)
	defer rt.Close()
	encode := program(b, rt)
	prog, err := rt.Record(encode)
	require.NoError(b, err)
	d, err := mtl.SystemDefaultDevice()
	require.NoError(b, err)
	defer d.Release()
	plain, err := runtime.Open(runtime.WithDevice(d), runtime.WithoutIndirect())
	require.NoError(b, err)
	defer plain.Close()
	again, err := plain.Record(program(b, plain))
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"replay", prog.Run},
		{"encodedAgain", again.Run},
		{"direct", func() error { return rt.Run(encode) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			before, n := call(b, "objcdouble_messages"), 0
			b.ReportAllocs()
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64(call(b, "objcdouble_messages")-before)/float64(n), "messages/op")
		})
	}
}
