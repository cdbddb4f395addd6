package soft

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft/internal/simt"
	"github.com/ingot-metal/ingot/objc"
)

// A function is MTLFunction: a kernel of a library, specialised with function constants if it has any.
type function struct {
	object
	lib    *library
	source *libraryFunction
	name   string // how the function is called, its specialised name if it got one
	values *simt.Options
	ready  bool // it needs no constants, or has got them
}

// Dealloc lets go of the library.
func (f *function) Dealloc() {
	f.lib.id.Release()
	f.dev.forget()
}

// newFunction makes a function of a library. Without constants it may need some before a pipeline can be made of it.
func (l *library) newFunction(name string, constants objc.ID, specialised string) (*function, *refusal) {
	src := l.find(name)
	if src == nil {
		return nil, refuse(mtl.LibraryErrorFunctionNotFound, "the library has no function named %q", name)
	}
	k, err := src.load()
	if err != nil {
		return nil, refuse(mtl.LibraryErrorInternal, "function %q: %v", name, err)
	}
	f := &function{lib: l, source: src, name: name, ready: len(k.Constants) == 0}
	if constants != 0 {
		values, err := src.specialise(k, mtl.FunctionConstantValuesOf(constants))
		if err != nil {
			return nil, refuse(mtl.LibraryErrorCompileFailure, "function %q: %v", name, err)
		}
		f.values, f.ready = values, true
	}
	if specialised != "" {
		f.name = specialised
	}
	f.dev = l.dev
	l.id.Retain()
	f.id = l.dev.adopt(l.dev.classes.function, f)
	return f, nil
}

// specialise gives values to the constants of a kernel.
func (f *libraryFunction) specialise(k *air.Kernel, values mtl.FunctionConstantValues) (*simt.Options, error) {
	byIndex, byName, ok := mtl.ConstantValues(values)
	if !ok {
		return nil, fmt.Errorf("%s are no function constant values for this device", describe(values.ID()))
	}
	opt := &simt.Options{Constants: map[int]simt.Value{}}
	var missing []string
	for _, fc := range k.Constants {
		c, ok := byIndex[uint(fc.Index)]
		if !ok {
			c, ok = byName[fc.Name]
		}
		switch {
		case ok:
			v, err := constantValue(fc, c)
			if err != nil {
				return nil, err
			}
			opt.Constants[fc.Index] = v
		case fc.Active && !f.optional[fc.Name]:
			missing = append(missing, fmt.Sprintf("%s (%s, index %d)", fc.Name, fc.TypeName, fc.Index))
		}
	}
	if missing != nil {
		return nil, fmt.Errorf("no value for function constant %s", strings.Join(missing, ", "))
	}
	return opt, nil
}

// constantValue checks the type of a value.
func constantValue(fc air.FunctionConstant, c mtl.ConstantValue) (simt.Value, error) {
	if name := metallib.DataType(c.Type).String(); name != fc.TypeName {
		return simt.Value{}, fmt.Errorf("function constant %s (index %d) is a %s and was set as a %s", fc.Name, fc.Index, fc.TypeName, name)
	}
	if len(c.Bytes) > 8 {
		return simt.Value{}, fmt.Errorf("function constant %s (index %d) is a %s; only scalars are supported by the software device",
			fc.Name, fc.Index, fc.TypeName)
	}
	var bytes [8]byte
	copy(bytes[:], c.Bytes)
	return simt.Value{Kind: constantKind(c.Type), Bits: binary.LittleEndian.Uint64(bytes[:])}, nil
}

func constantKind(t mtl.DataType) simt.ConstantType {
	switch t {
	case mtl.DataTypeBool:
		return simt.ConstantBool
	case mtl.DataTypeFloat:
		return simt.ConstantFloat
	case mtl.DataTypeHalf:
		return simt.ConstantHalf
	case mtl.DataTypeBFloat:
		return simt.ConstantBFloat
	}
	return simt.ConstantInt
}

