package mtl

import (
	"encoding/binary"
	"fmt"
	"maps"
	"sync"
	"unsafe"

	"github.com/ingot-metal/ingot/objc"
)

// ConstantValue is the value of a function constant: its type and its bytes.
type ConstantValue struct {
	Type  DataType
	Bytes []byte
}

// constantValues is a MTLFunctionConstantValues for Go objects: Metal's own class cannot be read.
type constantValues struct {
	sync.Mutex
	byIndex map[uint]ConstantValue
	byName  map[string]ConstantValue
}

// ConstantValues gives the values that were set in an object made for a device that is a Go object, by index and by
// name; false for every other object. The maps are the caller's.
func ConstantValues(x FunctionConstantValues) (byIndex map[uint]ConstantValue, byName map[string]ConstantValue, ok bool) {
	v, ok := objc.Value(x.id).(*constantValues)
	if !ok {
		return nil, nil, false
	}
	v.Lock()
	defer v.Unlock()
	return maps.Clone(v.byIndex), maps.Clone(v.byName), true
}

// constantSizes are the sizes of the types that a function constant can have.
var constantSizes = map[DataType]int{
	DataTypeFloat: 4, DataTypeFloat2: 8, DataTypeFloat3: 16, DataTypeFloat4: 16,
	DataTypeHalf: 2, DataTypeHalf2: 4, DataTypeHalf3: 8, DataTypeHalf4: 8,
	DataTypeBFloat: 2, DataTypeBFloat2: 4, DataTypeBFloat3: 8, DataTypeBFloat4: 8,
	DataTypeInt: 4, DataTypeInt2: 8, DataTypeInt3: 16, DataTypeInt4: 16,
	DataTypeUInt: 4, DataTypeUInt2: 8, DataTypeUInt3: 16, DataTypeUInt4: 16,
	DataTypeShort: 2, DataTypeShort2: 4, DataTypeShort3: 8, DataTypeShort4: 8,
	DataTypeUShort: 2, DataTypeUShort2: 4, DataTypeUShort3: 8, DataTypeUShort4: 8,
	DataTypeChar: 1, DataTypeChar2: 2, DataTypeChar3: 4, DataTypeChar4: 4,
	DataTypeUChar: 1, DataTypeUChar2: 2, DataTypeUChar3: 4, DataTypeUChar4: 4,
	DataTypeBool: 1, DataTypeBool2: 2, DataTypeBool3: 4, DataTypeBool4: 4,
	DataTypeLong: 8, DataTypeLong2: 16, DataTypeLong3: 32, DataTypeLong4: 32,
	DataTypeULong: 8, DataTypeULong2: 16, DataTypeULong3: 32, DataTypeULong4: 32,
}

// copyConstant copies the value behind a pointer that came with a message, or refuses the message.
func copyConstant(c *objc.Call, p unsafe.Pointer, t DataType) (v ConstantValue, ok bool) {
	n, ok := constantSizes[t]
	if !ok {
		c.Refuse("data type %d cannot be a function constant", t)
		return v, false
	}
	if p == nil {
		c.Refuse("a function constant without a value")
		return v, false
	}
	b := make([]byte, n)
	copy(b, unsafe.Slice((*byte)(p), n))
	return ConstantValue{t, b}, true
}

