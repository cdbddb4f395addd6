package mtl

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl/internal/gen"
	"github.com/ingot-metal/ingot/objc"
)

// A recorder is a Go object that answers every selector of a class: it writes down what arrived, as far as the types in
// the description say, and answers with canaries.
type recorder struct {
	t       *testing.T
	sel     string
	args    []string
	fail    bool
	objects []objc.ID // what comes back: borrowed, owned, through a pointer
	strings []objc.ID
	blocks  int
}

const canaryText, canaryReal = "a canary", 1234.5678

func canaryWord(i int) uintptr { return 0x1122334455667788 + uintptr(i)*0x0101010101010101 }

var thing = objc.NewGoClass("Thing", nil)

func (r *recorder) object(i int) objc.ID {
	for len(r.objects) <= i {
		r.objects = append(r.objects, thing.New(len(r.objects)))
	}
	return r.objects[i]
}

func (r *recorder) text() objc.ID {
	s := objc.NSString(canaryText)
	r.strings = append(r.strings, s)
	return s
}

func (r *recorder) Dealloc() {
	for _, id := range append(r.objects, r.strings...) {
		id.Release()
	}
}

// structWords are the words of the structures that are passed by value.
func structWords(enc string) int { return strings.Count(enc, "Q") }

// recorderClass makes the class from the description of Metal's.
func recorderClass(spec *gen.Spec, c *gen.Class) *objc.GoClass {
	methods := map[string]objc.Method{}
	for _, m := range methodsOf(spec, c) {
		encs := splitEncoding(m.Enc)
		methods[m.Sel] = func(call *objc.Call) { call.Self().(*recorder).answer(call, &m, encs) }
	}
	return objc.NewGoClass(c.Name, methods)
}

// methodsOf are the methods of a class and its parents.
func methodsOf(spec *gen.Spec, c *gen.Class) []gen.Method {
	list := slices.Clone(c.Methods)
	for i := range spec.Classes {
		if p := &spec.Classes[i]; p.Name == c.Parent {
			for _, m := range methodsOf(spec, p) {
				if !slices.ContainsFunc(list, func(have gen.Method) bool { return have.Sel == m.Sel }) {
					list = append(list, m)
				}
			}
		}
	}
	return slices.DeleteFunc(list, func(m gen.Method) bool { return m.Class })
}

// splitEncoding splits a type encoding into the types of the result and the arguments.
func splitEncoding(enc string) (list []string) {
	for len(enc) > 0 {
		n := 1
		switch {
		case strings.HasPrefix(enc, "@?"):
			n = 2
		case enc[0] == '^':
			n = 2
		case enc[0] == '{':
			for depth := 1; depth > 0; n++ {
				depth += map[byte]int{'{': 1, '}': -1}[enc[n]]
			}
		}
		list = append(list, enc[:n])
		enc = enc[n:]
	}
	return append(list[:1:1], list[3:]...) // without self and the selector
}

