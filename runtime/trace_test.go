package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/traceformat"
	"github.com/ingot-metal/ingot/mtl/soft"
)

// written is the trace as a file, read back and checked.
func written(t *testing.T, tr *Trace) *traceformat.File {
	t.Helper()
	var b bytes.Buffer
	n, err := tr.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	f, err := traceformat.Check(b.Bytes())
	require.NoError(t, err)
	return f
}

func eventNames(events []traceformat.Event) (list []string) {
	for _, e := range events {
		if e.Phase == "X" {
			list = append(list, e.Name)
		}
	}
	return list
}

// encodeNamed encodes three dispatches, with names.
func encodeNamed(p *Pass, x Slice[uint32]) error {
	return errors.Join(p.Label("step"), fill(p, x, 1),
		p.PushDebugGroup("layer 0"), p.PushDebugGroup("norm"), bump(p, x, 2), p.PopDebugGroup(),
		p.InsertDebugSignpost("half way"), bump(p, x, 3), p.PopDebugGroup())
}

// TestTraceOfKernels times the kernels of passes and replays on devices that sample in different places, and gives the
// same results as without a trace.
func TestTraceOfKernels(t *testing.T) {
	for name, kind := range map[string]struct {
		o    soft.Options
		opts []Option
		max  int
	}{
		"stages":         {},
		"dispatches":     {o: soft.Options{Sampling: soft.SampleDispatches}},
		"first families": {o: soft.Options{Families: soft.AppleFamilies(7), FirstFamilies: true}},
		"encoded again":  {opts: []Option{WithoutIndirect()}},
		"no indirect":    {o: soft.Options{NoIndirectCompute: true, Sampling: soft.SampleDispatches}},
		"split":          {max: 2},
		"reversed":       {o: soft.Options{Order: soft.Reversed}},
	} {
		t.Run(name, func(t *testing.T) {
			rt, _ := softRuntime(t, kind.o, kind.opts...)
			if kind.max > 0 {
				rt.limits.indirectMax = kind.max
			}
			x, err := NewSlice[uint32](rt, 64)
			require.NoError(t, err)
			prog, err := rt.Record(func(p *Pass) error { return encodeNamed(p, x) })
			require.NoError(t, err)
			want, got := make([]uint32, 64), make([]uint32, 64)
			require.NoError(t, rt.Run(func(p *Pass) error { return encodeNamed(p, x) }))
			require.NoError(t, x.Read(want))

			tr, err := rt.StartTrace(TraceOptions{Kernels: true})
			require.NoError(t, err)
			ok, why := tr.KernelTimes()
			require.True(t, ok, why)
			for _, run := range []func() error{func() error { return rt.Run(func(p *Pass) error { return encodeNamed(p, x) }) }, prog.Run} {
				require.NoError(t, x.Write(make([]uint32, 64)))
				require.NoError(t, run())
				require.NoError(t, x.Read(got))
				require.Equal(t, want, got)
			}
			require.NoError(t, tr.Stop(t.Context()))
			require.Zero(t, tr.Lost())
			f := written(t, tr)
			require.Equal(t, []string{"step", "step"}, eventNames(f.Lane("device", "passes")))
			require.Equal(t, []string{"fill", "add", "add", "fill", "add", "add"}, eventNames(f.Lane("device", "kernels")))
			require.Equal(t, []string{"layer 0", "norm", "layer 0", "norm"}, eventNames(f.Lane("device", "groups")))
			require.Equal(t, []string{"step", "step"}, eventNames(f.Lane("host", "encode")))
			require.Equal(t, []string{"Runtime.Run", "Program.Replay"}, eventNames(f.Lane("host", "commit")))
			require.Equal(t, []string{"Slice.Write", "Slice.Read", "Slice.Write", "Slice.Read"}, eventNames(f.Lane("host", "copy")))
			kernels := f.Lane("device", "kernels")
			require.Equal(t, []string{"i", "i"}, []string{kernels[2].Phase, kernels[6].Phase}, "the signposts, before the third kernel")
			require.Equal(t, "half way", kernels[2].Name)
			require.Equal(t, "layer 0/norm", kernels[1].Args["group"])
			require.Nil(t, kernels[0].Args["group"])
			passes := f.Lane("device", "passes")
			for i, k := range kernels { // four and a flow of each pass
				pass := passes[i/4*2]
				require.GreaterOrEqual(t, *k.TS, *pass.TS)
				if k.Phase == "X" {
					require.LessOrEqual(t, *k.TS+*k.Dur, *pass.TS+*pass.Dur+0.002)
				}
				require.Equal(t, pass.Args["submission"], k.Args["submission"])
			}
			sums := tr.Kernels()
			require.Len(t, sums, 2)
			for _, k := range sums {
				require.Equal(t, map[string]int{"fill": 2, "add": 4}[k.Name], k.Count)
				require.True(t, 0 < k.Min && k.Min <= k.Max && k.Max < k.Total && k.Total < time.Minute, "%+v", k)
			}
			require.GreaterOrEqual(t, sums[0].Total, sums[1].Total)
			require.NoError(t, prog.Release())
		})
	}
}

