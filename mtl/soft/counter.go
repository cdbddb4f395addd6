package soft

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A CounterSampling is where a device can sample its counters.
type CounterSampling uint8

// Where counters are sampled.
const (
	// SampleStages samples at the begin and the end of encoders, as Apple GPUs do.
	SampleStages CounterSampling = iota
	// SampleDispatches samples between dispatches, too, as the GPUs of Intel Macs do.
	SampleDispatches
	// SampleNothing is a device without counters.
	SampleNothing
	// SampleZeros samples as SampleStages does, but every sample is zero, as on some systems.
	SampleZeros
)

// maxSamples is how many samples a buffer has at most: 32 KiB of timestamps, as on Apple GPUs.
const maxSamples = 4096

// timestamp is what the device's clock shows, in nanoseconds; sampleTimestamps:gpuTimestamp: gives it for both sides.
func timestamp() uint64 { return uint64(time.Since(epoch)) }

func (d *device) samplesAt(p mtl.CounterSamplingPoint) bool {
	switch d.opts.Sampling {
	case SampleNothing:
		return false
	case SampleDispatches:
		return p == mtl.CounterSamplingPointAtStageBoundary || p == mtl.CounterSamplingPointAtDispatchBoundary
	}
	return p == mtl.CounterSamplingPointAtStageBoundary
}

// counterSetClass is MTLCounterSet: the device has one, of timestamps. counterClass is the counter in it.
var (
	counterClass = objc.NewGoClass("MTLCounter", map[string]objc.Method{
		"name": func(c *objc.Call) { c.ReturnString("GPUTimestamp") },
	})
	counterSetClass = objc.NewGoClass("MTLCounterSet", map[string]objc.Method{
		"name": func(c *objc.Call) { c.ReturnString(mtl.CommonCounterSetTimestamp) },
		"counters": func(c *objc.Call) {
			id := counterClass.New(nil)
			c.ReturnBorrowed(objc.NSArray(id).Autorelease())
			id.Release()
		},
	})
)

// newCounterSets makes the array of the device's counter sets.
func (d *device) newCounterSets() objc.ID {
	if d.opts.Sampling == SampleNothing {
		return objc.NSArray()
	}
	set := counterSetClass.New(counterSet{d.registry})
	defer set.Release()
	return objc.NSArray(set)
}

// A counterSet says whose it is.
type counterSet struct{ registry uint64 }

// A sampleBuffer is MTLCounterSampleBuffer.
type sampleBuffer struct {
	object
	stamps []atomic.Uint64
	shared bool
}

// Dealloc lets go of what the buffer holds.
func (b *sampleBuffer) Dealloc() { b.dev.forget() }

func (d *device) newSampleBuffer(desc objc.ID) (*sampleBuffer, error) {
	if d.opts.Sampling == SampleNothing {
		return nil, fmt.Errorf("the device samples no counters")
	}
	if desc == 0 {
		return nil, fmt.Errorf("there is no descriptor")
	}
	if set, ok := objc.Value(readID(desc, "counterSet")).(counterSet); !ok || set.registry != d.registry {
		return nil, fmt.Errorf("%s is no counter set of this device", describe(readID(desc, "counterSet")))
	}
	n, mode := readUint(desc, "sampleCount"), mtl.StorageMode(readUint(desc, "storageMode"))
	if n == 0 || n > maxSamples {
		return nil, fmt.Errorf("%d samples; from 1 to %d can be in a buffer", n, maxSamples)
	}
	if mode != mtl.StorageModeShared && mode != mtl.StorageModePrivate {
		return nil, fmt.Errorf("storage mode %d; samples are shared or private", mode)
	}
	b := &sampleBuffer{stamps: make([]atomic.Uint64, n), shared: mode == mtl.StorageModeShared}
	b.dev = d
	for i := range b.stamps {
		b.stamps[i].Store(mtl.CounterErrorValue)
	}
	b.setLabel(readString(desc, "label"))
	b.id = d.adopt(d.classes.sampleBuffer, b)
	return b, nil
}

func (b *sampleBuffer) contains(at, n uint64) bool {
	return at <= uint64(len(b.stamps)) && n <= uint64(len(b.stamps))-at
}

// sample takes a sample.
func (b *sampleBuffer) sample(i uint64) {
	if b.dev.opts.Sampling == SampleZeros {
		b.stamps[i].Store(0)
		return
	}
	b.stamps[i].Store(timestamp())
}

// bytes are samples as they resolve.
func (b *sampleBuffer) bytes(at, n uint64) []byte {
	var out []byte
	for i := range b.stamps[at : at+n] {
		out = binary.NativeEndian.AppendUint64(out, b.stamps[at+uint64(i)].Load())
	}
	return out
}

