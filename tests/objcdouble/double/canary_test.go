//go:build linux && objcdouble

package double

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
	"github.com/stretchr/testify/require"
)

// want is one logical argument: its words, or what is known about a pointer.
type want struct {
	words   []uint64
	pointer bool     // only that it is not null
	pointee []uint64 // the first words behind it
}

// canary sends messages to an object that writes them down.
type canary struct {
	t      *testing.T
	id     objc.ID
	last   *message
	answer *answer
	table  map[string]placement
	seen   map[string]bool
	next   uint64
}

func newCanary(t *testing.T) *canary {
	c := &canary{
		t: t, last: structure[message](t, "objcdouble_canary_message"), answer: structure[answer](t, "objcdouble_canary_answer"),
		table: placements(t), seen: map[string]bool{}, next: 0x1111111100,
	}
	c.id = objc.GetClass("Canary").New()
	require.NotZero(t, c.id)
	t.Cleanup(func() {
		*c.answer = answer{}
		c.id.Release()
	})
	return c
}

// number is one that no other argument has, in the given number of bits.
func (c *canary) number(bits int) uint64 {
	c.next += 0x0101
	if bits < 64 {
		return c.next & (1<<bits - 1)
	}
	return c.next
}

// argument makes a value of a parameter's type and says what must arrive.
func (c *canary) argument(p reflect.Type) (reflect.Value, []want) {
	v := reflect.New(p).Elem()
	if c.object(v) {
		return v, []want{{words: []uint64{uint64(c.id)}}}
	}
	switch p.Kind() {
	case reflect.Bool:
		v.SetBool(true)
		return v, []want{{words: []uint64{1}}}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		n := c.number(p.Bits())
		v.SetUint(n)
		return v, []want{{words: []uint64{n}}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := c.number(p.Bits() - 1)
		v.SetInt(int64(n))
		return v, []want{{words: []uint64{n}}}
	case reflect.String:
		v.SetString("canary")
		return v, []want{{pointer: true}}
	case reflect.Struct: // Size, Range, Region: the words of all fields in order
		var words []uint64
		for i := range v.NumField() {
			f, w := c.argument(v.Field(i).Type())
			v.Field(i).Set(f)
			for _, x := range w {
				words = append(words, x.words...)
			}
		}
		return v, []want{{words: words}}
	case reflect.Func:
		v.Set(reflect.MakeFunc(p, func([]reflect.Value) []reflect.Value { return nil }))
		return v, []want{{pointer: true}}
	case reflect.UnsafePointer:
		v.SetPointer(unsafe.Pointer(c.answer))
		return v, []want{{words: []uint64{uint64(uintptr(unsafe.Pointer(c.answer)))}}}
	case reflect.Slice:
		const n = 2
		v.Set(reflect.MakeSlice(p, n, n))
		var words []uint64
		for i := range n {
			f, w := c.argument(p.Elem())
			v.Index(i).Set(f)
			words = append(words, w[0].words...)
		}
		if p.Elem().Kind() == reflect.Uint8 {
			words = nil
		}
		return v, []want{{pointer: true, pointee: words}, {words: []uint64{n}}}
	}
	require.FailNow(c.t, "no canary", "of type %s", p)
	return v, nil
}

// object makes v the canary if its type is one of the bindings'.
func (c *canary) object(v reflect.Value) bool {
	if _, ok := v.Interface().(interface{ ID() objc.ID }); !ok {
		return false
	}
	// All of them are one word, the ID.
	*(*objc.ID)(v.Addr().UnsafePointer()) = c.id
	return true
}

// result sets the answer of the canary for a result of type r, and says what must come back.
func (c *canary) result(r reflect.Type) any {
	v := reflect.New(r).Elem()
	if c.object(v) {
		c.answer.X[0] = uint64(c.id)
		return v.Interface()
	}
	switch r.Kind() {
	case reflect.Bool:
		c.answer.X[0] = 0xffffffffffffff01 // only the low byte counts
		return true
	case reflect.Float64:
		c.answer.D = 0x400921fb54442d18
		return 3.141592653589793
	case reflect.String:
		text := objc.NSString("an answer")
		c.t.Cleanup(text.Release)
		c.answer.X[0] = uint64(text)
		return "an answer"
	case reflect.Struct:
		for i := range c.answer.Memory {
			c.answer.Memory[i] = c.number(64)
		}
		words := int(r.Size() / 8)
		if words > 2 {
			c.answer.Size = uint64(r.Size())
		} else {
			copy(c.answer.X[:], c.answer.Memory[:])
		}
		copy(unsafe.Slice((*uint64)(v.Addr().UnsafePointer()), words), c.answer.Memory[:])
		return v.Interface()
	case reflect.UnsafePointer:
		c.answer.X[0] = uint64(uintptr(unsafe.Pointer(c.answer)))
		return unsafe.Pointer(c.answer)
	}
	if k := r.Kind(); k >= reflect.Int && k <= reflect.Uintptr {
		n := c.number(min(r.Bits(), 63))
		// Undefined upper bits of a small result must not be seen.
		c.answer.X[0] = n
		if r.Bits() < 64 {
			c.answer.X[0] |= 0xabcd << 48
		}
		if k <= reflect.Int64 {
			n &= 1<<(r.Bits()-1) - 1
			c.answer.X[0] &^= 1 << (r.Bits() - 1)
			v.SetInt(int64(n))
		} else {
			v.SetUint(n)
		}
		return v.Interface()
	}
	return nil // checked by hand
}

var errorType = reflect.TypeFor[error]()

// check calls one method and looks at every word of the message and at the result.
func (c *canary) check(name string, method reflect.Value) {
	t, p := c.t, method.Type()
	*c.answer = answer{}
	in, wants := c.arguments(p)
	var expect any
	failing := p.NumOut() > 0 && p.Out(p.NumOut()-1) == errorType
	if p.NumOut() > 0 && p.Out(0) != errorType {
		expect = c.result(p.Out(0))
	} else if failing {
		c.answer.X[0] = 1
	}
	send := func() []reflect.Value {
		pool := objc.NewPool()
		defer pool.Drain()
		out := method.Call(in)
		require.NoError(t, objc.TakeError(), name)
		return out
	}
	if objects := p.NumOut() > 0 && c.answer.X[0] == uint64(c.id); objects {
		// An owned result takes a reference over, so the canary gets one to give, and it is released below.
		defer c.settle(c.references())
	}

	// The first message tells which selector it is and so which words are pointers; the second is looked at.
	count := c.last.Count
	send()
	require.Equal(t, count+1, c.last.Count, "%s sends one message", name)
	sel, place := c.selector(name)
	locations := make([]location, 0, len(wants))
	for i, at := range place.Args[runtime.GOARCH] {
		l := locate(t, at)
		locations = append(locations, l)
		if l.pointer || i < len(wants) && wants[i].pointee != nil {
			c.answer.follow(l)
		}
	}
	hidden := len(locations) - len(wants) // the NSError**
	require.True(t, hidden == 0 || hidden == 1 && failing, "%s (%s): %d arguments for %d places", name, sel, len(wants), len(locations))
	out := send()
	for i, w := range wants {
		got := c.last.read(locations[i], len(w.words))
		what := fmt.Sprintf("%s (%s), argument %d at %s", name, sel, i, place.Args[runtime.GOARCH][i])
		if w.pointer {
			require.NotZero(t, got[0], what)
			if w.pointee != nil {
				require.Equal(t, w.pointee, c.last.pointee(locations[i])[:len(w.pointee)], what)
			}
			continue
		}
		require.Equal(t, hex(w.words), hex(got), what)
	}
	if expect != nil {
		require.Equal(t, expect, out[0].Interface(), "%s (%s): result", name, sel)
	}
	if failing {
		require.Nil(t, out[len(out)-1].Interface(), "%s (%s)", name, sel)
	}
	if hidden == 1 {
		c.answer.X[0] = 0
		c.answer.fail(locations[len(wants)])
		out = send()
		var e *objc.Error
		err, _ := out[len(out)-1].Interface().(error)
		require.True(t, errors.As(err, &e), "%s (%s): %v", name, sel, err)
		require.Equal(t, objc.Error{Domain: "CanaryDomain", Code: 42, Description: "the canary fell off its perch"}, *e)
	}
}

func (c *canary) arguments(p reflect.Type) (in []reflect.Value, wants []want) {
	for i := range p.NumIn() {
		v, w := c.argument(p.In(i))
		in, wants = append(in, v), append(wants, w...)
	}
	return in, wants
}

// selector is the one of the last message, and Apple's placement of its words.
func (c *canary) selector(name string) (string, placement) {
	for _, inMemory := range []bool{c.answer.Size > 0, false} {
		sel := objc.SEL(c.last.X[selectorRegister(inMemory)]).String()
		if p, ok := c.table[sel]; ok {
			c.seen[sel] = true
			return sel, p
		}
	}
	require.FailNow(c.t, "no such selector in the table", "%s", name)
	return "", placement{}
}

func (c *canary) references() uintptr { return call(c.t, "objcdouble_retain_count", uintptr(c.id)) }

// settle brings the canary's reference count back to what it was, and fails if a method kept more than it may: owned
// results are +0 here because the canary gave no reference away.
func (c *canary) settle(before uintptr) {
	require.Equal(c.t, before, c.references(), "references to the result")
}

func hex(words []uint64) string { return fmt.Sprintf("%#x", words) }

// receivers are an object in the guise of every class of the bindings.
func receivers(id objc.ID) []any {
	return []any{
		mtl.DeviceOf(id), mtl.ArchitectureOf(id), mtl.CommandQueueOf(id), mtl.CommandQueueDescriptorOf(id), mtl.CommandBufferOf(id),
		mtl.CommandBufferDescriptorOf(id), mtl.CommandBufferEncoderInfoOf(id), mtl.CommandEncoderOf(id), mtl.ComputeCommandEncoderOf(id),
		mtl.BlitCommandEncoderOf(id), mtl.AllocationOf(id), mtl.ResourceOf(id), mtl.BufferOf(id), mtl.LibraryOf(id), mtl.FunctionOf(id),
		mtl.FunctionConstantOf(id), mtl.FunctionConstantValuesOf(id), mtl.FunctionDescriptorOf(id), mtl.CompileOptionsOf(id),
		mtl.ComputePipelineDescriptorOf(id), mtl.PipelineBufferDescriptorOf(id), mtl.PipelineBufferDescriptorArrayOf(id),
		mtl.ComputePipelineStateOf(id), mtl.ComputePipelineReflectionOf(id), mtl.BindingOf(id), mtl.BufferBindingOf(id),
		mtl.ThreadgroupBindingOf(id), mtl.ArgumentOf(id), mtl.TypeOf(id), mtl.StructTypeOf(id), mtl.StructMemberOf(id), mtl.PointerTypeOf(id),
		mtl.ArrayTypeOf(id), mtl.IndirectCommandBufferOf(id), mtl.IndirectCommandBufferDescriptorOf(id), mtl.IndirectComputeCommandOf(id),
		mtl.EventOf(id), mtl.SharedEventOf(id), mtl.FenceOf(id), mtl.HeapOf(id), mtl.HeapDescriptorOf(id), mtl.ResidencySetOf(id),
		mtl.ResidencySetDescriptorOf(id), mtl.CounterOf(id), mtl.CounterSetOf(id), mtl.CounterSampleBufferOf(id),
		mtl.CounterSampleBufferDescriptorOf(id), mtl.ComputePassDescriptorOf(id), mtl.ComputePassSampleBufferAttachmentDescriptorOf(id),
		mtl.ComputePassSampleBufferAttachmentDescriptorArrayOf(id), mtl.CaptureManagerOf(id), mtl.CaptureDescriptorOf(id), mtl.CaptureScopeOf(id),
	}
}

// TestEveryBinding calls every method of every class and finds every word where Apple's compiler would put it.
func TestEveryBinding(t *testing.T) {
	ledger(t)
	c := newCanary(t)
	for _, r := range receivers(c.id) {
		v := reflect.ValueOf(r)
		for i := range v.NumMethod() {
			name := v.Type().Method(i).Name
			if ofEveryObject(name) {
				continue
			}
			t.Run(v.Type().Name()+"."+name, func(t *testing.T) {
				c.t = t
				if by, ok := byHand[name]; ok {
					*c.answer = answer{}
					by(c, r)
					return
				}
				c.check(name, v.Method(i))
			})
		}
	}
	for _, sel := range specSelectors(t) {
		require.True(t, c.seen[sel], "no binding sent %s", sel)
	}
	t.Logf("%d selectors in %d classes on %s", len(c.seen), len(receivers(c.id)), runtime.GOARCH)
}

// ofEveryObject tells the methods that are not Metal's.
func ofEveryObject(name string) bool {
	_, ok := reflect.TypeFor[mtl.Object]().MethodByName(name)
	return ok
}

// TestNilReceivers calls every method on nil: nothing is sent to anybody, and the result is zero or an error.
func TestNilReceivers(t *testing.T) {
	ledger(t)
	c := newCanary(t)
	for _, r := range receivers(0) {
		v := reflect.ValueOf(r)
		for i := range v.NumMethod() {
			name := v.Type().Name() + "." + v.Type().Method(i).Name
			if ofEveryObject(v.Type().Method(i).Name) {
				continue
			}
			count := c.last.Count
			in, _ := c.arguments(v.Method(i).Type())
			for _, out := range v.Method(i).Call(in) {
				if out.Type() != errorType {
					require.True(t, out.IsZero(), "%s to nil gives %v", name, out)
				}
			}
			require.Equal(t, count, c.last.Count, "%s to nil reached an object", name)
		}
	}
}

// specSelectors are all instance methods of the bindings' specification.
func specSelectors(t *testing.T) []string {
	t.Helper()
	var spec struct {
		Classes []struct {
			Methods []struct {
				Sel   string `json:"sel"`
				Class bool   `json:"class"`
			} `json:"methods"`
		} `json:"classes"`
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "mtl", "internal", "gen", "metal.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &spec))
	var all []string
	for _, c := range spec.Classes {
		for _, m := range c.Methods {
			if !m.Class && !strings.HasPrefix(m.Sel, "init") {
				all = append(all, m.Sel)
			}
		}
	}
	return all
}
