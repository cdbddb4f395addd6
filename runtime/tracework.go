package runtime

import (
	"time"

	"github.com/ingot-metal/ingot/mtl"
)

// tracedWork is what a trace notes of one submission, from the begin of its encoding to its completion. One goroutine
// encodes; then the queue has it.
type tracedWork struct {
	trace   *Trace
	name    string
	begun   time.Time // the encoding
	encoded time.Time
	commit  time.Time

	debug   debugNames
	kernels []tracedKernel
	samples []mtl.CounterSampleBuffer
	desc    mtl.ComputePassDescriptor
	count   int // commands
}

// tracedKernel is a dispatch; its times are samples 2i and 2i+1 of all buffers in turn, if it is timed.
type tracedKernel struct {
	name   string
	group  int32
	number int // of the command
	timed  bool
}

// traceWork begins to note a submission, nil without a trace. It must end with completed or dropped.
func (rt *Runtime) traceWork(name string) *tracedWork {
	t := rt.trace.Load()
	if t == nil {
		return nil
	}
	t.mu.Lock()
	t.pending++
	t.mu.Unlock()
	return &tracedWork{trace: t, name: name, begun: time.Now()}
}

// timesKernels says whether dispatches are to be timed.
func (w *tracedWork) timesKernels() bool { return w != nil && w.trace.sampler.on() }

// apart says whether each dispatch that is timed needs an encoder of its own.
func (w *tracedWork) apart() bool { return w.timesKernels() && !w.trace.sampler.dispatches }

// kernel notes a dispatch and says where its samples go, nowhere if there is no buffer for them.
func (w *tracedWork) kernel(name string, group int32, number int) (b mtl.CounterSampleBuffer, first uint, ok bool) {
	i := 2 * len(w.kernels)
	if i/samplesInBuffer == len(w.samples) {
		t := w.trace
		t.mu.Lock()
		b, err := t.sampler.buffer()
		if err != nil {
			t.noTimes = err.Error()
		}
		t.mu.Unlock()
		w.samples = append(w.samples, b) // nil if there is none: these dispatches have no times
	}
	b = w.samples[i/samplesInBuffer]
	w.kernels = append(w.kernels, tracedKernel{name, group, number, !b.IsNil()})
	return b, uint(i % samplesInBuffer), !b.IsNil()
}

// encoder makes an encoder for one dispatch, which is sampled at both ends. It is borrowed.
func (w *tracedWork) encoder(fn string, cb mtl.CommandBuffer, name string, group int32, number int) (mtl.ComputeCommandEncoder, error) {
	b, first, ok := w.kernel(name, group, number)
	if !ok {
		return concurrentEncoder(fn, cb)
	}
	if w.desc.IsNil() {
		desc, err := mtl.NewComputePassDescriptor(w.trace.rt.dev)
		if err != nil {
			return mtl.ComputeCommandEncoder{}, &Error{Func: fn, Err: because(ErrDevice, err)}
		}
		desc.SetDispatchType(mtl.DispatchTypeConcurrent)
		w.desc = desc
	}
	a := w.desc.SampleBufferAttachments().ObjectAtIndexedSubscript(0)
	a.SetSampleBuffer(b)
	a.SetStartOfEncoderSampleIndex(first)
	a.SetEndOfEncoderSampleIndex(first + 1)
	e := cb.ComputeCommandEncoderWithDescriptor(w.desc)
	if e.IsNil() {
		return e, &Error{Func: fn, Err: &DeviceError{Op: "computeCommandEncoderWithDescriptor:", Text: "the command buffer made no encoder"}}
	}
	return e, nil
}

// ended notes that so many commands have been encoded.
func (w *tracedWork) ended(count int) {
	if w != nil {
		w.encoded, w.count = time.Now(), count
	}
}

// committing notes that the device gets the work.
func (w *tracedWork) committing() {
	if w != nil {
		w.commit = time.Now()
	}
}

// endWork is what a trace notes of the pass, for whoever commits it.
func (st *passState) endWork() *tracedWork {
	w := st.work
	st.work = nil
	w.ended(st.count)
	if w != nil {
		w.named(st.debug.clone())
	}
	return w
}

