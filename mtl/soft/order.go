package soft

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
)

// What orders encoders, by Metal's rules:
//
//   - Encoders of one queue that declare the same tracked resource, one of them for writing, run one after the other. Binding
//     declares; useResource declares for its usage, useHeap for reading. Buffers are tracked unless their options say
//     otherwise, those of a heap only if the heap's options say so. Residency sets declare nothing.
//   - An encoder that waits for a fence runs after those that updated it, one with a barrier after queue stages runs after all
//     before it in its queue.
//   - What follows a wait for an event in a queue runs after what came before the signal in its queue.
//   - What is committed after the host has seen that a command buffer completed, or an event's value, runs after that.
//
// Nothing else orders encoders, not even their places in a queue. This device runs the encoders of a queue in order all
// the same, and finds by what they touch, byte for byte, those that another device would be free to run at the same time.
// Only accesses to loose storages need looking at: where all declare a tracked resource in one queue, Metal orders.

// orderWindow is how many encoders are remembered. Those before count as ordered.
const orderWindow = 256

// encoderSet is a set of encoders by their places in the ledger. Encoders are counted; the k-th takes place k modulo
// orderWindow from the one that had it.
type encoderSet struct {
	places [orderWindow / 64]uint64
	count  uint64 // of encoders that had begun when the set was current
}

// refresh makes the set current: encoders whose places have been taken since are in it no more.
func (s *encoderSet) refresh(count uint64) {
	if count-s.count >= orderWindow {
		s.places = [orderWindow / 64]uint64{}
	} else {
		for k := s.count; k < count; k++ {
			i := k % orderWindow
			s.places[i>>6] &^= 1 << (i & 63)
		}
	}
	s.count = count
}

// has, add, join and each are of current sets.
func (s *encoderSet) has(i int) bool { return s.places[i>>6]&(1<<(i&63)) != 0 }
func (s *encoderSet) add(i int)      { s.places[i>>6] |= 1 << (i & 63) }

func (s *encoderSet) join(t *encoderSet) {
	for i := range s.places {
		s.places[i] |= t.places[i]
	}
}

func (s *encoderSet) each(f func(i int)) {
	for w, word := range s.places {
		for ; word != 0; word &= word - 1 {
			f(w<<6 + bits.TrailingZeros64(word))
		}
	}
}

// unite makes both sets current and joins them.
func (l *ledger) unite(s, t *encoderSet) {
	s.refresh(l.count)
	t.refresh(l.count)
	s.join(t)
}

// An encoderRun is an encoder that runs or ran.
type encoderRun struct {
	before encoderSet // the encoders that are ordered before it
	queue  *queue
	serial uint64 // of the command buffer
	index  int
	kind   string
	label  string
	traces []*trace // what it did to loose storages, one for each
}

// A ledger knows the encoders of a device and what orders them.
type ledger struct {
	mu    sync.Mutex
	runs  [orderWindow]encoderRun
	count uint64     // of encoders that have begun
	seen  encoderSet // by the host: they have completed
}

// A sharing is how encoders of a queue declare a storage that is tracked.
type sharing struct {
	queue   *queue
	writer  encoderSet // the last encoder that declares it for writing
	readers encoderSet // those that declare it for reading since
}

// ordering is the part of a storage that concerns the order of encoders.
type ordering struct {
	// loose is set for good when Metal may not know of an access, or does not order it: the resource is not tracked, an
	// encoder does not declare it, or several queues use it.
	loose    atomic.Bool
	user     atomic.Pointer[queue] // the first queue that used it
	sharings []sharing             // guarded by the ledger
}

// used notes that a queue uses the storage.
func (o *ordering) used(q *queue) {
	if first := o.user.Load(); first != q && (first != nil || !o.user.CompareAndSwap(nil, q)) {
		o.loose.Store(true)
	}
}

func (l *ledger) sharing(o *ordering, q *queue) *sharing {
	for i := range o.sharings {
		if o.sharings[i].queue == q {
			return &o.sharings[i]
		}
	}
	o.sharings = append(o.sharings, sharing{queue: q})
	return &o.sharings[len(o.sharings)-1]
}

// after orders encoder i after encoder j and what comes before that.
func (l *ledger) after(i, j int) {
	if i != j {
		l.runs[i].before.add(j)
		l.unite(&l.runs[i].before, &l.runs[j].before)
	}
}

// observe notes that the host has seen encoders complete.
func (l *ledger) observe(s *encoderSet) {
	l.mu.Lock()
	l.unite(&l.seen, s)
	l.mu.Unlock()
}

// orderEvent notes what comes before a signal of an event: encoders, or, if it is the host's, what that has seen.
func (l *ledger) orderEvent(e *event, s *encoderSet) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s == nil {
		s = &l.seen
	}
	l.unite(&e.order, s)
}

