package runtime

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A fake is a Metal device whose kernels are Go functions: for tests of what the runtime sends, and of devices that fail
// in ways of the test's choosing. Dispatches that no barrier separates run in reverse order, so that a missing barrier
// gives wrong results.
type fake struct {
	id      objc.ID
	kernels []*fakeKernel

	families     int // highest Apple family
	noICB        bool
	noTimeouts   bool
	refuseData   bool
	refuseSource bool
	refuseBinary string // kernel whose pipeline from the binary library is refused
	noReflection bool
	refuseICB    string // kernel whose pipeline for indirect command buffers is refused
	width        int
	static       bool // one command buffer and encoder for all, which do nothing: for counting allocations
	noBuffers    atomic.Bool
	fail         atomic.Int64 // the commits up to and including this number, counted down, complete; then one fails
	hang         atomic.Bool  // commits never complete

	block    sync.Mutex // held by a test that keeps the device from executing
	mu       sync.Mutex
	last     chan struct{} // closed when the last committed buffer has ended
	executed int           // dispatches
	barriers int
	used     map[objc.ID]uint64 // usage declared with useResources
	primed   map[*fakePipeline]bool
}

type fakeArg struct {
	index    int
	name     string
	writable bool
	size     int
	align    int
	data     mtl.DataType
	group    bool // threadgroup memory
	unused   bool
}

type fakeKernel struct {
	name  string
	args  []fakeArg
	width int
	run   func(c *fakeCommand)
}

type fakeLibrary struct {
	dev    *fake
	source bool
}

type fakePipeline struct {
	k   *fakeKernel
	icb bool
	dev *fake
}

type fakeBuffer struct {
	mem []byte
	raw []byte
}

type fakeCommand struct {
	pl            *fakePipeline
	buf           [MaxBuffers]*fakeBuffer
	off           [MaxBuffers]int
	tg            [MaxBuffers]int
	grid, threads Size
	exact         bool
	barrier       bool
	prime         bool
}

// words are n uint32 at a slot.
func (c *fakeCommand) words(slot, n int) []uint32 {
	m := c.buf[slot].mem[c.off[slot]:]
	return unsafe.Slice((*uint32)(unsafe.Pointer(&m[0])), len(m)/4)[:n]
}

func (c *fakeCommand) u32(slot int) uint32 {
	return binary.NativeEndian.Uint32(c.buf[slot].mem[c.off[slot]:])
}

func constU32(index int, name string) fakeArg {
	return fakeArg{index: index, name: name, size: 4, align: 4, data: mtl.DataTypeUInt}
}

func ptrU32(index int, name string, writable bool) fakeArg {
	return fakeArg{index: index, name: name, size: 4, align: 4, data: mtl.DataTypeUInt, writable: writable}
}

// fakeKernels are what the fake's library holds.
var fakeKernels = []*fakeKernel{
	{name: "fill", args: []fakeArg{ptrU32(0, "dst", true), constU32(1, "value"), constU32(2, "n")}, run: func(c *fakeCommand) {
		for i := range c.words(0, int(c.u32(2))) {
			c.words(0, int(c.u32(2)))[i] = c.u32(1)
		}
	}},
	{name: "copy", args: []fakeArg{ptrU32(0, "src", false), ptrU32(1, "dst", true), constU32(2, "n")}, run: func(c *fakeCommand) {
		copy(c.words(1, int(c.u32(2))), c.words(0, int(c.u32(2))))
	}},
	// add: x[i] = 3 * x[i] + v, so that order matters.
	{name: "add", args: []fakeArg{ptrU32(0, "x", true), constU32(1, "v"), constU32(2, "n")}, run: func(c *fakeCommand) {
		x := c.words(0, int(c.u32(2)))
		for i := range x {
			x[i] = 3*x[i] + c.u32(1)
		}
	}},
	{name: "scale", args: []fakeArg{ptrU32(0, "x", true), {index: 1, name: "f", size: 4, align: 4, data: mtl.DataTypeFloat}, {index: 0, name: "tg", group: true},
		{index: 5, name: "spare", size: 4, align: 4, unused: true}}, run: func(c *fakeCommand) {}},
	{name: "wide", width: 64, run: func(c *fakeCommand) {}},
}