// named gives the work the names of the pass or program.
func (w *tracedWork) named(d debugNames) {
	if w == nil {
		return
	}
	w.debug = d
	if d.label != "" {
		w.name = d.label
	}
}

// dropped ends work that is not submitted, or was given up with the device.
func (w *tracedWork) dropped() {
	if w != nil {
		w.trace.mu.Lock()
		w.release()
		w.trace.mu.Unlock()
	}
}

// release gives back what the work used. The trace's lock is held.
func (w *tracedWork) release() {
	t := w.trace
	for _, b := range w.samples {
		if !b.IsNil() {
			t.sampler.free = append(t.sampler.free, b)
		}
	}
	w.desc.Release()
	t.pending--
	t.closeIfIdle()
}

// completed notes the times of a submission that has completed, well or not.
func (w *tracedWork) completed(seq uint64, times *gpuTimes, failed *Error) {
	t := w.trace
	if times == nil { // the trace began between the two looks at whether there is one
		times = new(gpuTimes)
	}
	seen := time.Now()
	s := t.clock.now(t.rt.dev)
	from, to, moved := s.interval(times, w.commit, seen)
	stamps := w.resolve()
	t.mu.Lock()
	defer t.mu.Unlock()
	note := ""
	if failed != nil {
		note = failed.Error()
	}
	at := func(x time.Time) time.Duration { return x.Sub(t.start) }
	t.add(traceEvent{lane: laneEncode, name: w.name, start: at(w.begun), end: at(w.encoded), seq: seq, count: w.count})
	t.add(traceEvent{lane: lanePasses, name: w.name, start: at(from), end: at(to), seq: seq, count: w.count, note: note})
	w.place(seq, stamps, func(gpu uint64) time.Duration { return at(s.ticks(gpu).Add(moved)) })
	w.release()
}

// resolve reads the samples, two for each dispatch; those that were not taken are 0.
func (w *tracedWork) resolve() []uint64 {
	var all []uint64
	for i, b := range w.samples {
		n := min(2*len(w.kernels)-i*samplesInBuffer, samplesInBuffer)
		stamps := make([]uint64, n)
		if !b.IsNil() {
			if got, err := mtl.ResolveTimestamps(b, 0, uint(n)); err == nil {
				stamps = got
			}
		}
		all = append(all, stamps...)
	}
	return all
}

// place adds the kernels, their groups and their signposts. The trace's lock is held.
func (w *tracedWork) place(seq uint64, stamps []uint64, at func(uint64) time.Duration) {
	t := w.trace
	measured := false
	spans := groupSpans{groups: w.debug.groups}
	post := 0
	for i, k := range w.kernels {
		first, last := stamps[2*i], stamps[2*i+1]
		if first == 0 || last < first || last == mtl.CounterErrorValue {
			t.lost++
			continue
		}
		measured = true
		from, to := at(first), at(last)
		for ; post < len(w.debug.posts) && w.debug.posts[post].before <= k.number; post++ {
			t.add(traceEvent{lane: laneKernels, post: true, name: w.debug.posts[post].name, start: from, end: from, seq: seq})
		}
		t.add(traceEvent{lane: laneKernels, name: k.name, start: from, end: to, seq: seq, group: groupPath(w.debug.groups, k.group)})
		spans.extend(k.group, from, to, func(g *openSpan) {
			t.add(traceEvent{lane: laneGroups, name: w.debug.groups[g.group-1].name, depth: uint8(min(g.depth, 255)), start: g.from, end: g.to, seq: seq})
		})
	}
	spans.extend(0, 0, 0, func(g *openSpan) {
		t.add(traceEvent{lane: laneGroups, name: w.debug.groups[g.group-1].name, depth: uint8(min(g.depth, 255)), start: g.from, end: g.to, seq: seq})
	})
	if len(w.kernels) > 0 && !measured && t.noTimes == "" {
		t.noTimes = "the device samples counters, but all samples are empty"
	}
	if measured && t.sampler.on() {
		t.noTimes = ""
	}
}
