package soft

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

func deviceMethods() methods[*device] {
	type dev = *device
	constant := func(w uintptr) func(dev, *objc.Call) {
		return func(d dev, c *objc.Call) { c.Return(w) }
	}
	m := methods[dev]{
		"name":         func(d dev, c *objc.Call) { c.ReturnString(d.opts.Name) },
		"registryID":   func(d dev, c *objc.Call) { c.Return(uintptr(d.registry)) },
		"architecture": func(d dev, c *objc.Call) { c.ReturnBorrowed(d.architecture) },
		"maxThreadsPerThreadgroup": func(d dev, c *objc.Call) {
			n := uintptr(d.opts.MaxThreads)
			c.Return(n, n, n)
		},
		"hasUnifiedMemory":             func(d dev, c *objc.Call) { c.ReturnBool(!d.opts.DiscreteMemory) },
		"recommendedMaxWorkingSetSize": func(d dev, c *objc.Call) { c.Return(uintptr(d.opts.WorkingSet)) },
		"maxBufferLength":              func(d dev, c *objc.Call) { c.Return(uintptr(d.opts.MaxBufferLength)) },
		"maxThreadgroupMemoryLength":   func(d dev, c *objc.Call) { c.Return(uintptr(d.opts.ThreadgroupMemory)) },
		"currentAllocatedSize":         func(d dev, c *objc.Call) { c.Return(uintptr(d.allocated.Load())) },
		"location":                     constant(uintptr(mtl.DeviceLocationBuiltIn)),
		"locationNumber":               constant(0),
		"maxTransferRate":              constant(0),
		"argumentBuffersSupport":       constant(uintptr(mtl.ArgumentBuffersTier1)),
		"supportsFamily:":              func(d dev, c *objc.Call) { c.ReturnBool(d.families[mtl.GPUFamily(c.Int(0))]) },
		"supportsFeatureSet:":          constant(0),
		"supportsCounterSampling:": func(d dev, c *objc.Call) {
			c.ReturnBool(d.samplesAt(mtl.CounterSamplingPoint(c.Word(0))))
		},
		"queryTimestampFrequency": constant(uintptr(time.Second)),
		"counterSets":             func(d dev, c *objc.Call) { c.ReturnBorrowed(d.counterSets) },
		"newCounterSampleBufferWithDescriptor:error:": func(d dev, c *objc.Call) {
			b, err := d.newSampleBuffer(c.Object(0))
			if err != nil {
				c.Fail(1, counterDomain, int(mtl.CounterSampleBufferErrorInvalid), "newCounterSampleBufferWithDescriptor: "+err.Error())
				return
			}
			c.ReturnNew(b.id)
		},
		"sampleTimestamps:gpuTimestamp:": func(d dev, c *objc.Call) {
			now := timestamp()
			for i := range 2 {
				if p := (*uint64)(c.Pointer(i)); p != nil {
					*p = now
				}
			}
		},
		"shouldMaximizeConcurrentCompilation": func(d dev, c *objc.Call) {
			d.mu.Lock()
			defer d.mu.Unlock()
			c.ReturnBool(d.concurrent)
		},
		"setShouldMaximizeConcurrentCompilation:": func(d dev, c *objc.Call) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.concurrent = c.Bool(0)
		},
		"maximumConcurrentCompilationTaskCount": constant(uintptr(runtime.GOMAXPROCS(0))),
		"newFence": func(d dev, c *objc.Call) {
			f := &fence{}
			f.dev = d
			f.id = d.adopt(d.classes.fence, f)
			c.ReturnNew(f.id)
		},
		"newEvent":       func(d dev, c *objc.Call) { c.ReturnNew(d.newEvent(false)) },
		"newSharedEvent": func(d dev, c *objc.Call) { c.ReturnNew(d.newEvent(true)) },
		"newResidencySetWithDescriptor:error:": func(d dev, c *objc.Call) {
			label := ""
			if desc := c.Object(0); desc != 0 {
				label = readString(desc, "label")
			}
			if d.fails(&d.faults.residency) {
				c.Fail(1, deviceDomain, 1, "this residency set was told to fail")
				return
			}
			c.ReturnNew(d.newResidencySet(label).id)
		},
	}
	// What has to do with drawing, function pointers, ray tracing and so on is not there.
	for _, sel := range []string{"isLowPower", "isHeadless", "isRemovable", "isDepth24Stencil8PixelFormatSupported",
		"areRasterOrderGroupsSupported", "supports32BitFloatFiltering", "supports32BitMSAA", "supportsPullModelInterpolation",
		"areBarycentricCoordsSupported", "supportsShaderBarycentricCoordinates", "areProgrammableSamplePositionsSupported",
		"supportsDynamicLibraries", "supportsRenderDynamicLibraries", "supportsRaytracing", "supportsFunctionPointers",
		"supportsFunctionPointersFromRender", "supportsRaytracingFromRender", "supportsPrimitiveMotionBlur"} {
		m[sel] = constant(0)
	}
	return m.with(deviceQueueMethods()).with(deviceMemoryMethods()).with(deviceLibraryMethods())
}

var architectureClass = objc.NewGoClass("MTLArchitecture", map[string]objc.Method{
	"name": func(c *objc.Call) { c.ReturnString("ingot") },
})