// waitEvent adds what came before the signals of an event.
func (l *ledger) waitEvent(e *event, to *encoderSet) {
	l.mu.Lock()
	l.unite(to, &e.order)
	l.mu.Unlock()
}

// observeEvent notes that the host has seen the event's value.
func (l *ledger) observeEvent(e *event) {
	l.mu.Lock()
	l.unite(&l.seen, &e.order)
	l.mu.Unlock()
}

// forget drops what was done to a storage that is no more.
func (l *ledger) forget(s *storage) {
	if !s.order.loose.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.runs {
		r := &l.runs[i]
		r.traces = slices.DeleteFunc(r.traces, func(t *trace) bool { return t.storage == s })
	}
}

func (l *ledger) observed() encoderSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen
}

// tracked tells whether Metal orders encoders by their use of the buffer.
func (b *buffer) tracked() bool {
	if b.heap != nil {
		return mtl.HazardTrackingMode(b.heap.options&hazardMask>>hazardShift) == mtl.HazardTrackingModeTracked
	}
	return mtl.HazardTrackingMode(b.options&hazardMask>>hazardShift) != mtl.HazardTrackingModeUntracked
}

// A declaration is how the encoder that runs declares a storage.
type declaration struct {
	storage *storage
	write   bool
}

// declares notes that the encoder that runs declares a storage. What is not tracked is loose instead.
func (x *executor) declares(s *storage, tracked, write bool) {
	s.order.used(x.queue)
	if !tracked {
		s.order.loose.Store(true)
		return
	}
	for s.index >= len(x.declaredAt) {
		x.declaredAt = append(x.declaredAt, -1)
	}
	if at := x.declaredAt[s.index]; at >= 0 && int(at) < len(x.declarations) && x.declarations[at].storage == s {
		x.declarations[at].write = x.declarations[at].write || write
		return
	}
	x.declaredAt[s.index] = int32(len(x.declarations))
	x.declarations = append(x.declarations, declaration{s, write})
}

// declaration is how the encoder declares a storage, nil if not.
func (x *executor) declaration(s *storage) *declaration {
	if s.index < len(x.declaredAt) {
		if at := int(x.declaredAt[s.index]); at >= 0 && at < len(x.declarations) && x.declarations[at].storage == s {
			return &x.declarations[at]
		}
	}
	return nil
}