// TestTraceOfPasses has no times of kernels, and leaves the work as it is.
func TestTraceOfPasses(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return encodeNamed(p, x) })
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{})
	require.NoError(t, err)
	ok, why := tr.KernelTimes()
	require.False(t, ok)
	require.Contains(t, why, "TraceOptions.Kernels")
	encoders := soft.Stats(dev).Messages["endEncoding"]
	y, err := NewSlice[uint32](rt, 1000)
	require.NoError(t, err)
	s, err := rt.Submit(func(p *Pass) error { return bump(p, y, 1) })
	require.NoError(t, err)
	require.NoError(t, prog.Run())
	require.EqualValues(t, 2, soft.Stats(dev).Messages["endEncoding"]-encoders)
	require.NoError(t, tr.Stop(t.Context()))
	require.Positive(t, s.GPUTime(), "traced submissions keep their times")
	f := written(t, tr)
	require.Equal(t, []string{"pass", "step"}, eventNames(f.Lane("device", "passes")))
	require.Empty(t, f.Lane("device", "kernels"))
	require.Equal(t, []string{"NewSlice"}, eventNames(f.Lane("host", "allocate")))
	require.EqualValues(t, 4000, f.Lane("host", "allocate")[0].Args["bytes"])
	require.Empty(t, f.Lane("host", "compile"), "the pipelines were there")
	require.EqualValues(t, 3, f.Lane("device", "passes")[2].Args["dispatches"])
	require.Empty(t, tr.Kernels())
}

// TestTraceWithoutCounters falls back to times of command buffers, and says why.
func TestTraceWithoutCounters(t *testing.T) {
	for want, o := range map[string]soft.Options{
		"samples counters neither": {Sampling: soft.SampleNothing},
		"all samples are empty":    {Sampling: soft.SampleZeros},
	} {
		rt, _ := softRuntime(t, o)
		x, err := NewSlice[uint32](rt, 64)
		require.NoError(t, err)
		tr, err := rt.StartTrace(TraceOptions{Kernels: true})
		require.NoError(t, err)
		require.NoError(t, rt.Run(func(p *Pass) error { return encodeNamed(p, x) }))
		require.NoError(t, tr.Stop(t.Context()))
		ok, why := tr.KernelTimes()
		require.False(t, ok)
		require.Contains(t, why, want)
		f := written(t, tr)
		require.Equal(t, []string{"step"}, eventNames(f.Lane("device", "passes")))
		require.Empty(t, eventNames(f.Lane("device", "kernels")))
		require.Contains(t, f.Other["noKernelTimes"], want)
	}
	// A device that does not know of counters or clocks.
	rt := new(fake).open(t)
	x, err := NewSlice[uint32](rt, 64)
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	require.NoError(t, rt.Run(func(p *Pass) error { return fill(p, x, 1) }))
	require.NoError(t, tr.Stop(t.Context()))
	_, why := tr.KernelTimes()
	require.Equal(t, "the device has no counters", why)
	require.Equal(t, []string{"pass"}, eventNames(written(t, tr).Lane("device", "passes")))
}

