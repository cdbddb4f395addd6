package soft

import (
	"fmt"
	"os"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// described makes the function that an MTLFunctionDescriptor asks for.
func (l *library) described(desc objc.ID) (*function, *refusal) {
	if desc == 0 {
		return nil, refuse(mtl.LibraryErrorInternal, "there is no function descriptor")
	}
	defer objc.NewPool().Drain()
	return l.newFunction(readString(desc, "name"), readID(desc, "constantValues"), readString(desc, "specializedName"))
}

func giveFunction(c *objc.Call, f *function, r *refusal, i int) {
	if r != nil {
		give(c, 0, r, i)
		return
	}
	give(c, f.id, nil, i)
}

func functionID(f *function, r *refusal) (objc.ID, *refusal) {
	if r != nil {
		return 0, r
	}
	return f.id, nil
}

// later makes an object on another goroutine and hands it, or an NSError, to a block. What it is made from stays until then.
func later(d *device, block objc.Block, owner, from objc.ID, work func() (objc.ID, *refusal)) {
	d.background(block, owner, from, func() {
		id, r := work()
		var err objc.ID
		if r != nil {
			err = r.nsError()
		}
		d.invoke(block, uintptr(id), uintptr(err))
		id.Release()
	})
}

// laterPipeline does the same for a pipeline and its reflection.
func (d *device) laterPipeline(block objc.Block, from objc.ID, work func() (*pipeline, *refusal)) {
	d.background(block, d.id, from, func() {
		p, r := work()
		if r != nil {
			d.invoke(block, 0, 0, uintptr(r.nsError()))
			return
		}
		d.invoke(block, uintptr(p.id), uintptr(p.reflection()), 0)
		p.id.Release()
	})
}

// background runs f on another goroutine, and holds some objects until it is done.
func (d *device) background(block objc.Block, owner, from objc.ID, f func()) {
	if block == 0 {
		d.misuse("a completion handler is nil")
		return
	}
	block.Retain()
	from.Retain()
	owner.Retain()
	d.goroutines.Add(1)
	go func() {
		defer d.goroutines.Add(-1)
		pool := objc.NewPool()
		f()
		pool.Drain()
		block.Release()
		from.Release()
		owner.Release()
	}()
}

func (d *device) invoke(block objc.Block, args ...uintptr) {
	if err := objc.InvokeBlock(block, args...); err != nil {
		d.misuse("a completion handler: %v", err)
	}
}

func deviceLibraryMethods() methods[*device] {
	type dev = *device
	return methods[dev]{
		"newDefaultLibrary": func(d dev, c *objc.Call) {
			d.refuse("newDefaultLibrary", fmt.Errorf("a Go program has no bundle with a default library"))
			c.Return(0)
		},
		"newLibraryWithFile:error:": func(d dev, c *objc.Call) {
			l, r := d.libraryFile(objc.GoString(c.Object(0)))
			giveLibrary(c, l, r, 1)
		},
		"newLibraryWithData:error:": func(d dev, c *objc.Call) {
			data, ok := objc.DataBytes(c.Object(0))
			if !ok {
				c.Fail(1, libraryDomain, int(mtl.LibraryErrorInternal), "newLibraryWithData: "+describe(c.Object(0))+" is no data for this device")
				return
			}
			l, r := d.newLibrary(data)
			giveLibrary(c, l, r, 1)
		},
		"newLibraryWithSource:options:error:": func(d dev, c *objc.Call) {
			l, r := d.librarySource(objc.GoString(c.Object(0)), c.Object(1))
			giveLibrary(c, l, r, 2)
		},
		"newLibraryWithSource:options:completionHandler:": func(d dev, c *objc.Call) {
			source, options := objc.GoString(c.Object(0)), c.Object(1)
			later(d, objc.Block(c.Word(2)), d.id, options, func() (objc.ID, *refusal) {
				l, r := d.librarySource(source, options)
				if r != nil {
					return 0, r
				}
				return l.id, nil
			})
		},
		"newComputePipelineStateWithFunction:error:": func(d dev, c *objc.Call) {
			p, r := d.newPipeline(pipelineRequest{function: c.Object(0)})
			givePipeline(c, p, r, 0, -1, 1)
		},
		"newComputePipelineStateWithFunction:options:reflection:error:": func(d dev, c *objc.Call) {
			p, r := d.newPipeline(pipelineRequest{function: c.Object(0)})
			givePipeline(c, p, r, mtl.PipelineOption(c.Word(1)), 2, 3)
		},
		"newComputePipelineStateWithDescriptor:options:reflection:error:": func(d dev, c *objc.Call) {
			p, r := d.describedPipeline(c.Object(0))
			givePipeline(c, p, r, mtl.PipelineOption(c.Word(1)), 2, 3)
		},
		"newComputePipelineStateWithFunction:completionHandler:": func(d dev, c *objc.Call) {
			fn := c.Object(0)
			later(d, objc.Block(c.Word(1)), d.id, fn, func() (objc.ID, *refusal) {
				return pipelineID(d.newPipeline(pipelineRequest{function: fn}))
			})
		},
		"newComputePipelineStateWithFunction:options:completionHandler:": func(d dev, c *objc.Call) {
			fn := c.Object(0)
			d.laterPipeline(objc.Block(c.Word(2)), fn, func() (*pipeline, *refusal) { return d.newPipeline(pipelineRequest{function: fn}) })
		},
		"newComputePipelineStateWithDescriptor:options:completionHandler:": func(d dev, c *objc.Call) {
			desc := c.Object(0)
			d.laterPipeline(objc.Block(c.Word(2)), desc, func() (*pipeline, *refusal) { return d.describedPipeline(desc) })
		},
	}
}

func giveLibrary(c *objc.Call, l *library, r *refusal, i int) {
	if r != nil {
		give(c, 0, r, i)
		return
	}
	give(c, l.id, nil, i)
}

// reflects are the options that ask for a reflection.
const reflects = mtl.PipelineOptionBindingInfo | mtl.PipelineOptionBufferTypeInfo

// givePipeline answers with a pipeline, and with its reflection through the pointer in word at, if it is asked for.
func givePipeline(c *objc.Call, p *pipeline, r *refusal, options mtl.PipelineOption, at, i int) {
	if r != nil {
		give(c, 0, r, i)
		return
	}
	if options&reflects != 0 {
		if out := (*objc.ID)(c.Pointer(at)); out != nil {
			*out = p.reflection()
		}
	}
	give(c, p.id, nil, i)
}

func pipelineID(p *pipeline, r *refusal) (objc.ID, *refusal) {
	if r != nil {
		return 0, r
	}
	return p.id, nil
}

// libraryFile reads a metallib from a file.
func (d *device) libraryFile(path string) (*library, *refusal) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, refuse(mtl.LibraryErrorFileNotFound, "library not found: %v", err)
	}
	return d.newLibrary(data)
}

// describedPipeline makes the pipeline that an MTLComputePipelineDescriptor asks for.
func (d *device) describedPipeline(desc objc.ID) (*pipeline, *refusal) {
	if desc == 0 {
		return nil, refuse(mtl.LibraryErrorInternal, "there is no pipeline descriptor")
	}
	defer objc.NewPool().Drain()
	return d.newPipeline(readRequest(desc))
}
