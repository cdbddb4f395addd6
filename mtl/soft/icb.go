package soft

import (
	"fmt"
	"math"
	"sync"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// maxIndirectCommands is the greatest number of commands of an indirect command buffer that every Mac takes.
const maxIndirectCommands = 16384

// An indirect is MTLIndirectCommandBuffer. Like a real one it does not hold the buffers and pipelines that its
// commands name: a command buffer that executes a command whose buffer is gone fails.
type indirect struct {
	resource
	types           mtl.IndirectCommandType
	inheritBuffers  bool
	inheritPipeline bool
	maxBuffers      int
	maxMemory       int

	mu       sync.RWMutex // commands are written by the CPU and by blits, and read when they are executed
	commands []indirectCommand
	objects  []*commandObject // made when asked for
	running  []execution      // in command buffers that were committed and have not completed
}

// An execution is a range of commands that a command buffer executes.
type execution struct {
	icb   *indirect
	at, n uint64
}

// begin and end bracket the time in which the CPU must not change the commands of an execution.
func (b *indirect) begin(e execution) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = append(b.running, e)
}

func (b *indirect) end(e execution) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.running {
		if b.running[i] == e {
			last := len(b.running) - 1
			b.running[i] = b.running[last]
			b.running = b.running[:last]
			return
		}
	}
}

// untouched notes the misuse if commands are changed that are being executed. The lock is held.
func (b *indirect) untouched(at, n uint64, what string) {
	for _, e := range b.running {
		if at < e.at+e.n && e.at < at+n {
			b.dev.misuse("%s: commands %d to %d of %s are changed while a command buffer that executes commands %d to %d is in flight",
				what, at, at+n, b.name(), e.at, e.at+e.n)
			return
		}
	}
}

// An indirectCommand is one command: a dispatch, or nothing.
type indirectCommand struct {
	set, threads, barrier bool
	pipeline              *pipeline
	grid, group           [3]uint32
	binds                 []binding // by slot; what is not bound is empty
	memory                []threadgroupMemory
	err                   string // the first misuse
}

func (b *indirect) name() string {
	if l := b.label(); l != "" {
		return fmt.Sprintf("indirect command buffer %q", l)
	}
	return fmt.Sprintf("indirect command buffer of %d commands", len(b.commands))
}

func (b *indirect) contains(at, n uint64) bool {
	size := uint64(len(b.commands))
	return at <= size && n <= size-at
}

// like tells whether commands of one can be copied to the other.
func (b *indirect) like(o *indirect) bool {
	return b.types == o.types && b.inheritBuffers == o.inheritBuffers && b.inheritPipeline == o.inheritPipeline &&
		b.maxBuffers == o.maxBuffers && b.maxMemory == o.maxMemory
}

const computeTypes = mtl.IndirectCommandTypeConcurrentDispatch | mtl.IndirectCommandTypeConcurrentDispatchThreads

// newIndirect makes an indirect command buffer as a descriptor says.
func (d *device) newIndirect(desc objc.ID, n, options uint64) (*indirect, error) {
	if d.opts.NoIndirectCompute {
		return nil, fmt.Errorf("this device has no indirect command buffers for compute")
	}
	if desc == 0 {
		return nil, fmt.Errorf("there is no descriptor")
	}
	b := &indirect{
		types:           mtl.IndirectCommandType(readUint(desc, "commandTypes")),
		inheritBuffers:  readBool(desc, "inheritBuffers"),
		inheritPipeline: readBool(desc, "inheritPipelineState"),
		maxBuffers:      clampInt(readUint(desc, "maxKernelBufferBindCount")),
		maxMemory:       clampInt(readUint(desc, "maxKernelThreadgroupMemoryBindCount")),
	}
	if b.maxMemory == 0 {
		// The property is newer than the setter that it limits: who does not know it gets all.
		b.maxMemory = threadgroupSlots
	}
	switch {
	case n == 0 || n > maxIndirectCommands:
		return nil, fmt.Errorf("%d commands; from 1 to %d are possible", n, maxIndirectCommands)
	case b.types == 0 || b.types&^computeTypes != 0:
		return nil, fmt.Errorf("command types %#x; only concurrent dispatches are supported", uint64(b.types))
	case b.maxBuffers > bufferSlots:
		return nil, fmt.Errorf("maxKernelBufferBindCount is %d; there are %d slots", b.maxBuffers, bufferSlots)
	case b.maxMemory > threadgroupSlots:
		return nil, fmt.Errorf("maxKernelThreadgroupMemoryBindCount is %d; there are %d indices", b.maxMemory, threadgroupSlots)
	case d.fails(&d.faults.allocation):
		return nil, fmt.Errorf("this allocation was told to fail")
	}
	b.commands = make([]indirectCommand, n)
	b.objects = make([]*commandObject, n)
	// What a real one takes is not public; this is what it takes here.
	d.enter(&b.resource, n*(64+uint64(b.maxBuffers)*16), mtl.ResourceOptions(options))
	b.dev = d
	b.id = d.adopt(d.classes.indirect, b)
	return b, nil
}