func (r *recorder) answer(c *objc.Call, m *gen.Method, encs []string) {
	r.sel, r.args = c.SEL().String(), nil
	w := 0
	for i, a := range m.Args {
		switch enc := encs[1+i]; {
		case a.Type == "NSString *":
			r.args = append(r.args, "text "+objc.GoString(c.Object(w)))
		case a.Block != nil:
			r.args = append(r.args, "block")
			r.call(c.Block(w), a.Block)
		case a.Type == "NSError * *":
			if r.fail {
				c.Fail(w, "CanaryDomain", 42, canaryText)
			}
		case strings.HasPrefix(a.Type, "MTLAutoreleased"):
			*(*objc.ID)(c.Pointer(w)) = r.object(1)
		case a.Count > 0:
			r.args = append(r.args, fmt.Sprint("objects ", c.IDs(w, c.Uint(w+a.Count-i))))
		case enc == "^v":
			r.args = append(r.args, fmt.Sprintf("bytes %x", *(*uint64)(c.Pointer(w))))
		case enc == "B":
			r.args = append(r.args, fmt.Sprint(c.Bool(w)))
		case enc[0] == '{':
			for k := range structWords(enc) {
				r.args = append(r.args, fmt.Sprintf("%x", c.Word(w+k)))
			}
			w += structWords(enc) - 1
		default:
			if i > 0 && m.Args[i-1].Count == i {
				break // counts the array before it
			}
			r.args = append(r.args, fmt.Sprintf("%x", c.Word(w)))
		}
		w++
	}
	if w != c.NArg() {
		r.t.Errorf("%s: %d words, the types say %d", r.sel, c.NArg(), w)
	}
	if r.fail && len(m.Args) > 0 && m.Args[len(m.Args)-1].Type == "NSError * *" {
		return
	}
	switch enc := encs[0]; {
	case m.Ret == "NSString *":
		c.ReturnBorrowed(r.text())
	case m.Ret == "NSError *":
		c.ReturnBorrowed(objc.NewError("CanaryDomain", 42, canaryText).Autorelease())
	case enc == "@":
		c.ReturnBorrowed(r.object(0))
		if m.Own {
			r.object(0).Retain()
		}
	case enc == "B":
		c.ReturnBool(true)
	case enc == "d":
		c.ReturnFloat64(canaryReal)
	case enc[0] == '{':
		c.Return([]uintptr{canaryWord(0), canaryWord(1), canaryWord(2)}[:structWords(enc)]...)
	case enc != "v":
		c.Return(canaryWord(0))
	}
}

// call calls a block with canaries.
func (r *recorder) call(b objc.Block, types []string) {
	var args []uintptr
	for i, typ := range types {
		switch {
		case typ == "NSError *":
			args = append(args, uintptr(objc.NewError("CanaryDomain", 42, canaryText).Autorelease()))
		case strings.HasPrefix(typ, "id<") || strings.HasPrefix(typ, "MTL"):
			args = append(args, uintptr(r.object(i)))
		default:
			args = append(args, canaryWord(i))
		}
	}
	if err := objc.InvokeBlock(b, args...); err != nil {
		r.t.Errorf("%s: %v", r.sel, err)
	}
	r.blocks++
}

var errorType = reflect.TypeFor[error]()

type hasID interface{ ID() objc.ID }

// canary makes an argument of a type, what should arrive of it, and what is to be released.
func (r *recorder) canary(i int, typ reflect.Type) (v reflect.Value, want []string, free []objc.ID) {
	v = reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Bool:
		v.SetBool(true)
		return v, []string{"true"}, nil
	case reflect.Uint, reflect.Uint64, reflect.Uint8, reflect.Uint32:
		v.SetUint(uint64(canaryWord(i)))
		if typ.Kind() == reflect.Uint8 {
			v.SetUint(0xA5)
		}
		return v, []string{fmt.Sprintf("%x", v.Uint())}, nil
	case reflect.Int:
		v.SetInt(-5 - int64(i))
		return v, []string{fmt.Sprintf("%x", uintptr(v.Int()))}, nil
	case reflect.String:
		v.SetString(fmt.Sprintf("grüße %d", i))
		return v, []string{"text " + v.String()}, nil
	case reflect.UnsafePointer:
		n := new(uint64)
		*n = uint64(canaryWord(i))
		v.SetPointer(unsafe.Pointer(n))
		return v, []string{fmt.Sprintf("bytes %x", *n)}, nil
	case reflect.Slice:
		var ids []objc.ID
		for range 3 {
			id := thing.New(nil)
			ids = append(ids, id)
			v = reflect.Append(v, wrap(typ.Elem(), id))
		}
		return v, []string{fmt.Sprint("objects ", ids)}, ids
	case reflect.Func:
		return r.function(typ), []string{"block"}, nil
	case reflect.Struct:
		if _, ok := v.Interface().(hasID); ok {
			id := thing.New(nil)
			return wrap(typ, id), []string{fmt.Sprintf("%x", uintptr(id))}, []objc.ID{id}
		}
		n := 0
		r.fill(v, i, &n, &want)
		return v, want, nil
	}
	r.t.Fatalf("%s: no canary for an argument of type %s", r.sel, typ)
	return v, nil, nil
}

