package soft

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// samples makes a buffer for timestamps that goes when the test ends.
func samples(t testing.TB, dev mtl.Device, n uint, mode mtl.StorageMode) mtl.CounterSampleBuffer {
	desc, err := mtl.NewCounterSampleBufferDescriptor(dev)
	require.NoError(t, err)
	defer desc.Release()
	desc.SetCounterSet(mtl.TimestampCounterSet(dev))
	desc.SetSampleCount(n)
	desc.SetStorageMode(mode)
	desc.SetLabel("stamps")
	b, err := dev.NewCounterSampleBufferWithDescriptor(desc)
	require.NoError(t, err)
	t.Cleanup(b.Release)
	return b
}

// passOf describes an encoder that samples at its ends.
func passOf(t testing.TB, dev mtl.Device, b mtl.CounterSampleBuffer, start, end uint) mtl.ComputePassDescriptor {
	desc, err := mtl.NewComputePassDescriptor(dev)
	require.NoError(t, err)
	t.Cleanup(desc.Release)
	desc.SetDispatchType(mtl.DispatchTypeConcurrent)
	a := desc.SampleBufferAttachments().ObjectAtIndexedSubscript(0)
	a.SetSampleBuffer(b)
	a.SetStartOfEncoderSampleIndex(start)
	a.SetEndOfEncoderSampleIndex(end)
	return desc
}

func TestCounterSets(t *testing.T) {
	dev := open(t, Options{})
	require.Equal(t, 1, dev.CounterSets().Len())
	set := mtl.TimestampCounterSet(dev)
	require.Equal(t, "timestamp", set.Name())
	require.Equal(t, 1, set.Counters().Len())
	require.Equal(t, "GPUTimestamp", mtl.CounterOf(set.Counters().At(0).ID()).Name())
	require.True(t, dev.SupportsCounterSampling(mtl.CounterSamplingPointAtStageBoundary))
	require.False(t, dev.SupportsCounterSampling(mtl.CounterSamplingPointAtDispatchBoundary))
	require.True(t, open(t, Options{Sampling: SampleDispatches}).SupportsCounterSampling(mtl.CounterSamplingPointAtDispatchBoundary))
	b := samples(t, dev, 5, mtl.StorageModeShared)
	require.EqualValues(t, 5, b.SampleCount())
	require.Equal(t, "stamps", b.Label())
	require.Equal(t, dev.ID(), b.Device().ID())
	fresh, err := mtl.ResolveTimestamps(b, 1, 4)
	require.NoError(t, err)
	require.Equal(t, []uint64{mtl.CounterErrorValue, mtl.CounterErrorValue, mtl.CounterErrorValue, mtl.CounterErrorValue}, fresh)

	none := open(t, Options{Sampling: SampleNothing})
	require.Zero(t, none.CounterSets().Len())
	require.False(t, none.SupportsCounterSampling(mtl.CounterSamplingPointAtStageBoundary))
	_, err = none.NewCounterSampleBufferWithDescriptor(mtl.CounterSampleBufferDescriptor{})
	require.ErrorContains(t, err, "samples no counters")
}

func TestSampleBuffersThatCannotBe(t *testing.T) {
	dev, other := open(t, Options{}), open(t, Options{})
	for text, change := range map[string]func(d mtl.CounterSampleBufferDescriptor){
		"0 samples":               func(d mtl.CounterSampleBufferDescriptor) { d.SetSampleCount(0) },
		"4097 samples":            func(d mtl.CounterSampleBufferDescriptor) { d.SetSampleCount(4097) },
		"storage mode 1":          func(d mtl.CounterSampleBufferDescriptor) { d.SetStorageMode(mtl.StorageModeManaged) },
		"is no counter set of":    func(d mtl.CounterSampleBufferDescriptor) { d.SetCounterSet(mtl.TimestampCounterSet(other)) },
		"nil is no counter set":   func(d mtl.CounterSampleBufferDescriptor) { d.SetCounterSet(mtl.CounterSet{}) },
		"there is no descriptor":  nil,
		"samples are shared or p": func(d mtl.CounterSampleBufferDescriptor) { d.SetStorageMode(mtl.StorageModeMemoryless) },
	} {
		desc, err := mtl.NewCounterSampleBufferDescriptor(dev)
		require.NoError(t, err)
		desc.SetCounterSet(mtl.TimestampCounterSet(dev))
		desc.SetSampleCount(1)
		passed := desc
		if change == nil {
			passed = mtl.CounterSampleBufferDescriptor{}
		} else {
			change(desc)
		}
		_, err = dev.NewCounterSampleBufferWithDescriptor(passed)
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, err, &objc.Error{Domain: counterDomain, Code: int(mtl.CounterSampleBufferErrorInvalid)})
		desc.Release()
	}
}