// beginOrder enters the encoder that begins with command first of the command buffer, and finds what is ordered before it.
// Metal knows all that an encoder declares before it runs.
func (x *executor) beginOrder(cb *commandBuffer, first int) {
	x.declarations = x.declarations[:0]
	l := &x.dev.ledger
	commands := cb.rec.commands[first+1:]
	fences := false
	for i := range commands {
		c := &commands[i]
		if c.op == opEnd {
			commands = commands[:i]
			break
		}
		x.declareCommand(c)
		fences = fences || c.op == opFenceWait || c.op == opFenceUpdate || c.op == opQueueBarrier
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	n := int(l.count % orderWindow)
	l.count++
	run := &l.runs[n]
	for _, t := range run.traces {
		x.window.drop(t)
	}
	e := &cb.rec.encodings[x.encoder]
	*run = encoderRun{before: cb.seen, queue: x.queue, serial: cb.serial, index: x.encoder, kind: e.kind, label: e.label, traces: run.traces[:0]}
	run.before.refresh(l.count)
	l.unite(&run.before, &x.waited)
	x.place = n
	for _, d := range x.declarations {
		s := l.sharing(&d.storage.order, x.queue)
		s.writer.refresh(l.count)
		s.readers.refresh(l.count)
		s.writer.each(func(j int) { l.after(n, j) })
		if d.write {
			s.readers.each(func(j int) { l.after(n, j) })
			s.writer, s.readers = encoderSet{count: l.count}, encoderSet{count: l.count}
			s.writer.add(n)
		} else {
			s.readers.add(n)
		}
	}
	if fences {
		for i := range commands {
			switch c := &commands[i]; c.op {
			case opFenceWait:
				l.unite(&run.before, &c.fence.order)
			case opFenceUpdate:
				l.unite(&c.fence.order, &run.before)
				c.fence.order.add(n)
			case opQueueBarrier:
				l.unite(&run.before, &x.all)
			}
		}
	}
	x.all.refresh(l.count)
	x.all.add(n)
}

// declareCommand notes what one command declares.
func (x *executor) declareCommand(c *command) {
	switch c.op {
	case opDispatch:
		for i := range c.binds {
			if b := &c.binds[i]; b.buf != nil {
				if a := c.pipeline.arg(air.BufferArg, b.slot); a != nil && !a.Unused {
					x.declares(b.buf.storage, b.buf.tracked(), a.Writable)
				}
			}
		}
	case opExecute:
		if c.icb.inheritBuffers {
			for i := range c.binds {
				if b := c.binds[i].buf; b != nil {
					x.declares(b.storage, b.tracked(), true)
				}
			}
		}
	case opUse:
		switch {
		case c.to != nil:
			x.declares(c.to.storage, c.to.tracked(), c.write)
		case c.storage != nil: // a heap's
			x.declares(c.storage, mtl.HazardTrackingMode(c.resource.options&hazardMask>>hazardShift) == mtl.HazardTrackingModeTracked, false)
		}
	case opCopy, opFill, opResolve:
		if c.from != nil {
			x.declares(c.from.storage, c.from.tracked(), false)
		}
		x.declares(c.to.storage, c.to.tracked(), true)
	}
	if c.indirect != nil {
		x.declares(c.indirect.storage, c.indirect.tracked(), false)
	}
}

// loosen finds out whether what an indirect command binds is declared as it uses it.
func (x *executor) loosen(p *pipeline, b *binding) {
	a := p.arg(air.BufferArg, b.slot)
	if b.buf == nil || a == nil || a.Unused {
		return
	}
	s := b.buf.storage
	s.order.used(x.queue)
	if d := x.declaration(s); d == nil || a.Writable && !d.write || !b.buf.tracked() {
		s.order.loose.Store(true)
	}
}

// traceLoose has the dispatches watched that could touch loose storages.
func (x *executor) traceLoose() {
	for i := range x.steps {
		s := &x.steps[i]
		x.each(s, func(st *storage, _ bool) {
			if st.order.loose.Load() {
				s.traced = true
			}
		})
	}
}

// watched tells whether accesses to a storage are noted.
func (x *executor) watched(s *storage) bool { return x.meets(s) || s.order.loose.Load() }

// orderBlit looks at what a copy or a fill does to loose storages.
func (x *executor) orderBlit(c *command) *failure {
	if x.dev.opts.NoHazards || c.op != opCopy && c.op != opFill {
		return nil
	}
	x.fresh = x.fresh[:0]
	note := func(b *buffer, at uint64, what access) {
		if b != nil && b.storage.order.loose.Load() {
			t := x.window.open(b.storage, 0, indirectSlot)
			t.note(b.base+at, c.n, what, x.window.pool)
			x.fresh = append(x.fresh, t)
		}
	}
	note(c.from, c.at, reads)
	note(c.to, c.dst, writes)
	if len(x.fresh) == 0 {
		return nil
	}
	f := x.noteOrder(&origin{encoder: x.encoder, command: -1, blit: true}, x.fresh)
	x.dropTraces()
	return f
}

// noteOrder compares what a dispatch or blit did to loose storages with what encoders did that nothing orders before this
// one. o says which it is.
func (x *executor) noteOrder(o *origin, fresh []*trace) *failure {
	l := &x.dev.ledger
	for _, t := range fresh {
		if !t.storage.order.loose.Load() {
			continue
		}
		l.mu.Lock()
		f := x.compareOrder(l, o, t)
		l.mu.Unlock()
		if f != nil {
			return f
		}
	}
	return nil
}

func (x *executor) compareOrder(l *ledger, o *origin, t *trace) *failure {
	me := &l.runs[x.place]
	me.before.refresh(l.count)
	for i := range l.runs {
		r := &l.runs[i]
		if i == x.place || len(r.traces) == 0 || me.before.has(i) {
			continue
		}
		if r.before.refresh(l.count); r.before.has(x.place) {
			continue
		}
		for _, e := range r.traces {
			if e.storage != t.storage {
				continue
			}
			if c, hit := t.meets(e); hit {
				return &failure{code: mtl.CommandBufferErrorInvalidResource, encoder: x.encoder, text: x.orderText(o, r, &c)}
			}
		}
	}
	for _, u := range me.traces {
		if u.storage == t.storage {
			joinTrace(u, t, x.window.pool)
			return nil
		}
	}
	u := x.window.open(t.storage, 0, 0)
	joinTrace(u, t, x.window.pool)
	me.traces = append(me.traces, u)
	return nil
}

func joinTrace(to, from *trace, pool *pagePool) {
	for i := range to.sets {
		to.sets[i].join(&from.sets[i], pool)
	}
}

// orderText says which encoders met where.
func (x *executor) orderText(o *origin, r *encoderRun, c *clash) string {
	base, what := uint64(0), "a buffer"
	if b := o.buffer(c.later.slot); b != nil {
		base, what = b.base, b.name()
	}
	other := encoding{kind: r.kind, label: r.label}
	whose := "of the same command buffer"
	why := "no fence orders them and the resource is not tracked there"
	switch {
	case r.queue != x.queue:
		whose, why = "of another queue", "no event orders them"
	case r.serial != x.serial:
		whose = "of an earlier command buffer"
	}
	return fmt.Sprintf("hazard between encoders: %s %s bytes %d to %d of %s, which %s %s %s: %s",
		o.where(), accessNames[c.does][0], c.from-base, c.to-base, what, other.name(r.index), whose, accessNames[c.did][1], why)
}
