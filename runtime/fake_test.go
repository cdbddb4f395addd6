package runtime

import (
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
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
	refuse       atomic.Pointer[string] // selector that makes nothing
	refuseICB    string                 // kernel whose pipeline for indirect command buffers is refused
	width        int
	static       bool // one command buffer and encoder for all, which do nothing: for counting allocations
	noBuffers    atomic.Bool
	fail         atomic.Int64  // the commits up to and including this number, counted down, complete; then one fails
	hang         atomic.Bool   // commits never complete
	holds        time.Duration // how long a command buffer is held after its status says that it has completed

	block    sync.Mutex // held by a test that keeps the device from executing
	mu       sync.Mutex
	last     chan struct{} // closed when the last committed buffer has ended
	commits  int
	executed int // dispatches
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
	dev *fake
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
	encoder       int // of the command buffer: Metal orders encoders
	blit          func()
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
	made   int           // encoders
	held   chan struct{} // closed when the device has let go
	number int           // of the commit, from 0
}

type fakeEncoder struct {
	cb  *fakeCB
	cur fakeCommand
}

type fakeBlit struct {
	cb     *fakeCB
	number int
}

type fakeICB struct {
	dev  *fake
	cmds []fakeCommand
}

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

// unless is a method that answers nil when the test refuses its selector.
func unless[T interface{ device() *fake }](f func(x T, c *objc.Call)) objc.Method {
	return self(func(x T, c *objc.Call) {
		if s := x.device().refuse.Load(); s == nil || *s != c.SEL().String() {
			f(x, c)
		}
	})
}