func sampleBufferMethods() methods[*sampleBuffer] {
	m := methods[*sampleBuffer]{
		"sampleCount": func(b *sampleBuffer, c *objc.Call) { c.Return(uintptr(len(b.stamps))) },
		"resolveCounterRange:": func(b *sampleBuffer, c *objc.Call) {
			at, n := uint64(c.Word(0)), uint64(c.Word(1))
			if !b.shared || !b.contains(at, n) {
				b.dev.misuse("resolveCounterRange: samples %d to %d of %s, which is shared: %t, and has %d", at, at+n, describe(b.id), b.shared, len(b.stamps))
				return
			}
			// A Go object keeps the bytes, and making one never fails.
			if data, err := objc.Data(b.id, b.bytes(at, n)); err == nil {
				c.ReturnBorrowed(data.Autorelease())
			}
		},
	}
	m = m.with(labelled[*sampleBuffer]()).with(deviced[*sampleBuffer]())
	delete(m, "setLabel:") // the descriptor gave it
	return m
}

// addSample adds the taking of a sample to what an encoder encodes.
func (cb *commandBuffer) addSample(b *sampleBuffer, at uint64, barrier bool) {
	cmd := cb.add(opSample)
	cmd.samples, cmd.at, cmd.concurrent = b, at, !barrier
}

// sampleArg is the sample buffer in a message or a descriptor, or the misuse if there is none of this device.
func (cb *commandBuffer) sampleArg(id objc.ID, what string) *sampleBuffer {
	b, _ := objc.Value(id).(*sampleBuffer)
	if b == nil || b.dev != cb.dev {
		cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: %s is no counter sample buffer of this device", what, describe(id))
		return nil
	}
	cb.rec.held = append(cb.rec.held, b.id.Retain())
	return b
}

// sampleCounters samples within an encoder.
func (e *encoderBase) sampleCounters(c *objc.Call, point mtl.CounterSamplingPoint) {
	const what = "sampleCountersInBuffer:atSampleIndex:withBarrier:"
	if !e.open(what) {
		return
	}
	if !e.dev.samplesAt(point) {
		e.cb.fail(mtl.CommandBufferErrorNotPermitted, "%s: the device does not sample there, see supportsCounterSampling:", what)
		return
	}
	b := e.cb.sampleArg(c.Object(0), what)
	if b == nil {
		return
	}
	at := uint64(c.Word(1))
	if !b.contains(at, 1) {
		e.cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: index %d of %d samples", what, at, len(b.stamps))
		return
	}
	e.cb.addSample(b, at, c.Bool(2))
}

// An edgeSample is what an encoder samples at its end.
type edgeSample struct {
	buffer *sampleBuffer
	at     uint64
}

// maxSampleAttachments is how many sample buffers a pass descriptor can name.
const maxSampleAttachments = 4

// attach samples at the begin of an encoder, as its descriptor asks, and notes what to sample at its end.
func (e *computeEncoder) attach(desc objc.ID) {
	const what = "computeCommandEncoderWithDescriptor:"
	defer objc.NewPool().Drain()
	attachments := mtl.ComputePassDescriptorOf(desc).SampleBufferAttachments()
	for i := range uint(maxSampleAttachments) {
		a := attachments.ObjectAtIndexedSubscript(i)
		id := a.SampleBuffer().ID()
		if id == 0 {
			continue
		}
		if !e.dev.samplesAt(mtl.CounterSamplingPointAtStageBoundary) {
			e.cb.fail(mtl.CommandBufferErrorNotPermitted, "%s: the device does not sample at the boundaries of stages", what)
			return
		}
		b := e.cb.sampleArg(id, what)
		if b == nil {
			return
		}
		for k, at := range []uint{a.StartOfEncoderSampleIndex(), a.EndOfEncoderSampleIndex()} {
			switch {
			case at == mtl.CounterDontSample:
			case !b.contains(uint64(at), 1):
				e.cb.fail(mtl.CommandBufferErrorInvalidResource, "%s: sample index %d of %d", what, at, len(b.stamps))
			case k == 0:
				e.cb.addSample(b, uint64(at), true)
			default:
				e.atEnd = append(e.atEnd, edgeSample{b, uint64(at)})
			}
		}
	}
}

// resolveCounters copies samples to a buffer.
func (e *blitEncoder) resolveCounters(c *objc.Call) {
	const what = "resolveCounters:inRange:destinationBuffer:destinationOffset:"
	if !e.open(what) {
		return
	}
	b := e.cb.sampleArg(c.Object(0), what)
	to := e.bufferArg(c, 3, what)
	if b == nil || to == nil {
		return
	}
	at, n, dst := uint64(c.Word(1)), uint64(c.Word(2)), uint64(c.Word(4))
	if !b.contains(at, n) {
		e.misuse("%s: samples %d to %d of %d", what, at, at+n, len(b.stamps))
		return
	}
	if dst%8 != 0 || !e.span(to, dst, 8*n, what) {
		e.misuse("%s: a destination offset of %d", what, dst)
		return
	}
	e.cb.hold(&to.resource)
	cmd := e.cb.add(opResolve)
	cmd.samples, cmd.to, cmd.at, cmd.n, cmd.dst = b, to, at, n, dst
}

// resolve runs opResolve.
func (x *executor) resolve(c *command) *failure {
	if c.to.freed.Load() {
		return invalid("the destination of resolved counters has been released")
	}
	copy(c.to.mem[c.dst:], c.samples.bytes(c.at, c.n))
	return nil
}