func init() {
	make1 := func() any {
		return &constantValues{byIndex: map[uint]ConstantValue{}, byName: map[string]ConstantValue{}}
	}
	var class *objc.GoClass
	class = objc.NewGoClass("MTLFunctionConstantValues", map[string]objc.Method{
		"setConstantValue:type:atIndex:": func(c *objc.Call) {
			value, ok := copyConstant(c, c.Pointer(0), DataType(c.Word(1)))
			if !ok {
				return
			}
			v := c.Self().(*constantValues)
			v.Lock()
			defer v.Unlock()
			v.byIndex[c.Uint(2)] = value
		},
		"setConstantValue:type:withName:": func(c *objc.Call) {
			value, ok := copyConstant(c, c.Pointer(0), DataType(c.Word(1)))
			if !ok {
				return
			}
			v, name := c.Self().(*constantValues), objc.GoString(c.Object(2))
			v.Lock()
			defer v.Unlock()
			v.byName[name] = value
		},
		"setConstantValues:type:withRange:": func(c *objc.Call) {
			v, t := c.Self().(*constantValues), DataType(c.Word(1))
			v.Lock()
			defer v.Unlock()
			for i := range c.Uint(3) {
				p := c.Pointer(0)
				if p != nil {
					p = unsafe.Add(p, int(i)*constantSizes[t])
				}
				value, ok := copyConstant(c, p, t)
				if !ok {
					return
				}
				v.byIndex[c.Uint(2)+i] = value
			}
		},
		"reset": func(c *objc.Call) {
			v := c.Self().(*constantValues)
			v.Lock()
			defer v.Unlock()
			clear(v.byIndex)
			clear(v.byName)
		},
		"copy": func(c *objc.Call) {
			v := c.Self().(*constantValues)
			v.Lock()
			defer v.Unlock()
			c.ReturnNew(class.New(&constantValues{byIndex: maps.Clone(v.byIndex), byName: maps.Clone(v.byName)}))
		},
	})
	class.Register(make1)
}

// Set sets the constant of an index to the bytes of a value of a type: SetConstantValue with the bytes checked.
func (x FunctionConstantValues) Set(index uint, t DataType, value []byte) error {
	p, free, err := constantWord("Set", t, value)
	if err != nil {
		return err
	}
	defer free()
	msgSetConstantValueTypeAtIndex.Send(x.id, p, uintptr(t), uintptr(index))
	return nil
}

// SetNamed sets the constant of a name to the bytes of a value of a type.
func (x FunctionConstantValues) SetNamed(name string, t DataType, value []byte) error {
	p, free, err := constantWord("SetNamed", t, value)
	if err != nil {
		return err
	}
	defer free()
	s := objc.NSString(name)
	defer s.Release()
	msgSetConstantValueTypeWithName.Send(x.id, p, uintptr(t), uintptr(s))
	return nil
}

// SetRange sets the constants from an index on to values of one type, which stand one after the other.
func (x FunctionConstantValues) SetRange(first uint, t DataType, values []byte) error {
	n, ok := constantSizes[t]
	if !ok {
		return fmt.Errorf("mtl: FunctionConstantValues.SetRange: data type %d cannot be a function constant", t)
	}
	if len(values) == 0 || len(values)%n != 0 {
		return fmt.Errorf("mtl: FunctionConstantValues.SetRange: values have %d bytes, data type %d needs a multiple of %d", len(values), t, n)
	}
	m := objc.NewScratch()
	defer m.Free()
	x.rawSetConstantValues(m.Bytes(values), t, Range{first, uint(len(values) / n)})
	return nil
}

// SetUint32 sets the constant of an index, of MSL type uint.
func (x FunctionConstantValues) SetUint32(index uint, v uint32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	x.setBytes(index, DataTypeUInt, b[:])
}

// SetInt32 sets the constant of an index, of MSL type int.
func (x FunctionConstantValues) SetInt32(index uint, v int32) {
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], uint32(v))
	x.setBytes(index, DataTypeInt, b[:])
}

// SetBool sets the constant of an index, of MSL type bool.
func (x FunctionConstantValues) SetBool(index uint, v bool) {
	x.setBytes(index, DataTypeBool, []byte{byte(word(v))})
}

func (x FunctionConstantValues) setBytes(index uint, t DataType, b []byte) {
	m := objc.NewScratch()
	defer m.Free()
	msgSetConstantValueTypeAtIndex.Send(x.id, m.Bytes(b), uintptr(t), uintptr(index))
}

// constantWord copies a value to where a message can point.
func constantWord(fn string, t DataType, value []byte) (p uintptr, free func(), err error) {
	n, ok := constantSizes[t]
	if !ok {
		return 0, nil, fmt.Errorf("mtl: FunctionConstantValues.%s: data type %d cannot be a function constant", fn, t)
	}
	if len(value) != n {
		return 0, nil, fmt.Errorf("mtl: FunctionConstantValues.%s: value has %d bytes, data type %d needs %d", fn, len(value), t, n)
	}
	m := objc.NewScratch()
	return m.Bytes(value), m.Free, nil
}