// A functionConstant is MTLFunctionConstant.
type functionConstant struct {
	object
	fc       air.FunctionConstant
	required bool
}

// Dealloc lets go of what the object holds.
func (f *functionConstant) Dealloc() { f.dev.forget() }

// dataTypeOf is the MTLDataType of a type as the source writes it, none if it has no number.
func dataTypeOf(name string) mtl.DataType {
	t, err := metallib.ParseDataType(name)
	if err != nil {
		return mtl.DataTypeNone
	}
	return mtl.DataType(t)
}

func functionConstantMethods() methods[*functionConstant] {
	type fc = *functionConstant
	return methods[fc]{
		"name":     func(f fc, c *objc.Call) { c.ReturnString(f.fc.Name) },
		"type":     func(f fc, c *objc.Call) { c.Return(uintptr(dataTypeOf(f.fc.TypeName))) },
		"index":    func(f fc, c *objc.Call) { c.Return(uintptr(f.fc.Index)) },
		"required": func(f fc, c *objc.Call) { c.ReturnBool(f.required) },
	}
}

func functionMethods() methods[*function] {
	type fn = *function
	m := methods[fn]{
		"name":                   func(f fn, c *objc.Call) { c.ReturnString(f.name) },
		"functionType":           func(f fn, c *objc.Call) { c.Return(uintptr(mtl.FunctionTypeKernel)) },
		"options":                func(f fn, c *objc.Call) { c.Return(0) },
		"patchType":              func(f fn, c *objc.Call) { c.Return(0) },
		"patchControlPointCount": func(f fn, c *objc.Call) { c.Return(^uintptr(0)) },
		"stageInputAttributes":   func(f fn, c *objc.Call) { c.Return(0) },
		"vertexAttributes":       func(f fn, c *objc.Call) { c.Return(0) },
		"functionConstantsDictionary": func(f fn, c *objc.Call) {
			k, err := f.source.load()
			if err != nil {
				return
			}
			d := &dictionary{}
			for _, fc := range k.Constants {
				o := &functionConstant{fc: fc, required: fc.Active && !f.source.optional[fc.Name]}
				o.dev = f.dev
				o.id = f.dev.adopt(f.dev.classes.functionConstant, o)
				d.keys = append(d.keys, objc.NSString(fc.Name))
				d.values = append(d.values, o.id)
			}
			c.ReturnBorrowed(dictionaryClass.New(d).Autorelease())
		},
	}
	return m.with(labelled[fn]()).with(deviced[fn]())
}

// A dictionary is an NSDictionary from strings to objects. It owns both.
type dictionary struct {
	keys, values []objc.ID
}

// Dealloc releases keys and values.
func (d *dictionary) Dealloc() {
	for _, id := range slices.Concat(d.keys, d.values) {
		id.Release()
	}
}

func (d *dictionary) get(key string) objc.ID {
	for i, k := range d.keys {
		if objc.GoString(k) == key {
			return d.values[i]
		}
	}
	return 0
}

var dictionaryClass = objc.NewGoClass("NSDictionary", map[string]objc.Method{
	"count": func(c *objc.Call) { c.Return(uintptr(len(c.Self().(*dictionary).keys))) },
	"objectForKey:": func(c *objc.Call) {
		c.ReturnBorrowed(c.Self().(*dictionary).get(objc.GoString(c.Object(0))))
	},
	"objectForKeyedSubscript:": func(c *objc.Call) {
		c.ReturnBorrowed(c.Self().(*dictionary).get(objc.GoString(c.Object(0))))
	},
	"allKeys":   func(c *objc.Call) { c.ReturnBorrowed(objc.NSArray(c.Self().(*dictionary).keys...).Autorelease()) },
	"allValues": func(c *objc.Call) { c.ReturnBorrowed(objc.NSArray(c.Self().(*dictionary).values...).Autorelease()) },
})