func TestTraceOfManyKernels(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	const n = samplesInBuffer + 3 // more than two buffers of samples take
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, rt.Run(func(p *Pass) error {
			for range n {
				if err := bump(p, x, 1); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	require.NoError(t, tr.Stop(t.Context()))
	require.Zero(t, tr.Lost())
	require.Equal(t, 2*n, tr.Kernels()[0].Count)
	require.Len(t, written(t, tr).Lane("device", "kernels"), 2*n)
}

func TestTraceLimit(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{Limit: 3})
	require.NoError(t, err)
	for range 10 {
		require.NoError(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }))
	}
	require.NoError(t, tr.Stop(t.Context()))
	require.Len(t, tr.events, 3)
	require.GreaterOrEqual(t, tr.Lost(), 27) // encode, commit and pass of each
	require.EqualValues(t, tr.Lost(), written(t, tr).Other["lost"])
}

func TestTraceMisuse(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	_, err := rt.StartTrace(TraceOptions{Limit: -1})
	require.ErrorIs(t, err, ErrLimit)
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	_, err = rt.StartTrace(TraceOptions{Kernels: true})
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorIs(t, rt.WriteTrace(io.Discard, TraceOptions{}, func() error { return nil }), ErrBusy)
	_, err = tr.WriteTo(nil)
	require.ErrorIs(t, err, ErrMisuse)
	var background context.Context
	require.NoError(t, tr.Stop(background))
	require.ErrorIs(t, tr.Stop(t.Context()), ErrClosed)
	for _, none := range []*Trace{nil, {}} {
		require.ErrorIs(t, none.Stop(t.Context()), ErrMisuse)
		_, err := none.WriteTo(io.Discard)
		require.ErrorIs(t, err, ErrMisuse)
		require.Zero(t, none.Lost())
		require.Empty(t, none.Kernels())
		none.KernelTimes()
	}
	_, err = tr.WriteTo(failingWriter{})
	require.ErrorContains(t, err, "full")
	require.NoError(t, rt.Close())
	_, err = rt.StartTrace(TraceOptions{})
	require.ErrorIs(t, err, ErrClosed)
	written(t, tr)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("full") }

func TestTraceEndsWithItsRuntime(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	_, err = rt.Submit(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	require.NoError(t, rt.Close())
	require.ErrorIs(t, tr.Stop(t.Context()), ErrClosed)
	require.Equal(t, 1, tr.Kernels()[0].Count)
	require.Equal(t, []string{"pass"}, eventNames(written(t, tr).Lane("device", "passes")))
}

// TestTraceOfFailures notes the failure, drops passes that are not submitted, and leaks nothing.
func TestTraceOfFailures(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	boom := errors.New("boom")
	require.ErrorIs(t, rt.Run(func(p *Pass) error { return errors.Join(bump(p, x, 1), boom) }), boom)
	require.Panics(t, func() { _ = rt.Run(func(p *Pass) error { _ = bump(p, x, 1); panic(boom) }) })
	require.NoError(t, rt.Run(func(p *Pass) error { return nil }))
	require.NoError(t, soft.Inject(dev, soft.Faults{Commit: 1}))
	require.ErrorIs(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }), ErrDevice)
	require.ErrorIs(t, rt.Run(func(p *Pass) error { return bump(p, x, 1) }), ErrDevice)
	require.NoError(t, tr.Stop(t.Context()), "the failure is not the trace's")
	require.Zero(t, tr.pending)
	f := written(t, tr)
	require.Equal(t, []string{"pass"}, eventNames(f.Lane("device", "passes")))
	require.Contains(t, f.Lane("device", "passes")[0].Args["error"], "told to fail")
	require.Empty(t, f.Lane("device", "kernels"))
	require.Equal(t, 1, tr.Lost())
}

