package soft

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A device is MTLDevice. Everything it makes holds it; it goes when all of that has gone.
type device struct {
	id       objc.ID
	opts     Options
	classes  *classes
	registry uint64
	// architecture is the object that says which architecture the device has.
	architecture objc.ID
	counterSets  objc.ID // an array
	families     map[mtl.GPUFamily]bool

	addresses       addresses
	resourceIndices indices
	pipelineIndices indices
	pages           *pagePool
	ledger          ledger

	faults struct{ times, allocation, contents, residency, pipeline, commit, hang, remove atomic.Int64 }

	removed    chan struct{} // closed when the device is removed
	removeOnce sync.Once

	messages                                    messageCounters
	objects, allocated, goroutines              atomic.Int64
	commits, dispatches, threadgroups, failures atomic.Uint64
	indirectCommands, traced                    atomic.Uint64

	mu         sync.Mutex
	kernels    map[string]*kernelCounts
	queues     map[*queue]bool
	misused    []error // misuse that no command buffer could report yet
	refusal    error   // why the last nil was returned
	recordings []*recording
	encoders   []*computeEncoder
	concurrent bool // shouldMaximizeConcurrentCompilation
}

func (d *device) device() *device { return d }
func (d *device) label() string   { return d.opts.Name }

// setLabel does nothing: devices have no labels.
func (d *device) setLabel(string) {}

// Dealloc is called when nothing of the device is left.
func (d *device) Dealloc() {
	d.architecture.Release()
	d.counterSets.Release()
}

var registries atomic.Uint64

// New makes a device. The caller releases it: it goes, with all its memory, when everything that it made has gone.
func New(opts Options) mtl.Device {
	d := &device{opts: opts.withDefaults(), registry: 0x696e676f7400_0000 + registries.Add(1), removed: make(chan struct{}),
		queues: map[*queue]bool{}, families: map[mtl.GPUFamily]bool{}, pages: newPagePool()}
	for _, f := range d.opts.Families {
		d.families[f] = true
	}
	d.addresses.next.Store(1 << 32)
	d.classes = classesFor(&d.opts)
	d.arm(d.opts.Faults)
	d.architecture = architectureClass.New(nil)
	d.counterSets = d.newCounterSets()
	d.id = d.classes.device.New(d)
	return mtl.DeviceOf(d.id)
}

// shared is the device that programs find when they ask for one. It lives as long as the process.
var shared = sync.OnceValue(func() mtl.Device { return New(Options{}) })

func init() {
	mtl.RegisterDevices("ingot software device", func() []mtl.Device { return []mtl.Device{shared()} })
}

// deviceOf is the device behind an mtl.Device, nil if it is another kind of device.
func deviceOf(dev mtl.Device) *device {
	d, _ := objc.Value(dev.ID()).(*device)
	return d
}

// errNotSoft is what the functions of this package say to other devices.
var errNotSoft = errors.New("soft: the device is no software device, or has been released")

// Inject arms failures to come, counted from now, in place of those that are armed.
func Inject(dev mtl.Device, f Faults) error {
	d := deviceOf(dev)
	if d == nil {
		return errNotSoft
	}
	d.arm(f)
	return nil
}

// Remove removes the device as if it were unplugged: what runs fails, and so does everything committed later.
func Remove(dev mtl.Device) error {
	d := deviceOf(dev)
	if d == nil {
		return errNotSoft
	}
	d.remove()
	return nil
}