type fakeQueue struct {
	dev     *fake
	cb, enc objc.ID // of a static device
}

func (q *fakeQueue) Dealloc() {
	q.cb.Release()
	q.enc.Release()
}

type fakeCB struct {
	dev    *fake
	queue  *fakeQueue // of a static device
	cmds   []fakeCommand
	signal *fakeEvent
	value  uint64
	status atomic.Uint64
	failed atomic.Bool
	ended  bool
}

type fakeEncoder struct {
	cb  *fakeCB
	cur fakeCommand
}

type fakeICB struct{ cmds []fakeCommand }

type fakeICommand struct {
	icb *fakeICB
	i   int
}

type fakeEvent struct {
	mu    sync.Mutex
	value uint64
}

func (e *fakeEvent) get() uint64 { e.mu.Lock(); defer e.mu.Unlock(); return e.value }

func self[T any](f func(x T, c *objc.Call)) objc.Method {
	return func(c *objc.Call) { f(c.Self().(T), c) }
}

func sizeAt(c *objc.Call, i int) Size {
	return Size{int(c.Word(i)), int(c.Word(i + 1)), int(c.Word(i + 2))}
}

func none(*objc.Call) {}

func returns(w ...uintptr) objc.Method { return func(c *objc.Call) { c.Return(w...) } }

type fakeBinding struct{ a fakeArg }

type fakeReflection struct{ array objc.ID }

func (r *fakeReflection) Dealloc() { r.array.Release() }