func TestTraceStopsInTime(t *testing.T) {
	d := new(fake)
	rt := d.open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{})
	require.NoError(t, err)
	d.block.Lock()
	s, err := rt.Submit(func(p *Pass) error { return fill(p, x, 1) })
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	err = tr.Stop(ctx)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorContains(t, err, "Trace.Stop")
	require.Empty(t, written(t, tr).Lane("device", "passes"))
	d.block.Unlock()
	require.NoError(t, s.Wait(t.Context()))
	require.Len(t, eventNames(written(t, tr).Lane("device", "passes")), 1, "noted late")
}

func TestWriteTrace(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	var b bytes.Buffer
	run := func() error { return rt.Run(func(p *Pass) error { return bump(p, x, 1) }) }
	require.NoError(t, rt.WriteTrace(&b, TraceOptions{Kernels: true}, run))
	f, err := traceformat.Check(b.Bytes())
	require.NoError(t, err)
	require.Len(t, f.Lane("device", "kernels"), 1)
	boom := errors.New("boom")
	b.Reset()
	require.ErrorIs(t, rt.WriteTrace(&b, TraceOptions{}, func() error { return errors.Join(run(), boom) }), boom)
	_, err = traceformat.Check(b.Bytes())
	require.NoError(t, err)
	require.Panics(t, func() { _ = rt.WriteTrace(&b, TraceOptions{}, func() error { panic(boom) }) })
	require.ErrorContains(t, rt.WriteTrace(failingWriter{}, TraceOptions{}, run), "full")
	require.ErrorIs(t, rt.WriteTrace(nil, TraceOptions{}, run), ErrMisuse)
	require.ErrorIs(t, rt.WriteTrace(&b, TraceOptions{}, nil), ErrMisuse)
}

// TestTraceOfManyGoroutines is for the race detector, and for lanes on which things happen at once.
func TestTraceOfManyGoroutines(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{}, WithMaxInFlight(4))
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return bump(p, x, 1) })
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			for i := range 20 {
				var err error
				switch (g + i) % 3 {
				case 0:
					err = prog.Run()
				case 1:
					err = rt.Run(func(p *Pass) error { return bump(p, x, 1) })
				default:
					var y Slice[uint32]
					if y, err = NewSlice[uint32](rt, 16); err == nil {
						err = errors.Join(y.Write(make([]uint32, 16)), y.Release())
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, tr.Stop(t.Context()))
	require.Equal(t, 80, tr.Kernels()[0].Count)
	require.Len(t, eventNames(written(t, tr).Lane("device", "passes")), 80)
}

// TestTraceOff checks that a runtime without a trace allocates what it did.
func TestTraceOff(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	rt := (&fake{static: true}).open(t)
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return encodeNamed(p, x) })
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(200, func() { err = prog.Run() }), "of a program with names")
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(200, func() {
		s := rt.traceHost()
		s.end(laneCommit, "nothing", 0, 0)
	}))
}

func TestDebugNames(t *testing.T) {
	rt, dev := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	messages := func(sel string) uint64 { return soft.Stats(dev).Messages[sel] }
	require.NoError(t, rt.Run(func(p *Pass) error { return encodeNamed(p, x) }))
	require.EqualValues(t, 2, messages("pushDebugGroup:"))
	require.EqualValues(t, 2, messages("popDebugGroup"))
	require.EqualValues(t, 1, messages("insertDebugSignpost:"))

	// The names are in the errors of the device.
	require.NoError(t, rt.Run(func(p *Pass) error {
		return errors.Join(fill(p, x, 1), p.Label("late"), p.InsertDebugSignpost("at the end"))
	}))
	for _, bad := range []struct {
		encode func(p *Pass) error
		text   string
	}{
		{func(p *Pass) error { return errors.Join(fill(p, x, 1), p.PushDebugGroup("left")) }, `the open debug group "left"`},
		{func(p *Pass) error { return errors.Join(fill(p, x, 1), p.PopDebugGroup()) }, "no open group"},
	} {
		err := rt.Run(bad.encode)
		require.ErrorIs(t, err, ErrMisuse)
		require.ErrorContains(t, err, bad.text)
		_, err = rt.Record(bad.encode)
		require.ErrorIs(t, err, ErrMisuse)
	}
	for _, p := range []*Pass{nil, {}} {
		for _, err := range []error{p.Label("x"), p.PushDebugGroup("x"), p.PopDebugGroup(), p.InsertDebugSignpost("x")} {
			require.ErrorIs(t, err, ErrMisuse)
		}
	}
	require.NoError(t, soft.Inject(dev, soft.Faults{}))
	require.NoError(t, rt.Err())
}

