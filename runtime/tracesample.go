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
	b, first, _ := e.work.kernel(cmd.pl.info.name, cmd.group)
	return stamps{b, first}
}

// apart begins an encoder for one command, if it is to be timed and the device samples between encoders only. Metal
// orders encoders whose work uses the same memory.
func (e *encoder) apart(cmd *command) {
	if !e.work.apart() {
		return
	}
	if !e.mtl.IsNil() {
		e.enter(0)
		e.mtl.EndEncoding()
	}
	next := encoder{cb: e.cb, debug: e.debug, posted: e.posted, count: e.count, work: e.work, lost: e.lost}
	next.mtl = e.work.encoder(e.cb, cmd.pl.info.name, cmd.group)
	next.lost = next.lost || next.mtl.IsNil()
	next.label(cmd.pl.info.name)
	*e = next
}

// executeTimed encodes the execution of the indirect commands one by one, each with its samples.
func (prog *Program) executeTimed(fn string, cb mtl.CommandBuffer, work *tracedWork) error {
	var enc mtl.ComputeCommandEncoder
	refused := func() error {
		return &Error{Func: fn, Err: &DeviceError{Op: "computeCommandEncoderWithDescriptor:", Text: "the command buffer made no encoder"}}
	}
	apart := work.apart()
	if !apart {
		if enc = concurrentEncoder(cb); enc.IsNil() {
			return refused()
		}
		prog.prepare(enc, prog.pipelines)
	}
	for i := range prog.cmds {
		cmd := &prog.cmds[i]
		var stamp stamps
		if apart {
			if enc = work.encoder(cb, cmd.pl.info.name, cmd.group); enc.IsNil() {
				return refused()
			}
			enc.SetLabel(cmd.pl.info.name)
			prog.prepare(enc, []*pipeline{cmd.pl})
		} else {
			stamp.buffer, stamp.first, _ = work.kernel(cmd.pl.info.name, cmd.group)
			enc.MemoryBarrierWithScope(mtl.BarrierScopeBuffers)
		}
		b, at := prog.place(i)
		stamp.take(enc, 0)
		enc.ExecuteCommandsInBuffer(b, mtl.Range{Location: uint(at), Length: 1})
		stamp.take(enc, 1)
		if apart {
			enc.EndEncoding()
		}
	}
	if !apart {
		enc.EndEncoding()
	}
	return nil
}

// place is where command i is among the indirect command buffers.
func (prog *Program) place(i int) (mtl.IndirectCommandBuffer, int) {
	for _, b := range prog.indirect {
		if i < b.n {
			return b.mtl, i
		}
		i -= b.n
	}
	return mtl.IndirectCommandBuffer{}, 0
}

// prepare does what an encoder needs before it executes commands with some pipelines.
func (prog *Program) prepare(enc mtl.ComputeCommandEncoder, pipelines []*pipeline) {
	if prog.prime {
		for _, pl := range pipelines {
			enc.SetComputePipelineState(pl.state)
			enc.DispatchThreadgroups(mtl.Size{}, mtl.Size{})
		}
	}
	// What indirect commands use is neither resident nor tracked unless the encoder is told.
	declare(enc, prog.reads, mtl.ResourceUsageRead)
	declare(enc, prog.writes, mtl.ResourceUsageRead|mtl.ResourceUsageWrite)
}