func (r *recorder) fill(v reflect.Value, i int, n *int, want *[]string) {
	for k := range v.NumField() {
		if f := v.Field(k); f.Kind() == reflect.Struct {
			r.fill(f, i, n, want)
		} else {
			f.SetUint(uint64(1000*(i+1) + *n))
			*n++
			*want = append(*want, fmt.Sprintf("%x", f.Uint()))
		}
	}
}

// function is a Go function that checks what a block passes on.
func (r *recorder) function(typ reflect.Type) reflect.Value {
	return reflect.MakeFunc(typ, func(args []reflect.Value) []reflect.Value {
		for i, a := range args {
			r.result(fmt.Sprintf("block argument %d", i), a, i)
		}
		return nil
	})
}

// wrap makes a Go type around an object: an empty value of the type whose innermost field is the ID.
func wrap(typ reflect.Type, id objc.ID) reflect.Value {
	v := reflect.New(typ)
	*(*objc.ID)(v.UnsafePointer()) = id
	return v.Elem()
}

// result checks a canary that came back.
func (r *recorder) result(what string, v reflect.Value, i int) {
	r.t.Helper()
	var got, want any = v.Interface(), nil
	switch v.Kind() {
	case reflect.Bool:
		want = true
	case reflect.Float64:
		want = canaryReal
	case reflect.String:
		want = canaryText
	case reflect.Uint, reflect.Uint64, reflect.Uint32, reflect.Uint8:
		got, want = v.Uint(), reflect.ValueOf(uint64(canaryWord(i))).Convert(v.Type()).Uint()
	case reflect.Int:
		got, want = v.Int(), int64(canaryWord(i))
	case reflect.UnsafePointer:
		got, want = uintptr(v.UnsafePointer()), canaryWord(i)
	case reflect.Interface:
		e, ok := got.(*objc.Error)
		if !ok || *e != (objc.Error{Domain: "CanaryDomain", Code: 42, Description: canaryText}) {
			r.t.Errorf("%s %s: %v", r.sel, what, got)
		}
		return
	case reflect.Struct:
		if o, ok := got.(hasID); ok {
			got, want = o.ID(), r.object(i)
			break
		}
		for k := range v.NumField() {
			if f := v.Field(k); f.Uint() != uint64(canaryWord(k)) {
				r.t.Errorf("%s %s: field %d is %x", r.sel, what, k, f.Uint())
			}
		}
		return
	}
	if got != want {
		r.t.Errorf("%s %s: %v, want %v", r.sel, what, got, want)
	}
}

// TestBindings calls every generated method of every class.
func TestBindings(t *testing.T) {
	spec, err := gen.Load()
	if err != nil {
		t.Fatal(err)
	}
	before := objc.LiveObjects()
	tried := 0
	for i := range spec.Classes {
		c := &spec.Classes[i]
		class := recorderClass(spec, c)
		for _, m := range c.Methods {
			if m.Class || m.Hand {
				continue
			}
			tried++
			t.Run(c.Name+" "+m.Sel, func(t *testing.T) {
				testBinding(t, class, c, &m, false)
				if len(m.Args) > 0 && m.Args[len(m.Args)-1].Type == "NSError * *" {
					testBinding(t, class, c, &m, true)
				}
			})
		}
	}
	if tried < 400 {
		t.Errorf("only %d bindings", tried)
	}
	if err := objc.TakeError(); err != nil {
		t.Error(err)
	}
	if n := objc.LiveObjects(); n != before {
		t.Errorf("%d objects leaked", n-before)
	}
}