// TestSampleStages samples at the ends of two encoders; the times lie in order, within those of the command buffer.
func TestSampleStages(t *testing.T) {
	r := newRig(t, Options{})
	b := samples(t, r.dev, 4, mtl.StorageModeShared)
	x := words(t, r.dev, make([]uint32, 4096)...)
	cb := r.queue.CommandBuffer()
	for i := range uint(2) {
		e := cb.ComputeCommandEncoderWithDescriptor(passOf(t, r.dev, b, 2*i, 2*i+1))
		for range 20 {
			r.run(e, "plus_ten", 4096, x)
			e.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
		}
		e.EndEncoding()
	}
	before, _ := r.dev.SampleTimestamps()
	mustRun(t, cb)
	after, _ := r.dev.SampleTimestamps()
	stamps, err := mtl.ResolveTimestamps(b, 0, 4)
	require.NoError(t, err)
	require.Less(t, before, stamps[0])
	require.Less(t, stamps[0], stamps[1])
	require.LessOrEqual(t, stamps[1], stamps[2])
	require.Less(t, stamps[2], stamps[3])
	require.LessOrEqual(t, stamps[3], after)
	require.LessOrEqual(t, uint64(cb.GPUStartTime()*1e9), stamps[0])
	require.GreaterOrEqual(t, uint64(cb.GPUEndTime()*1e9)+1, stamps[3])

	// And on the GPU, into a buffer.
	to := newBuffer(t, r.dev, 40)
	cb = r.queue.CommandBuffer()
	blit := cb.BlitCommandEncoder()
	blit.ResolveCounters(b, mtl.Range{Location: 1, Length: 3}, to, 8)
	blit.EndEncoding()
	mustRun(t, cb)
	for i, want := range stamps[1:] {
		require.Equal(t, want, binary.NativeEndian.Uint64(to.Contents()[8+8*i:]))
	}
}

// TestSampleDispatches samples between dispatches; with a barrier a sample waits for what came before.
func TestSampleDispatches(t *testing.T) {
	r := newRig(t, Options{Sampling: SampleDispatches})
	b := samples(t, r.dev, 3, mtl.StorageModeShared)
	x := words(t, r.dev, make([]uint32, 1<<16)...)
	mustRun(t, r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
		e.SampleCountersInBuffer(b, 0, true)
		r.run(e, "plus_ten", 1<<16, x)
		e.SampleCountersInBuffer(b, 1, false)
		e.SampleCountersInBuffer(b, 2, true)
	}))
	stamps, err := mtl.ResolveTimestamps(b, 0, 3)
	require.NoError(t, err)
	require.Less(t, stamps[0], stamps[1])
	require.Less(t, stamps[1], stamps[2])
}

// TestSampleWithoutBarrier does not hide a hazard.
func TestSampleWithoutBarrier(t *testing.T) {
	for _, barrier := range []bool{true, false} {
		r := newRig(t, Options{Sampling: SampleDispatches})
		b := samples(t, r.dev, 1, mtl.StorageModeShared)
		x := words(t, r.dev, 1, 2)
		cb := r.encode(mtl.DispatchTypeConcurrent, func(e mtl.ComputeCommandEncoder) {
			r.run(e, "plus_ten", 2, x)
			e.SampleCountersInBuffer(b, 0, barrier)
			r.run(e, "plus_ten", 2, x)
		})
		if barrier {
			mustRun(t, cb)
		} else {
			mustFail(t, cb, mtl.CommandBufferErrorInvalidResource, "hazard without a barrier")
		}
	}
}

func TestSampleZeros(t *testing.T) {
	r := newRig(t, Options{Sampling: SampleZeros})
	b := samples(t, r.dev, 2, mtl.StorageModeShared)
	cb := r.queue.CommandBuffer()
	cb.ComputeCommandEncoderWithDescriptor(passOf(t, r.dev, b, 0, mtl.CounterDontSample)).EndEncoding()
	mustRun(t, cb)
	stamps, err := mtl.ResolveTimestamps(b, 0, 2)
	require.NoError(t, err)
	require.Equal(t, []uint64{0, mtl.CounterErrorValue}, stamps)
}