var (
	fakeBindingClass = objc.NewGoClass("FakeBinding", map[string]objc.Method{
		"name":  self(func(b *fakeBinding, c *objc.Call) { c.ReturnString(b.a.name) }),
		"index": self(func(b *fakeBinding, c *objc.Call) { c.Return(uintptr(b.a.index)) }),
		"type": self(func(b *fakeBinding, c *objc.Call) {
			if b.a.group {
				c.Return(uintptr(mtl.BindingTypeThreadgroupMemory))
			}
		}),
		"access": self(func(b *fakeBinding, c *objc.Call) {
			if b.a.writable {
				c.Return(uintptr(mtl.BindingAccessReadWrite))
			}
		}),
		"isUsed":          self(func(b *fakeBinding, c *objc.Call) { c.ReturnBool(!b.a.unused) }),
		"bufferDataSize":  self(func(b *fakeBinding, c *objc.Call) { c.Return(uintptr(b.a.size)) }),
		"bufferAlignment": self(func(b *fakeBinding, c *objc.Call) { c.Return(uintptr(b.a.align)) }),
		"bufferDataType":  self(func(b *fakeBinding, c *objc.Call) { c.Return(uintptr(b.a.data)) }),
	})
	fakeReflectionClass = objc.NewGoClass("FakeReflection", map[string]objc.Method{
		"bindings": self(func(r *fakeReflection, c *objc.Call) { c.ReturnBorrowed(r.array) }),
	})
	fakeBufferClass = objc.NewGoClass("FakeBuffer", map[string]objc.Method{
		"contents":  self(func(b *fakeBuffer, c *objc.Call) { c.ReturnPointer(unsafe.Pointer(&b.mem[0])) }),
		"length":    self(func(b *fakeBuffer, c *objc.Call) { c.Return(uintptr(len(b.mem))) }),
		"setLabel:": none,
	})
	fakeEventClass = objc.NewGoClass("FakeEvent", map[string]objc.Method{
		"signaledValue": self(func(e *fakeEvent, c *objc.Call) { c.Return(uintptr(e.get())) }),
		"waitUntilSignaledValue:timeoutMS:": self(func(e *fakeEvent, c *objc.Call) {
			end := time.Now().Add(time.Duration(c.Word(1)) * time.Millisecond)
			for e.get() < uint64(c.Word(0)) && time.Now().Before(end) {
				time.Sleep(20 * time.Microsecond)
			}
			c.ReturnBool(e.get() >= uint64(c.Word(0)))
		}),
	})
	fakePlainEventClass = objc.NewGoClass("FakePlainEvent", map[string]objc.Method{
		"signaledValue": self(func(e *fakeEvent, c *objc.Call) { c.Return(uintptr(e.get())) }),
	})
	fakePipelineClass = objc.NewGoClass("FakePipeline", map[string]objc.Method{
		"maxTotalThreadsPerThreadgroup": returns(256),
		"staticThreadgroupMemoryLength": returns(64),
		"threadExecutionWidth":          self(func(p *fakePipeline, c *objc.Call) { c.Return(uintptr(max(p.dev.width, p.k.width, 32))) }),
	})
	fakeFunctionClass = objc.NewGoClass("FakeFunction", map[string]objc.Method{})
	fakeLibraryClass  = objc.NewGoClass("FakeLibrary", map[string]objc.Method{
		"setLabel:": none,
		"newFunctionWithName:": self(func(l *fakeLibrary, c *objc.Call) {
			name := objc.GoString(c.Object(0))
			for _, k := range l.dev.kernels {
				if k.name == name {
					c.ReturnNew(fakeFunctionClass.New(&fakeFunction{k, l.source}))
				}
			}
		}),
		"newFunctionWithName:constantValues:error:": self(func(l *fakeLibrary, c *objc.Call) {
			name := objc.GoString(c.Object(0))
			for _, k := range l.dev.kernels {
				if k.name == name {
					c.ReturnNew(fakeFunctionClass.New(&fakeFunction{k, l.source}))
					return
				}
			}
			c.Fail(2, "MTLLibraryErrorDomain", 5, "no such function")
		}),
		"functionNames": self(func(l *fakeLibrary, c *objc.Call) {
			var ids []objc.ID
			for _, k := range l.dev.kernels {
				ids = append(ids, objc.NSString(k.name).Autorelease())
			}
			c.ReturnBorrowed(objc.NSArray(ids...).Autorelease())
		}),
	})
	fakeQueueClass = objc.NewGoClass("FakeQueue", map[string]objc.Method{
		"setLabel:": none,
		"commandBufferWithDescriptor:": self(func(q *fakeQueue, c *objc.Call) {
			if q.dev.static {
				if q.cb == 0 {
					cb := &fakeCB{dev: q.dev, queue: q}
					q.cb, q.enc = fakeCBClass.New(cb), fakeEncoderClass.New(&fakeEncoder{cb: cb})
				}
				c.ReturnBorrowed(q.cb)
				return
			}
			c.ReturnBorrowed(fakeCBClass.New(&fakeCB{dev: q.dev}).Autorelease())
		}),
	})
)

type fakeFunction struct {
	k      *fakeKernel
	source bool
}

var fakeCBClass, fakeEncoderClass, fakeICBClass, fakeICommandClass, fakeDeviceClass, fakeArchitectureClass *objc.GoClass