// Refusal tells why the device returned nil the last time it did: Metal itself does not say. It is nil if it never did.
func Refusal(dev mtl.Device) error {
	d := deviceOf(dev)
	if d == nil {
		return errNotSoft
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refusal
}

func (d *device) arm(f Faults) {
	d.faults.times.Store(int64(max(f.Times, 1)))
	d.faults.allocation.Store(int64(f.Allocation))
	d.faults.contents.Store(int64(f.Contents))
	d.faults.residency.Store(int64(f.ResidencySet))
	d.faults.pipeline.Store(int64(f.Pipeline))
	d.faults.commit.Store(int64(f.Commit))
	d.faults.hang.Store(int64(f.Hang))
	d.faults.remove.Store(int64(f.Remove))
}

// fails counts an armed failure down, and tells whether this is the one that fails.
func (d *device) fails(left *atomic.Int64) bool {
	for {
		n := left.Load()
		after := n - 1 // a positive number counts down to the first failure, a negative one up to the last
		switch {
		case n == 0:
			return false
		case n < 0:
			after = n + 1
		case n == 1:
			after = 1 - d.faults.times.Load()
		}
		if left.CompareAndSwap(n, after) {
			return n <= 1
		}
	}
}

func (d *device) remove() {
	d.removeOnce.Do(func() { close(d.removed) })
	d.mu.Lock()
	var queues []*queue
	for q := range d.queues {
		queues = append(queues, q)
	}
	d.mu.Unlock()
	for _, q := range queues {
		q.wake()
	}
}

func (d *device) isRemoved() bool {
	select {
	case <-d.removed:
		return true
	default:
		return false
	}
}

// adopt makes an object of the device; the caller owns it.
func (d *device) adopt(class *objc.GoClass, v any) objc.ID {
	d.id.Retain()
	d.objects.Add(1)
	return class.New(v)
}

// forget is the last thing that an object of the device does.
func (d *device) forget() {
	d.objects.Add(-1)
	d.id.Release()
}

// enter counts a resource in.
func (d *device) enter(r *resource, n uint64, options mtl.ResourceOptions) int {
	r.size, r.counted, r.options = n, n, options
	r.index = d.resourceIndices.take()
	d.allocated.Add(int64(n))
	return r.index
}

// leave counts a resource out.
func (d *device) leave(r *resource) {
	d.resourceIndices.give(r.index)
	d.allocated.Add(-int64(r.counted))
}

// maxMisused bounds how many errors wait for a command buffer to report them.
const maxMisused = 8

// misuse keeps an error that no command buffer can be told of: the next one that is committed fails with it.
func (d *device) misuse(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.misused) < maxMisused {
		d.misused = append(d.misused, fmt.Errorf(format, args...))
	}
}

// takeMisuse makes a failure of what was misused before.
func (d *device) takeMisuse() *failure {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.misused) == 0 {
		return nil
	}
	err := errors.Join(d.misused...)
	d.misused = nil
	return &failure{code: mtl.CommandBufferErrorInternal, text: "misuse before this command buffer was committed: " + err.Error(), encoder: -1}
}

// ObjcError makes a message that could not be delivered an error of the next command buffer.
func (d *device) ObjcError(err error) { d.misuse("%v", err) }

// refuse notes why nil is returned.
func (d *device) refuse(what string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refusal = fmt.Errorf("%s: %w", what, err)
}

// giveNew answers a message with a new object, or with nil.
func (d *device) giveNew(c *objc.Call, o interface{ ident() objc.ID }, err error, what string) {
	if err != nil {
		d.refuse(what, err)
		c.Return(0)
		return
	}
	c.ReturnNew(o.ident())
}

func (d *device) takeRecording() *recording {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.recordings); n > 0 {
		r := d.recordings[n-1]
		d.recordings = d.recordings[:n-1]
		return r
	}
	return &recording{}
}

// maxSpare bounds what is kept for the next command buffers.
const maxSpare = 32

func (d *device) giveRecording(r *recording) {
	r.reset()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.recordings) < maxSpare {
		d.recordings = append(d.recordings, r)
	}
}

func (d *device) takeComputeEncoder() *computeEncoder {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.encoders); n > 0 {
		e := d.encoders[n-1]
		d.encoders = d.encoders[:n-1]
		return e
	}
	return &computeEncoder{}
}

func (d *device) giveComputeEncoder(e *computeEncoder) {
	e.reset()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.encoders) < maxSpare {
		d.encoders = append(d.encoders, e)
	}
}

// addresses gives buffers the addresses that the GPU has for them. They are numbers only, and never used twice.
type addresses struct{ next atomic.Uint64 }

const addressPage = 16384

func (a *addresses) take(n uint64) uint64 {
	room := (n+addressPage-1)/addressPage*addressPage + addressPage
	return a.next.Add(room) - room
}

// indices gives out small numbers, the smallest that are free.
type indices struct {
	mu   sync.Mutex
	next int
	free []int
}

func (x *indices) take() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.free); n > 0 {
		i := x.free[n-1]
		x.free = x.free[:n-1]
		return i
	}
	x.next++
	return x.next - 1
}

func (x *indices) give(i int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.free = append(x.free, i)
}