func TestSampleMisuse(t *testing.T) {
	r, foreign := newRig(t, Options{}), newRig(t, Options{})
	none := newRig(t, Options{Sampling: SampleNothing})
	b, theirs := samples(t, r.dev, 2, mtl.StorageModeShared), samples(t, foreign.dev, 2, mtl.StorageModeShared)
	private := samples(t, r.dev, 2, mtl.StorageModePrivate)
	to := newBuffer(t, r.dev, 32)
	pass := func(b mtl.CounterSampleBuffer, start, end uint) func(r *rig, cb mtl.CommandBuffer) {
		return func(r *rig, cb mtl.CommandBuffer) {
			cb.ComputeCommandEncoderWithDescriptor(passOf(t, r.dev, b, start, end)).EndEncoding()
		}
	}
	blit := func(f func(e mtl.BlitCommandEncoder)) func(r *rig, cb mtl.CommandBuffer) {
		return func(_ *rig, cb mtl.CommandBuffer) {
			e := cb.BlitCommandEncoder()
			f(e)
			e.EndEncoding()
		}
	}
	for text, test := range map[string]struct {
		r      *rig
		encode func(r *rig, cb mtl.CommandBuffer)
	}{
		"does not sample at the boundaries": {none, pass(b, 0, 1)},
		"no counter sample buffer of this":  {r, pass(theirs, 0, 1)},
		"sample index 2 of 2":               {r, pass(b, 0, 2)},
		"sample index 7 of 2":               {r, pass(b, 7, 1)},
		"does not sample there": {r, func(r *rig, cb mtl.CommandBuffer) {
			e := cb.ComputeCommandEncoder()
			e.SampleCountersInBuffer(b, 0, true)
			e.EndEncoding()
		}},
		"does not sample there, see": {r, blit(func(e mtl.BlitCommandEncoder) { e.SampleCountersInBuffer(b, 0, true) })},
		"samples 1 to 3 of 2":        {r, blit(func(e mtl.BlitCommandEncoder) { e.ResolveCounters(b, mtl.Range{Location: 1, Length: 2}, to, 0) })},
		"a destination offset of 4":  {r, blit(func(e mtl.BlitCommandEncoder) { e.ResolveCounters(b, mtl.Range{Length: 2}, to, 4) })},
		"16 bytes at 24 of":          {r, blit(func(e mtl.BlitCommandEncoder) { e.ResolveCounters(b, mtl.Range{Length: 2}, to, 24) })},
		"resolveCounters:inRange:desti": {r, blit(func(e mtl.BlitCommandEncoder) {
			e.ResolveCounters(mtl.CounterSampleBuffer{}, mtl.Range{Length: 2}, to, 0)
		})},
		"after endEncoding":              {r, blit(func(e mtl.BlitCommandEncoder) { e.EndEncoding(); e.ResolveCounters(b, mtl.Range{Length: 2}, to, 0) })},
		"sampleCountersInBuffer:atSampl": {r, blit(func(e mtl.BlitCommandEncoder) { e.EndEncoding(); e.SampleCountersInBuffer(b, 0, false) })},
	} {
		cb := test.r.queue.CommandBuffer()
		test.encode(test.r, cb)
		cb.Commit()
		cb.WaitUntilCompleted()
		require.ErrorContains(t, cb.Error(), text)
	}
	// Resolving what cannot be is an error of the next command buffer.
	for _, resolve := range []func() ([]uint64, error){
		func() ([]uint64, error) { return mtl.ResolveTimestamps(private, 0, 1) },
		func() ([]uint64, error) { return mtl.ResolveTimestamps(b, 1, 2) },
		func() ([]uint64, error) { return mtl.ResolveTimestamps(b, ^uint(0), 2) },
	} {
		_, err := resolve()
		require.Error(t, err)
		mustFail(t, r.queue.CommandBuffer(), mtl.CommandBufferErrorInternal, "resolveCounterRange")
	}
	r2 := newRig(t, Options{Sampling: SampleDispatches})
	b2 := samples(t, r2.dev, 2, mtl.StorageModeShared)
	mustFail(t, r2.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) { e.SampleCountersInBuffer(b2, 2, true) }),
		mtl.CommandBufferErrorInvalidResource, "index 2 of 2 samples")
	mustFail(t, r2.encode(mtl.DispatchTypeSerial, func(e mtl.ComputeCommandEncoder) {
		e.SampleCountersInBuffer(mtl.CounterSampleBuffer{}, 2, true)
	}), mtl.CommandBufferErrorInvalidResource, "no counter sample buffer")
}