func init() {
	fakeArchitectureClass = objc.NewGoClass("FakeArchitecture", map[string]objc.Method{"name": func(c *objc.Call) { c.ReturnString("fake") }})
	fakeCBClass = objc.NewGoClass("FakeCommandBuffer", map[string]objc.Method{
		"computeCommandEncoderWithDispatchType:": self(func(cb *fakeCB, c *objc.Call) {
			if c.Word(0) != uintptr(mtl.DispatchTypeConcurrent) {
				panic("not concurrent")
			}
			if cb.queue != nil {
				cb.ended = false
				c.ReturnBorrowed(cb.queue.enc)
				return
			}
			c.ReturnBorrowed(fakeEncoderClass.New(&fakeEncoder{cb: cb}).Autorelease())
		}),
		"encodeSignalEvent:value:": self(func(cb *fakeCB, c *objc.Call) {
			cb.signal, cb.value = objc.Value(c.Object(0)).(*fakeEvent), uint64(c.Word(1))
		}),
		"commit":       self(func(cb *fakeCB, c *objc.Call) { cb.commit() }),
		"status":       self(func(cb *fakeCB, c *objc.Call) { c.Return(uintptr(cb.status.Load())) }),
		"GPUStartTime": func(c *objc.Call) { c.ReturnFloat64(1) },
		"GPUEndTime":   func(c *objc.Call) { c.ReturnFloat64(1.5) },
		"error": self(func(cb *fakeCB, c *objc.Call) {
			if cb.failed.Load() {
				c.ReturnBorrowed(objc.NewError("MTLCommandBufferErrorDomain", 3, "page fault in kernel add").Autorelease())
			}
		}),
	})
	fakeEncoderClass = objc.NewGoClass("FakeEncoder", map[string]objc.Method{
		"endEncoding": self(func(e *fakeEncoder, c *objc.Call) {
			if e.cb.ended {
				panic("ended twice")
			}
			e.cb.ended = true
		}),
		"setComputePipelineState:":  self(func(e *fakeEncoder, c *objc.Call) { e.cur.pl = objc.Value(c.Object(0)).(*fakePipeline) }),
		"setBuffer:offset:atIndex:": self(func(e *fakeEncoder, c *objc.Call) { e.cur.bind(c) }),
		"setBufferOffset:atIndex:":  self(func(e *fakeEncoder, c *objc.Call) { e.cur.off[c.Word(1)] = int(c.Word(0)) }),
		"memoryBarrierWithScope:":   self(func(e *fakeEncoder, c *objc.Call) { e.cur.barrier = true }),
		"useResources:count:usage:": self(func(e *fakeEncoder, c *objc.Call) { e.use(c) }),
		"executeCommandsInBuffer:withRange:": self(func(e *fakeEncoder, c *objc.Call) {
			if e.cb.queue != nil {
				return
			}
			cmds := slices.Clone(objc.Value(c.Object(0)).(*fakeICB).cmds[c.Word(1) : c.Word(1)+c.Word(2)])
			cmds[0].barrier = cmds[0].barrier || e.cur.barrier
			e.cur.barrier = false
			e.cb.cmds = append(e.cb.cmds, cmds...)
		}),
		"setThreadgroupMemoryLength:atIndex:":         self(func(e *fakeEncoder, c *objc.Call) { e.cur.tg[c.Word(1)] = int(c.Word(0)) }),
		"dispatchThreadgroups:threadsPerThreadgroup:": self(func(e *fakeEncoder, c *objc.Call) { e.dispatch(c, false) }),
		"dispatchThreads:threadsPerThreadgroup:":      self(func(e *fakeEncoder, c *objc.Call) { e.dispatch(c, true) }),
	})
	fakeICommandClass = objc.NewGoClass("FakeIndirectCommand", map[string]objc.Method{
		"setComputePipelineState:": self(func(i *fakeICommand, c *objc.Call) {
			i.cmd().pl = objc.Value(c.Object(0)).(*fakePipeline)
			if !i.cmd().pl.icb {
				panic("pipeline without supportIndirectCommandBuffers")
			}
		}),
		"setKernelBuffer:offset:atIndex:":                       self(func(i *fakeICommand, c *objc.Call) { i.cmd().bind(c) }),
		"setThreadgroupMemoryLength:atIndex:":                   self(func(i *fakeICommand, c *objc.Call) { i.cmd().tg[c.Word(1)] = int(c.Word(0)) }),
		"setBarrier":                                            self(func(i *fakeICommand, c *objc.Call) { i.cmd().barrier = true }),
		"concurrentDispatchThreadgroups:threadsPerThreadgroup:": self(func(i *fakeICommand, c *objc.Call) { i.cmd().grid, i.cmd().threads = sizeAt(c, 0), sizeAt(c, 3) }),
		"concurrentDispatchThreads:threadsPerThreadgroup:": self(func(i *fakeICommand, c *objc.Call) {
			i.cmd().grid, i.cmd().threads, i.cmd().exact = sizeAt(c, 0), sizeAt(c, 3), true
		}),
	})
	fakeICBClass = objc.NewGoClass("FakeICB", map[string]objc.Method{
		"indirectComputeCommandAtIndex:": self(func(b *fakeICB, c *objc.Call) {
			c.ReturnBorrowed(fakeICommandClass.New(&fakeICommand{b, int(c.Word(0))}).Autorelease())
		}),
	})
	fakeDeviceClass = objc.NewGoClass("FakeDevice", fakeDeviceMethods())
}

