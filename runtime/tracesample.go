package runtime

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
)

// sampler takes times of kernels with the device's timestamp counters.
type sampler struct {
	dev mtl.Device
	set mtl.CounterSet // retained
	// dispatches says that the device samples between dispatches. Otherwise, as on Apple GPUs, it samples where encoders
	// begin and end, and each dispatch gets one of its own.
	dispatches bool

	// Guarded by the trace's lock.
	free, all []mtl.CounterSampleBuffer
}

// samplesInBuffer is how many samples a buffer takes: 8 KiB of them, of the 32 KiB that Apple GPUs allow.
const samplesInBuffer = 1024

// on says whether there are counters to sample.
func (s *sampler) on() bool { return !s.set.IsNil() }

// start looks for the counters, and says what is missing, "" if nothing is.
func (s *sampler) start(dev mtl.Device) string {
	if !dev.RespondsTo("supportsCounterSampling:") {
		return "the device has no counters"
	}
	s.dispatches = dev.SupportsCounterSampling(mtl.CounterSamplingPointAtDispatchBoundary)
	if !s.dispatches && !dev.SupportsCounterSampling(mtl.CounterSamplingPointAtStageBoundary) {
		return "the device samples counters neither between dispatches nor between encoders"
	}
	set := mtl.TimestampCounterSet(dev)
	if set.IsNil() {
		return "the device has no counter for timestamps"
	}
	set.Retain()
	s.dev, s.set = dev, set
	b, err := s.buffer()
	if err != nil {
		s.close()
		return err.Error()
	}
	s.free = append(s.free, b)
	return ""
}

// buffer takes or makes a buffer for samples.
func (s *sampler) buffer() (mtl.CounterSampleBuffer, error) {
	if n := len(s.free); n > 0 {
		b := s.free[n-1]
		s.free = s.free[:n-1]
		return b, nil
	}
	desc, err := mtl.NewCounterSampleBufferDescriptor(s.dev)
	if err != nil {
		return mtl.CounterSampleBuffer{}, err
	}
	defer desc.Release()
	desc.SetCounterSet(s.set)
	desc.SetSampleCount(samplesInBuffer)
	desc.SetStorageMode(mtl.StorageModeShared)
	desc.SetLabel("ingot trace")
	b, err := s.dev.NewCounterSampleBufferWithDescriptor(desc)
	if err == nil && b.IsNil() {
		err = fmt.Errorf("the device made no counter sample buffer")
	}
	if err != nil {
		return b, err
	}
	s.all = append(s.all, b)
	return b, nil
}

// close gives everything back.
func (s *sampler) close() {
	for _, b := range s.all {
		b.Release()
	}
	s.set.Release()
	*s = sampler{}
}

// stamps are where the two samples of a dispatch go that is sampled within its encoder. The zero value samples nothing.
type stamps struct {
	buffer mtl.CounterSampleBuffer
	first  uint
}

// take takes one of them, once everything before it has completed.
func (s stamps) take(enc mtl.ComputeCommandEncoder, which uint) {
	if !s.buffer.IsNil() {
		enc.SampleCountersInBuffer(s.buffer, s.first+which, true)
	}
}

// stampsOf says where the samples of a command go, and notes it, where the device samples between dispatches.
func (e *encoder) stampsOf(cmd *command) stamps {
	if !e.work.timesKernels() || e.work.apart() {
		return stamps{}
	}
	b, first, _ := e.work.kernel(cmd.pl.info.name, cmd.group, e.count)
	return stamps{b, first}
}

// executeTimed encodes the execution of indirect commands one by one, each with its samples: commands first to end, of
// which the first is the dispatch with the number ordinal.
func (ed *edition) executeTimed(fn string, enc *encoder, ordinal, first, end int) error {
	for i := first; i < end; i++ {
		cmd := &ed.cmds[i]
		if err := enc.open(fn, cmd); err != nil {
			return err
		}
		stamp := enc.stampsOf(cmd)
		switch {
		case enc.work.apart():
			ed.prepare(enc.mtl, []*pipeline{cmd.pl})
		case i == first:
			ed.prepare(enc.mtl, ed.prog.pipelines)
		default:
			enc.barrier()
		}
		b, at := ed.place(ordinal + i - first)
		enc.mark(cmd)
		stamp.take(enc.mtl, 0)
		enc.mtl.ExecuteCommandsInBuffer(b.mtl, mtl.Range{Location: uint(at), Length: 1})
		stamp.take(enc.mtl, 1)
	}
	return nil
}