func (d *fake) device() *fake       { return d }
func (q *fakeQueue) device() *fake  { return q.dev }
func (cb *fakeCB) device() *fake    { return cb.dev }
func (b *fakeICB) device() *fake    { return b.dev }
func (b *fakeBuffer) device() *fake { return b.dev }

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
		"contents":  unless(func(b *fakeBuffer, c *objc.Call) { c.ReturnPointer(unsafe.Pointer(&b.mem[0])) }),
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
		"commandBufferWithDescriptor:": unless(func(q *fakeQueue, c *objc.Call) {
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

var fakeCBClass, fakeEncoderClass, fakeBlitClass, fakeICBClass, fakeICommandClass, fakeDeviceClass, fakeArchitectureClass *objc.GoClass

func init() {
	fakeArchitectureClass = objc.NewGoClass("FakeArchitecture", map[string]objc.Method{"name": func(c *objc.Call) { c.ReturnString("fake") }})
	fakeCBClass = objc.NewGoClass("FakeCommandBuffer", map[string]objc.Method{
		"computeCommandEncoderWithDispatchType:": unless(func(cb *fakeCB, c *objc.Call) {
			if c.Word(0) != uintptr(mtl.DispatchTypeConcurrent) {
				panic("not concurrent")
			}
			if cb.queue != nil {
				cb.ended = false
				c.ReturnBorrowed(cb.queue.enc)
				return
			}
			cb.begin()
			c.ReturnBorrowed(fakeEncoderClass.New(&fakeEncoder{cb: cb, cur: fakeCommand{encoder: cb.made}}).Autorelease())
		}),
		"blitCommandEncoder": unless(func(cb *fakeCB, c *objc.Call) {
			cb.begin()
			c.ReturnBorrowed(fakeBlitClass.New(&fakeBlit{cb, cb.made}).Autorelease())
		}),
		"encodeSignalEvent:value:": self(func(cb *fakeCB, c *objc.Call) {
			cb.signal, cb.value = objc.Value(c.Object(0)).(*fakeEvent), uint64(c.Word(1))
		}),
		"commit": self(func(cb *fakeCB, c *objc.Call) { cb.commit(c.ID()) }),
		"waitUntilCompleted": self(func(cb *fakeCB, c *objc.Call) {
			if cb.held != nil {
				<-cb.held
			}
		}),
		"status":       self(func(cb *fakeCB, c *objc.Call) { c.Return(uintptr(cb.status.Load())) }),
		"GPUStartTime": func(c *objc.Call) { c.ReturnFloat64(1) },
		"GPUEndTime":   self(func(cb *fakeCB, c *objc.Call) { c.ReturnFloat64(1.5 + float64(cb.number)/1024) }),
		"error": self(func(cb *fakeCB, c *objc.Call) {
			if cb.failed.Load() {
				c.ReturnBorrowed(objc.NewError("MTLCommandBufferErrorDomain", 3, "page fault in kernel add").Autorelease())
			}
		}),
	})
	fakeBlitClass = objc.NewGoClass("FakeBlitEncoder", fakeBlitMethods())
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
			for i := range cmds {
				cmds[i].encoder = e.cur.encoder
			}
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
		"setKernelBuffer:offset:atIndex:":     self(func(i *fakeICommand, c *objc.Call) { i.cmd().bind(c) }),
		"setThreadgroupMemoryLength:atIndex:": self(func(i *fakeICommand, c *objc.Call) { i.cmd().tg[c.Word(1)] = int(c.Word(0)) }),
		"clearBarrier":                        self(func(i *fakeICommand, c *objc.Call) { i.cmd().barrier = false }),
		"setBarrier":                          self(func(i *fakeICommand, c *objc.Call) { i.cmd().barrier = true }),
		"concurrentDispatchThreadgroups:threadsPerThreadgroup:": self(func(i *fakeICommand, c *objc.Call) { i.cmd().grid, i.cmd().threads = sizeAt(c, 0), sizeAt(c, 3) }),
		"concurrentDispatchThreads:threadsPerThreadgroup:": self(func(i *fakeICommand, c *objc.Call) {
			i.cmd().grid, i.cmd().threads, i.cmd().exact = sizeAt(c, 0), sizeAt(c, 3), true
		}),
	})
	fakeICBClass = objc.NewGoClass("FakeICB", map[string]objc.Method{
		"setLabel:": none,
		"indirectComputeCommandAtIndex:": unless(func(b *fakeICB, c *objc.Call) {
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
		"newBufferWithLength:options:": unless(func(d *fake, c *objc.Call) {
			if !d.noBuffers.Load() {
				raw := make([]byte, c.Uint(0)+256)
				skip := -uintptr(unsafe.Pointer(&raw[0])) & 255
				for i := range raw {
					raw[i] = 0xA5 // fresh memory is not zero by itself
				}
				c.ReturnNew(fakeBufferClass.New(&fakeBuffer{dev: d, mem: raw[skip : skip+c.Word(0)], raw: raw}))
			}
		}),
		"newCommandQueueWithMaxCommandBufferCount:": unless(func(d *fake, c *objc.Call) { c.ReturnNew(fakeQueueClass.New(&fakeQueue{dev: d})) }),
		"newSharedEvent": unless(func(d *fake, c *objc.Call) {
			class := fakeEventClass
			if d.noTimeouts {
				class = fakePlainEventClass
			}
			c.ReturnNew(class.New(&fakeEvent{}))
		}),
		"newLibraryWithData:error:": unless(func(d *fake, c *objc.Call) {
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
		"newComputePipelineStateWithDescriptor:options:reflection:error:": unless(func(d *fake, c *objc.Call) { d.newPipeline(c) }),
		"newIndirectCommandBufferWithDescriptor:maxCommandCount:options:": unless(func(d *fake, c *objc.Call) {
			desc := mtl.IndirectCommandBufferDescriptorOf(c.Object(0))
			if desc.InheritBuffers() || desc.InheritPipelineState() || desc.MaxKernelBufferBindCount() != 31 {
				panic("wrong descriptor")
			}
			if !d.noICB {
				c.ReturnNew(fakeICBClass.New(&fakeICB{d, make([]fakeCommand, c.Word(1))}))
			}
		}),
	}
}