func testBinding(t *testing.T, class *objc.GoClass, c *gen.Class, m *gen.Method, fail bool) {
	defer objc.NewPool().Drain()
	r := &recorder{t: t, fail: fail}
	id := class.New(r)
	defer id.Release()
	of := reflect.ValueOf(wrappers[c.Name])
	x := of.Call([]reflect.Value{reflect.ValueOf(id)})[0]
	method := x.MethodByName(m.GoName())
	if !method.IsValid() {
		t.Fatalf("%s has no method %s", x.Type(), m.GoName())
	}
	var in []reflect.Value
	var want []string
	for i := range method.Type().NumIn() {
		v, w, free := r.canary(i, method.Type().In(i))
		in, want = append(in, v), append(want, w...)
		defer func() {
			for _, id := range free {
				id.Release()
			}
		}()
	}
	out := method.Call(in)
	if r.sel != m.Sel {
		t.Fatalf("%s arrived, want %s", r.sel, m.Sel)
	}
	if !slices.Equal(r.args, want) {
		t.Errorf("arguments %q, want %q", r.args, want)
	}
	hasError := method.Type().NumOut() > 0 && method.Type().Out(method.Type().NumOut()-1) == errorType && m.Ret != "NSError *"
	if hasError {
		err, _ := out[len(out)-1].Interface().(error)
		if fail != (err != nil) {
			t.Errorf("error %v", err)
		}
		if fail {
			r.result("error", out[len(out)-1], 0)
			for _, v := range out[:len(out)-1] {
				if !v.IsZero() {
					t.Errorf("%v beside an error", v)
				}
			}
			return
		}
		out = out[:len(out)-1]
	}
	for i, v := range out {
		r.result("result", v, i)
	}
	if m.Own && len(out) > 0 {
		out[0].Interface().(hasID).ID().Release()
	}
	if len(out) == 2 { // an object through a pointer comes back retained
		out[1].Interface().(hasID).ID().Release()
	}
}

// TestNilReceivers calls every generated method of nil: zeros, and errors where a method returns one.
func TestNilReceivers(t *testing.T) {
	spec, err := gen.Load()
	if err != nil {
		t.Fatal(err)
	}
	before := objc.LiveObjects()
	for i := range spec.Classes {
		c := &spec.Classes[i]
		x := reflect.ValueOf(wrappers[c.Name]).Call([]reflect.Value{reflect.ValueOf(objc.ID(0))})[0]
		for _, m := range c.Methods {
			if m.Class || m.Hand {
				continue
			}
			method := x.MethodByName(m.GoName())
			var in []reflect.Value
			for i := range method.Type().NumIn() {
				in = append(in, reflect.Zero(method.Type().In(i)))
			}
			for i, v := range method.Call(in) {
				if isError := v.Type() == errorType && i == method.Type().NumOut()-1 && m.Ret != "NSError *"; isError {
					if v.IsNil() && m.Ret != "id<MTLBuffer>" { // a buffer without an NSError is nil, nothing more
						t.Errorf("%s %s: no error from nil", c.Name, m.Sel)
					}
				} else if !v.IsZero() {
					t.Errorf("%s %s: %v from nil", c.Name, m.Sel, v)
				}
			}
		}
	}
	if err := objc.TakeError(); err != nil {
		t.Error(err)
	}
	if n := objc.LiveObjects(); n != before {
		t.Errorf("%d objects leaked", n-before)
	}
}

// TestUnanswered calls methods newer than the floor of objects that do not have them: an error each time.
func TestUnanswered(t *testing.T) {
	d := DeviceOf(objc.NewGoClass("OldDevice", nil).New(nil))
	defer d.Release()
	if q := d.NewCommandQueueWithDescriptor(CommandQueueDescriptor{}); !q.IsNil() {
		t.Error("a queue from nowhere")
	}
	if err := objc.TakeError(); err == nil || !strings.Contains(err.Error(), "newCommandQueueWithDescriptor:") || !strings.Contains(err.Error(), "macOS 15.0") {
		t.Error(err)
	}
	if _, err := d.NewResidencySetWithDescriptor(ResidencySetDescriptor{}); err == nil || !strings.Contains(err.Error(), "macOS 15.0") {
		t.Error(err)
	}
	if d.RespondsTo("newResidencySetWithDescriptor:error:") {
		t.Error("responds")
	}
}