func TestGroupPaths(t *testing.T) {
	groups := []debugGroup{{"a", 0}, {"b", 1}, {"c", 2}, {"d", 1}, {"e", 0}}
	require.Equal(t, "a/b/c", groupPath(groups, 3))
	require.Empty(t, groupPath(groups, 0))
	for _, c := range [][3]int32{{3, 4, 1}, {4, 3, 1}, {3, 3, 3}, {2, 3, 2}, {3, 2, 2}, {3, 5, 0}, {0, 3, 0}, {5, 0, 0}, {0, 0, 0}} {
		require.Equal(t, c[2], commonGroup(groups, c[0], c[1]), "%v", c)
	}
	var log []string
	s := groupSpans{groups: groups}
	tell := func(o *openSpan) {
		log = append(log, fmt.Sprint(groups[o.group-1].name, o.depth, int(o.from), int(o.to)))
	}
	for i, g := range []int32{3, 3, 4, 0, 5, 0} {
		s.extend(g, time.Duration(10*i), time.Duration(10*i+5), tell)
	}
	require.Equal(t, "c2 0 15 b1 0 15 d1 20 25 a0 0 25 e0 40 45", strings.Join(log, " "))
}

func TestTracedStats(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	prog, err := rt.Record(func(p *Pass) error { return encodeNamed(p, x) })
	require.NoError(t, err)
	before := rt.Stats()
	require.NoError(t, x.Write([]uint32{1, 2, 3, 4}))
	require.NoError(t, x.Slice(0, 2).Read(make([]uint32, 2)))
	for range 4 {
		require.NoError(t, prog.Run())
	}
	s := rt.Stats()
	require.EqualValues(t, 16, s.BytesAllocated)
	require.EqualValues(t, 16, s.BytesWritten-before.BytesWritten)
	require.EqualValues(t, 8, s.BytesRead-before.BytesRead)
	require.EqualValues(t, 12, s.Replayed)
	require.Equal(t, s.Waits > 0, s.WaitTime > 0)
}

// TestTraceOfStreams notes the chunks of a stream as passes.
func TestTraceOfStreams(t *testing.T) {
	rt, _ := softRuntime(t, soft.Options{})
	x, err := NewSlice[uint32](rt, 4)
	require.NoError(t, err)
	s, err := rt.NewStream()
	require.NoError(t, err)
	tr, err := rt.StartTrace(TraceOptions{Kernels: true})
	require.NoError(t, err)
	for range 20 {
		require.NoError(t, s.Encode(func(p *Pass) error { return bump(p, x, 1) }))
	}
	require.NoError(t, s.Wait(t.Context()))
	require.NoError(t, tr.Stop(t.Context()))
	require.Equal(t, 20, tr.Kernels()[0].Count)
	require.NotEmpty(t, eventNames(written(t, tr).Lane("device", "passes")))
}

// BenchmarkTrace compares submissions without a trace, with one of passes, and with one of kernels.
func BenchmarkTrace(b *testing.B) {
	for _, kind := range []struct {
		name string
		o    *TraceOptions
	}{{"off", nil}, {"passes", &TraceOptions{Limit: 1}}, {"kernels", &TraceOptions{Kernels: true, Limit: 1}}} {
		b.Run(kind.name, func(b *testing.B) {
			rt, _ := softRuntime(b, soft.Options{Workers: 1})
			x, err := NewSlice[uint32](rt, 4)
			require.NoError(b, err)
			prog, err := rt.Record(func(p *Pass) error {
				for range 64 {
					if err := bump(p, x, 1); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(b, err)
			if kind.o != nil {
				_, err := rt.StartTrace(*kind.o)
				require.NoError(b, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := prog.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
