package runtime

import (
	"fmt"
	"testing"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

func (d *fake) newPipeline(c *objc.Call) {
	desc := mtl.ComputePipelineDescriptorOf(c.Object(0))
	f := objc.Value(desc.ComputeFunction().ID()).(*fakeFunction)
	switch {
	case !f.source && d.refuseBinary == f.k.name:
		c.Fail(3, "CompilerError", 2, "the function cannot be compiled")
		return
	case desc.SupportIndirectCommandBuffers() && (d.refuseICB == f.k.name || d.noICB):
		c.Fail(3, "CompilerError", 2, "compute function cannot be used with indirect command buffers")
		return
	}
	if d.noReflection {
		c.ReturnNew(fakePipelineClass.New(&fakePipeline{f.k, desc.SupportIndirectCommandBuffers(), d}))
		return
	}
	var ids []objc.ID
	for _, a := range f.k.args {
		ids = append(ids, fakeBindingClass.New(&fakeBinding{a}).Autorelease())
	}
	*(*objc.ID)(c.Pointer(2)) = fakeReflectionClass.New(&fakeReflection{objc.NSArray(ids...)}).Autorelease()
	c.ReturnNew(fakePipelineClass.New(&fakePipeline{f.k, desc.SupportIndirectCommandBuffers(), d}))
}

// begin begins another encoder.
func (cb *fakeCB) begin() {
	if cb.made > 0 && !cb.ended {
		panic("two encoders at a time")
	}
	cb.made++
	cb.ended = false
}

func (b *fakeBlit) add(f func()) {
	if b.cb.ended {
		panic("encoding after the end")
	}
	b.cb.cmds = append(b.cb.cmds, fakeCommand{encoder: b.number, blit: f})
}

// fakeBlitMethods are those of an encoder whose commands, too, run backwards.
func fakeBlitMethods() map[string]objc.Method {
	return map[string]objc.Method{
		"endEncoding": self(func(b *fakeBlit, c *objc.Call) { b.cb.ended = true }),
		"copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:": self(func(b *fakeBlit, c *objc.Call) {
			from, to := objc.Value(c.Object(0)).(*fakeBuffer), objc.Value(c.Object(2)).(*fakeBuffer)
			at, dst, n := int(c.Word(1)), int(c.Word(3)), int(c.Word(4))
			b.add(func() { copy(to.mem[dst:dst+n], from.mem[at:at+n]) })
		}),
		"fillBuffer:range:value:": self(func(b *fakeBlit, c *objc.Call) {
			to, at, n, v := objc.Value(c.Object(0)).(*fakeBuffer), int(c.Word(1)), int(c.Word(2)), byte(c.Word(3))
			b.add(func() {
				for i := range to.mem[at : at+n] {
					to.mem[at+i] = v
				}
			})
		}),
	}
}

func (i *fakeICommand) cmd() *fakeCommand { return &i.icb.cmds[i.i] }

func (c *fakeCommand) bind(call *objc.Call) {
	c.buf[call.Word(2)], c.off[call.Word(2)] = objc.Value(call.Object(0)).(*fakeBuffer), int(call.Word(1))
}

func (e *fakeEncoder) use(c *objc.Call) {
	d := e.cb.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, id := range c.IDs(0, c.Uint(1)) {
		d.used[id] |= uint64(c.Word(2))
	}
}

func (e *fakeEncoder) dispatch(c *objc.Call, exact bool) {
	e.cur.grid, e.cur.threads, e.cur.exact = sizeAt(c, 0), sizeAt(c, 3), exact
	if e.cur.grid == (Size{}) {
		d := e.cb.dev
		d.mu.Lock()
		d.primed[e.cur.pl] = true
		d.mu.Unlock()
		return
	}
	if e.cb.queue == nil {
		e.cb.cmds = append(e.cb.cmds, e.cur)
	}
	e.cur.barrier = false
}

func (cb *fakeCB) commit(id objc.ID) {
	d := cb.dev
	if !cb.ended {
		panic("committed before its encoder ended")
	}
	cb.status.Store(uint64(mtl.CommandBufferStatusCommitted))
	if d.hang.Load() {
		return
	}
	if cb.queue != nil {
		cb.signal.mu.Lock()
		cb.signal.value = cb.value
		cb.signal.mu.Unlock()
		cb.status.Store(uint64(mtl.CommandBufferStatusCompleted))
		return
	}
	done := make(chan struct{})
	d.mu.Lock()
	before := d.last
	d.last = done
	cb.number = d.commits
	d.commits++
	d.mu.Unlock()
	failing := d.fail.Add(-1) == 0
	cb.held = make(chan struct{})
	held := cb.held
	id.Retain()
	go func() {
		defer func() {
			time.Sleep(d.holds)
			id.Release()
			close(held)
			close(done) // last: when a command buffer has been let go, so have those before it
		}()
		if before != nil {
			<-before
		}
		if failing {
			cb.failed.Store(true)
			cb.status.Store(uint64(mtl.CommandBufferStatusError)) // and no signal, as a real one may do
			return
		}
		cb.execute()
		if cb.signal != nil {
			cb.signal.mu.Lock()
			cb.signal.value = cb.value
			cb.signal.mu.Unlock()
		}
		cb.status.Store(uint64(mtl.CommandBufferStatusCompleted))
	}()
}

// execute runs each stretch between barriers backwards.
func (cb *fakeCB) execute() {
	d := cb.dev
	d.block.Lock()
	defer d.block.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.executed += len(cb.cmds)
	for start := 0; start < len(cb.cmds); {
		end := start + 1
		for end < len(cb.cmds) && !cb.cmds[end].barrier && cb.cmds[end].encoder == cb.cmds[start].encoder {
			end++
		}
		for i := end - 1; i >= start; i-- {
			if c := &cb.cmds[i]; c.blit != nil {
				c.blit()
			} else {
				c.pl.k.run(c)
			}
		}
		if end < len(cb.cmds) && cb.cmds[end].barrier && cb.cmds[end].encoder == cb.cmds[start].encoder {
			d.barriers++
		}
		start = end
	}
}

// counts are how many dispatches and barriers were executed since the last call.
func (d *fake) counts() (dispatches, barriers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	dispatches, barriers = d.executed, d.barriers
	d.executed, d.barriers = 0, 0
	return
}

// openFakes is how many runtimes on fakes there are: objects are counted when the last one has gone.
var openFakes int

// open opens a runtime on the fake, and checks at the end of the test that nothing of it is left.
func (d *fake) open(t testing.TB, opts ...Option) *Runtime {
	t.Helper()
	before := objc.LiveObjects()
	d.prepare()
	openFakes++
	t.Cleanup(func() {
		d.id.Release()
		openFakes--
		if n := objc.LiveObjects(); n != before && !d.hang.Load() && openFakes == 0 {
			t.Errorf("%d objects leaked", n-before)
		}
		if n := objc.Parked(); n != 0 {
			t.Errorf("%d objects borrowed without a pool", n)
		}
		if err := objc.TakeError(); err != nil {
			t.Error(err)
		}
	})
	rt, err := Open(append([]Option{WithDevice(mtl.DeviceOf(d.id)), WithLibrary([]byte("fake"))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !rt.closed.Load() {
			if err := rt.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return rt
}

func (d *fake) prepare() {
	if d.kernels == nil {
		d.kernels = fakeKernels
	}
	if d.families == 0 {
		d.families = 9
	}
	d.used = map[objc.ID]uint64{}
	d.primed = map[*fakePipeline]bool{}
	d.id = fakeDeviceClass.New(d)
}

// fill, duplicate and bump encode the fake's kernels.
func fill(p *Pass, dst Slice[uint32], v uint32) error {
	l := p.Kernel("fill")
	l.Write(0, dst.View())
	l.Uint32(1, v)
	l.Uint32(2, uint32(dst.Len()))
	return l.Dispatch(D1(1), D1(32))
}

func duplicate(p *Pass, dst, src Slice[uint32]) error {
	if dst.Len() != src.Len() {
		return fmt.Errorf("lengths differ")
	}
	l := p.Kernel("copy")
	l.Read(0, src.View())
	l.Write(1, dst.View())
	l.Uint32(2, uint32(dst.Len()))
	return l.Dispatch(D1(1), D1(32))
}

func bump(p *Pass, x Slice[uint32], v uint32) error {
	l := p.Kernel("add")
	l.ReadWrite(0, x.View())
	l.Uint32(1, v)
	l.Uint32(2, uint32(x.Len()))
	return l.Dispatch(D1(1), D1(32))
}

// withBuiltin makes the fake's library the embedded one, with a source to fall back to.
func withBuiltin(source string) Option {
	return func(c *config) error {
		c.library, c.haveLibrary = nil, false
		c.builtin = builtin{data: func() []byte { return []byte("fake") }, source: func() string { return source }}
		return nil
	}
}

func openFake(d *fake, opts ...Option) (*Runtime, error) {
	return Open(append([]Option{WithDevice(mtl.DeviceOf(d.id)), WithLibrary([]byte("fake"))}, opts...)...)
}