func fakeDeviceMethods() map[string]objc.Method {
	return map[string]objc.Method{
		"name":                         func(c *objc.Call) { c.ReturnString("Fake") },
		"architecture":                 func(c *objc.Call) { c.ReturnBorrowed(fakeArchitectureClass.New(nil).Autorelease()) },
		"hasUnifiedMemory":             returns(1),
		"recommendedMaxWorkingSetSize": returns(1 << 30),
		"maxThreadsPerThreadgroup":     returns(1024, 1024, 64),
		"maxThreadgroupMemoryLength":   returns(32768),
		"maxBufferLength":              returns(64 << 20),
		"supportsFamily:": self(func(d *fake, c *objc.Call) {
			f := int(c.Word(0))
			c.ReturnBool(f > 1000 && f <= 1000+d.families || f == int(mtl.GPUFamilyMac2))
		}),
		"newBufferWithLength:options:": self(func(d *fake, c *objc.Call) {
			if !d.noBuffers.Load() {
				raw := make([]byte, c.Uint(0)+256)
				skip := -uintptr(unsafe.Pointer(&raw[0])) & 255
				for i := range raw {
					raw[i] = 0xA5 // fresh memory is not zero by itself
				}
				c.ReturnNew(fakeBufferClass.New(&fakeBuffer{mem: raw[skip : skip+c.Word(0)], raw: raw}))
			}
		}),
		"newCommandQueueWithMaxCommandBufferCount:": self(func(d *fake, c *objc.Call) { c.ReturnNew(fakeQueueClass.New(&fakeQueue{dev: d})) }),
		"newSharedEvent": self(func(d *fake, c *objc.Call) {
			class := fakeEventClass
			if d.noTimeouts {
				class = fakePlainEventClass
			}
			c.ReturnNew(class.New(&fakeEvent{}))
		}),
		"newLibraryWithData:error:": self(func(d *fake, c *objc.Call) {
			if d.refuseData {
				c.Fail(1, "MTLLibraryErrorDomain", 1, "this library is not supported on this OS")
				return
			}
			c.ReturnNew(fakeLibraryClass.New(&fakeLibrary{d, false}))
		}),
		"newLibraryWithSource:options:error:": self(func(d *fake, c *objc.Call) {
			o := mtl.CompileOptionsOf(c.Object(1))
			if o.LanguageVersion() != mtl.LanguageVersion3_1 || o.FastMathEnabled() {
				panic("source compiled with the wrong options")
			}
			if d.refuseSource {
				c.Fail(2, "MTLLibraryErrorDomain", 3, "no compiler")
				return
			}
			c.ReturnNew(fakeLibraryClass.New(&fakeLibrary{d, true}))
		}),
		"newComputePipelineStateWithDescriptor:options:reflection:error:": self(func(d *fake, c *objc.Call) { d.newPipeline(c) }),
		"newIndirectCommandBufferWithDescriptor:maxCommandCount:options:": self(func(d *fake, c *objc.Call) {
			desc := mtl.IndirectCommandBufferDescriptorOf(c.Object(0))
			if desc.InheritBuffers() || desc.InheritPipelineState() || desc.MaxKernelBufferBindCount() != 31 {
				panic("wrong descriptor")
			}
			if !d.noICB {
				c.ReturnNew(fakeICBClass.New(&fakeICB{make([]fakeCommand, c.Word(1))}))
			}
		}),
	}
}

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

func (cb *fakeCB) commit() {
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
	d.mu.Unlock()
	failing := d.fail.Add(-1) == 0
	go func() {
		defer close(done)
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
		for end < len(cb.cmds) && !cb.cmds[end].barrier {
			end++
		}
		for i := end - 1; i >= start; i-- {
			cb.cmds[i].pl.k.run(&cb.cmds[i])
		}
		if end < len(cb.cmds) {
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