// Dealloc lets go of the command objects.
func (b *indirect) Dealloc() {
	b.freed.Store(true)
	for _, o := range b.objects {
		if o != nil {
			o.id.Release()
		}
	}
	b.dev.leave(&b.resource)
	b.dev.forget()
}

// reset makes commands do nothing.
func (b *indirect) reset(at, n uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.commands[at : at+n] {
		b.commands[at+uint64(i)].clear()
	}
}

func (c *indirectCommand) clear() {
	clear(c.binds)
	*c = indirectCommand{binds: c.binds[:0], memory: c.memory[:0]}
}

// copyTo copies commands from one indirect command buffer to another, or within one.
func (b *indirect) copyTo(to *indirect, at, n, dst uint64) {
	copies := make([]indirectCommand, n)
	b.mu.RLock()
	for i := range copies {
		c := b.commands[at+uint64(i)]
		c.binds = append([]binding(nil), c.binds...)
		c.memory = append([]threadgroupMemory(nil), c.memory...)
		copies[i] = c
	}
	b.mu.RUnlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	copy(to.commands[dst:dst+n], copies)
}

// object is the object for one command; the indirect command buffer owns it.
func (b *indirect) object(i uint64) objc.ID {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i >= uint64(len(b.commands)) {
		b.dev.misuse("indirectComputeCommandAtIndex: %d of %s", i, b.name())
		return 0
	}
	if o := b.objects[i]; o != nil {
		return o.id
	}
	o := &commandObject{icb: b, index: int(i)}
	o.dev = b.dev
	o.id = b.dev.adopt(b.dev.classes.indirectCommand, o)
	b.objects[i] = o
	return o.id
}

func indirectMethods() methods[*indirect] {
	m := methods[*indirect]{
		"size": func(b *indirect, c *objc.Call) { c.Return(uintptr(len(b.commands))) },
		"gpuResourceID": func(b *indirect, c *objc.Call) {
			c.Return(uintptr(b.index) + 1)
		},
		"resetWithRange:": func(b *indirect, c *objc.Call) {
			at, n := uint64(c.Word(0)), uint64(c.Word(1))
			if !b.contains(at, n) {
				b.dev.misuse("resetWithRange: commands %d to %d of %s", at, at+n, b.name())
				return
			}
			b.mu.Lock()
			b.untouched(at, n, "resetWithRange:")
			b.mu.Unlock()
			b.reset(at, n)
		},
		"indirectComputeCommandAtIndex:": func(b *indirect, c *objc.Call) {
			c.ReturnBorrowed(b.object(uint64(c.Word(0))))
		},
	}
	return m.with(resourceMethods[*indirect]()).with(placed[*indirect]())
}

// A commandObject is MTLIndirectComputeCommand: it writes one command. It is valid as long as its indirect command buffer.
type commandObject struct {
	object
	icb   *indirect
	index int
}

// Dealloc lets go of what the object holds.
func (o *commandObject) Dealloc() { o.dev.forget() }

// ObjcError makes a message that could not be delivered an error of whoever executes the command.
func (o *commandObject) ObjcError(err error) {
	o.write(func(c *indirectCommand) { c.misuse("%v", err) })
}

func (c *indirectCommand) misuse(format string, args ...any) {
	if c.err == "" {
		c.err = fmt.Sprintf(format, args...)
	}
}

// write changes the command.
func (o *commandObject) write(f func(*indirectCommand)) {
	b := o.icb
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.freed.Load() {
		b.dev.misuse("a command of %s was changed after that was released", b.name())
		return
	}
	b.untouched(uint64(o.index), 1, "indirect command")
	f(&b.commands[o.index])
}

func (o *commandObject) setPipeline(c *objc.Call) {
	p := valueOf[*pipeline](c.Word(0))
	o.write(func(cmd *indirectCommand) {
		switch {
		case p == nil || p.dev != o.dev:
			cmd.misuse("setComputePipelineState: %s is no pipeline of this device", describe(c.Object(0)))
		case o.icb.inheritPipeline:
			cmd.misuse("setComputePipelineState: the descriptor said inheritPipelineState")
		case !p.indirect:
			cmd.misuse("setComputePipelineState: the pipeline of kernel %q was made without supportIndirectCommandBuffers", p.kernel)
		default:
			cmd.pipeline = p
		}
	})
}

