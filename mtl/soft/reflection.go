package soft

import (
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// A reflection is MTLComputePipelineReflection: one object per argument.
type reflection struct {
	object
	bindings, arguments objc.ID // arrays
}

// Dealloc lets go of the arrays.
func (r *reflection) Dealloc() {
	r.bindings.Release()
	r.arguments.Release()
	r.dev.forget()
}

// A bindingInfo is MTLBufferBinding, MTLThreadgroupBinding or MTLArgument.
type bindingInfo struct {
	object
	arg pipelineArg
}

// Dealloc lets go of what the object holds.
func (b *bindingInfo) Dealloc() { b.dev.forget() }

// reflection is made when it is asked for, and belongs to the pipeline.
func (p *pipeline) reflection() objc.ID {
	p.once.Do(func() {
		r := &reflection{}
		r.dev = p.dev
		var bindings, arguments []objc.ID
		for _, a := range p.args {
			class := p.dev.classes.bufferBinding
			if a.Kind == air.ThreadgroupArg {
				class = p.dev.classes.threadgroupBinding
			}
			b := &bindingInfo{arg: a}
			b.dev = p.dev
			b.id = p.dev.adopt(class, b)
			bindings = append(bindings, b.id)
			o := &bindingInfo{arg: a}
			o.dev = p.dev
			o.id = p.dev.adopt(p.dev.classes.argument, o)
			arguments = append(arguments, o.id)
		}
		r.bindings, r.arguments = objc.NSArray(bindings...), objc.NSArray(arguments...)
		for i := range bindings {
			bindings[i].Release()
			arguments[i].Release()
		}
		r.id = p.dev.adopt(p.dev.classes.reflection, r)
		p.bindings = r.id
	})
	return p.bindings
}

func reflectionMethods() methods[*reflection] {
	return methods[*reflection]{
		"bindings":  func(r *reflection, c *objc.Call) { c.ReturnBorrowed(r.bindings) },
		"arguments": func(r *reflection, c *objc.Call) { c.ReturnBorrowed(r.arguments) },
	}
}

func (b *bindingInfo) kind() mtl.BindingType {
	if b.arg.Kind == air.ThreadgroupArg {
		return mtl.BindingTypeThreadgroupMemory
	}
	return mtl.BindingTypeBuffer
}

func (b *bindingInfo) dataSize() int { return max(b.arg.BufferSize, b.arg.Size) }

func commonMethods() methods[*bindingInfo] {
	type info = *bindingInfo
	return methods[info]{
		"name":  func(b info, c *objc.Call) { c.ReturnString(b.arg.Name) },
		"type":  func(b info, c *objc.Call) { c.Return(uintptr(b.kind())) },
		"index": func(b info, c *objc.Call) { c.Return(uintptr(b.arg.Index)) },
		"access": func(b info, c *objc.Call) {
			access := mtl.BindingAccessReadOnly
			if b.arg.Writable {
				access = mtl.BindingAccessReadWrite
			}
			c.Return(uintptr(access))
		},
	}
}

func bufferArgMethods() methods[*bindingInfo] {
	type info = *bindingInfo
	return methods[info]{
		"bufferAlignment":   func(b info, c *objc.Call) { c.Return(uintptr(b.arg.Align)) },
		"bufferDataSize":    func(b info, c *objc.Call) { c.Return(uintptr(b.dataSize())) },
		"bufferDataType":    func(b info, c *objc.Call) { c.Return(uintptr(b.dataType())) },
		"bufferStructType":  func(b info, c *objc.Call) { c.Return(0) },
		"bufferPointerType": func(b info, c *objc.Call) { c.Return(0) },
	}
}

// dataType is a structure for every type that has no number of its own.
func (b *bindingInfo) dataType() mtl.DataType {
	if t := dataTypeOf(b.arg.TypeName); t != mtl.DataTypeNone {
		return t
	}
	return mtl.DataTypeStruct
}

func threadgroupArgMethods() methods[*bindingInfo] {
	type info = *bindingInfo
	return methods[info]{
		"threadgroupMemoryAlignment": func(b info, c *objc.Call) { c.Return(uintptr(b.arg.Align)) },
		"threadgroupMemoryDataSize":  func(b info, c *objc.Call) { c.Return(uintptr(b.dataSize())) },
	}
}

func bufferBindingMethods() methods[*bindingInfo] {
	return bindingMethods().with(bufferArgMethods())
}

func threadgroupBindingMethods() methods[*bindingInfo] {
	return bindingMethods().with(threadgroupArgMethods())
}

func bindingMethods() methods[*bindingInfo] {
	type info = *bindingInfo
	m := methods[info]{
		"isUsed":     func(b info, c *objc.Call) { c.ReturnBool(b.arg.needed) },
		"isArgument": func(b info, c *objc.Call) { c.ReturnBool(true) },
	}
	return m.with(commonMethods())
}

func argumentMethods() methods[*bindingInfo] {
	type info = *bindingInfo
	m := methods[info]{
		"isActive":    func(b info, c *objc.Call) { c.ReturnBool(b.arg.needed) },
		"arrayLength": func(b info, c *objc.Call) { c.Return(1) },
	}
	return m.with(commonMethods()).with(bufferArgMethods()).with(threadgroupArgMethods())
}