func (d *device) newEvent(shared bool) objc.ID {
	e := &event{shared: shared}
	e.dev = d
	class := d.classes.event
	if shared {
		class = d.classes.sharedEvent
	}
	e.id = d.adopt(class, e)
	return e.id
}

func deviceQueueMethods() methods[*device] {
	type dev = *device
	queueOf := func(d dev, c *objc.Call, n uint64) {
		if n == 0 {
			d.refuse("newCommandQueue", fmt.Errorf("a queue needs room for one command buffer"))
			c.Return(0)
			return
		}
		c.ReturnNew(d.newQueue(clampInt(n)).id)
	}
	return methods[dev]{
		"newCommandQueue": func(d dev, c *objc.Call) { queueOf(d, c, maxCommandBuffers) },
		"newCommandQueueWithMaxCommandBufferCount:": func(d dev, c *objc.Call) {
			queueOf(d, c, uint64(c.Word(0)))
		},
		"newCommandQueueWithDescriptor:": func(d dev, c *objc.Call) {
			n := uint64(maxCommandBuffers)
			if desc := c.Object(0); desc != 0 {
				n = readUint(desc, "maxCommandBufferCount")
			}
			queueOf(d, c, n)
		},
	}
}

func deviceMemoryMethods() methods[*device] {
	type dev = *device
	return methods[dev]{
		"newBufferWithLength:options:": func(d dev, c *objc.Call) {
			b, err := d.newBuffer(uint64(c.Word(0)), mtl.ResourceOptions(c.Word(1)), nil)
			d.giveNew(c, b, err, "newBufferWithLength:options:")
		},
		"newBufferWithBytes:length:options:": func(d dev, c *objc.Call) {
			b, err := d.newBufferWithBytes(c.Word(0), uint64(c.Word(1)), mtl.ResourceOptions(c.Word(2)))
			d.giveNew(c, b, err, "newBufferWithBytes:length:options:")
		},
		"newBufferWithBytesNoCopy:length:options:deallocator:": func(d dev, c *objc.Call) {
			b, err := d.newBufferNoCopy(c.Word(0), uint64(c.Word(1)), mtl.ResourceOptions(c.Word(2)), objc.Block(c.Word(3)))
			d.giveNew(c, b, err, "newBufferWithBytesNoCopy:length:options:deallocator:")
		},
		"heapBufferSizeAndAlignWithLength:options:": func(d dev, c *objc.Call) {
			n := (uint64(c.Word(0)) + alignment - 1) / alignment * alignment
			c.Return(uintptr(n), alignment)
		},
		"newHeapWithDescriptor:": func(d dev, c *objc.Call) {
			desc := c.Object(0)
			if desc == 0 {
				d.refuse("newHeapWithDescriptor:", fmt.Errorf("there is no descriptor"))
				c.Return(0)
				return
			}
			h, err := d.newHeap(readUint(desc, "size"), heapOptions(desc), mtl.HeapType(readUint(desc, "type")))
			d.giveNew(c, h, err, "newHeapWithDescriptor:")
		},
		"newIndirectCommandBufferWithDescriptor:maxCommandCount:options:": func(d dev, c *objc.Call) {
			b, err := d.newIndirect(c.Object(0), uint64(c.Word(1)), uint64(c.Word(2)))
			d.giveNew(c, b, err, "newIndirectCommandBufferWithDescriptor:maxCommandCount:options:")
		},
	}
}

// heapOptions are the resource options of a heap: given as such, or by their parts.
func heapOptions(desc objc.ID) mtl.ResourceOptions {
	if o := readUint(desc, "resourceOptions"); o != 0 {
		return mtl.ResourceOptions(o)
	}
	return mtl.ResourceOptions(readUint(desc, "storageMode")<<storageModeShift | readUint(desc, "cpuCacheMode") |
		readUint(desc, "hazardTrackingMode")<<hazardShift)
}

func (d *device) newBufferWithBytes(at uintptr, n uint64, options mtl.ResourceOptions) (*buffer, error) {
	if at == 0 && n != 0 {
		return nil, fmt.Errorf("there are no bytes")
	}
	b, err := d.newBuffer(n, options, nil)
	if err != nil {
		return nil, err
	}
	from := bytesAt(at, n)
	copy(b.mem, from)
	if b.separate() {
		copy(b.host, from)
	}
	return b, nil
}

// newBufferNoCopy makes a buffer of the caller's memory, which must consist of whole pages.
func (d *device) newBufferNoCopy(at uintptr, n uint64, options mtl.ResourceOptions, done objc.Block) (*buffer, error) {
	page := uint64(d.opts.PageSize)
	switch {
	case at == 0:
		return nil, fmt.Errorf("there is no memory")
	case uint64(at)%page != 0 || n%page != 0:
		return nil, fmt.Errorf("%d bytes at %#x are not whole pages of %d bytes", n, at, page)
	case mtl.StorageMode(options&storageModeMask>>storageModeShift) == mtl.StorageModePrivate:
		return nil, fmt.Errorf("memory of the caller cannot be private")
	}
	b, err := d.newBuffer(n, options, bytesAt(at, n))
	if err != nil {
		return nil, err
	}
	if done != 0 {
		done.Retain()
		b.free = func() {
			if err := objc.InvokeBlock(done, at, uintptr(n)); err != nil {
				d.misuse("the deallocator of %s: %v", b.name(), err)
			}
			done.Release()
		}
	}
	return b, nil
}