func (o *commandObject) setBuffer(c *objc.Call, slot uint, what string) {
	id, off := c.Object(0), uint64(c.Word(1))
	b := valueOf[*buffer](uintptr(id))
	o.write(func(cmd *indirectCommand) {
		switch {
		case o.icb.inheritBuffers:
			cmd.misuse("%s: the descriptor said inheritBuffers", what)
			return
		case slot >= uint(o.icb.maxBuffers):
			cmd.misuse("%s: index %d; maxKernelBufferBindCount is %d", what, slot, o.icb.maxBuffers)
			return
		case id != 0 && (b == nil || b.dev != o.dev):
			cmd.misuse("%s: %s at index %d is no buffer of this device", what, describe(id), slot)
			return
		case off > math.MaxUint32 && !o.dev.opts.OffsetsWrap:
			cmd.misuse("%s: offset %d at index %d does not fit into 32 bits, which is what indirect commands have for it", what, off, slot)
			return
		}
		for i := range cmd.binds {
			if cmd.binds[i].slot == int(slot) {
				cmd.binds = append(cmd.binds[:i], cmd.binds[i+1:]...)
				break
			}
		}
		if b != nil {
			cmd.binds = append(cmd.binds, binding{buf: b, off: uint64(uint32(off)), slot: int(slot)})
		}
	})
}

func (o *commandObject) setMemory(length, index uint) {
	const what = "setThreadgroupMemoryLength:atIndex:"
	o.write(func(cmd *indirectCommand) {
		if index >= uint(o.icb.maxMemory) || length%16 != 0 || length > uint(o.dev.opts.ThreadgroupMemory) {
			cmd.misuse("%s: %d bytes at index %d; maxKernelThreadgroupMemoryBindCount is %d, lengths are multiples of 16 up to %d",
				what, length, index, o.icb.maxMemory, o.dev.opts.ThreadgroupMemory)
			return
		}
		for i := range cmd.memory {
			if cmd.memory[i].index == int(index) {
				cmd.memory[i].length = uint32(length)
				return
			}
		}
		cmd.memory = append(cmd.memory, threadgroupMemory{int(index), uint32(length)})
	})
}

func (o *commandObject) dispatch(c *objc.Call, kind mtl.IndirectCommandType, what string) {
	o.write(func(cmd *indirectCommand) {
		if o.icb.types&kind == 0 {
			cmd.misuse("%s: the descriptor's commandTypes are %#x", what, uint64(o.icb.types))
			return
		}
		var sizes [6]uint32
		for i := range sizes {
			w := uint64(c.Word(i))
			if w > math.MaxUint32 {
				cmd.misuse("%s: %d is too large a size", what, w)
				return
			}
			sizes[i] = uint32(w)
		}
		cmd.grid, cmd.group = [3]uint32(sizes[:3]), [3]uint32(sizes[3:])
		cmd.threads = kind == mtl.IndirectCommandTypeConcurrentDispatchThreads
		cmd.set = true
	})
}

func commandObjectMethods() methods[*commandObject] {
	type cmd = *commandObject
	return methods[cmd]{
		"setComputePipelineState:": func(o cmd, c *objc.Call) { o.setPipeline(c) },
		"setKernelBuffer:offset:atIndex:": func(o cmd, c *objc.Call) {
			o.setBuffer(c, c.Uint(2), "setKernelBuffer:offset:atIndex:")
		},
		"setKernelBuffer:offset:attributeStride:atIndex:": func(o cmd, c *objc.Call) {
			o.setBuffer(c, c.Uint(3), "setKernelBuffer:offset:attributeStride:atIndex:")
		},
		"setThreadgroupMemoryLength:atIndex:": func(o cmd, c *objc.Call) { o.setMemory(c.Uint(0), c.Uint(1)) },
		"concurrentDispatchThreadgroups:threadsPerThreadgroup:": func(o cmd, c *objc.Call) {
			o.dispatch(c, mtl.IndirectCommandTypeConcurrentDispatch, "concurrentDispatchThreadgroups:threadsPerThreadgroup:")
		},
		"concurrentDispatchThreads:threadsPerThreadgroup:": func(o cmd, c *objc.Call) {
			o.dispatch(c, mtl.IndirectCommandTypeConcurrentDispatchThreads, "concurrentDispatchThreads:threadsPerThreadgroup:")
		},
		"setBarrier":   func(o cmd, c *objc.Call) { o.write(func(cmd *indirectCommand) { cmd.barrier = true }) },
		"clearBarrier": func(o cmd, c *objc.Call) { o.write(func(cmd *indirectCommand) { cmd.barrier = false }) },
		"reset":        func(o cmd, c *objc.Call) { o.write((*indirectCommand).clear) },
		"setImageblockWidth:height:": func(o cmd, c *objc.Call) {
			o.write(func(cmd *indirectCommand) {
				cmd.misuse("setImageblockWidth:height: imageblocks are not supported by the software device")
			})
		},
		"setStageInRegion:": func(o cmd, c *objc.Call) {
			o.write(func(cmd *indirectCommand) {
				cmd.misuse("setStageInRegion: stage input is not supported by the software device")
			})
		},
	}
}
