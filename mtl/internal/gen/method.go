package gen

import (
	"bytes"
	"fmt"
	"strings"
)

// method writes one method of a class.
func (g *generator) method(c *Class, m *Method) (string, error) {
	e := &emitter{g: g, m: m}
	msg := g.messageFor(c, m)
	for i, a := range m.Args {
		if err := e.arg(i, a); err != nil {
			return "", err
		}
	}
	ret, err := g.spec.typeOf(m.Ret)
	if err != nil {
		return "", err
	}
	name := m.GoName()
	if m.Hand {
		name = "raw" + name
	}
	var b bytes.Buffer
	g.doc(&b, c, m, name, e, ret)
	receiver, self := fmt.Sprintf("(x %s) ", strip(c.Name)), "x.id"
	if m.Class {
		receiver, self = "", fmt.Sprintf("objc.GetClass(%q).ID()", c.Name)
	}
	call := func(how string) string {
		return fmt.Sprintf("%s.%s(%s)", msg, how, strings.Join(append([]string{self}, e.words...), ", "))
	}
	results, body, err := e.result(ret, call)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "func %s%s(%s)%s {\n%s%s}\n\n", receiver, name, strings.Join(e.params, ", "), results, e.before.String(), body)
	return b.String(), nil
}

// doc writes the comment: the selector, the version, who owns what.
func (g *generator) doc(b *bytes.Buffer, c *Class, m *Method, name string, e *emitter, ret typ) {
	sign := "-"
	if m.Class {
		sign = "+"
	}
	fmt.Fprintf(b, "// %s is %s[%s %s]%s.", name, sign, c.Name, m.Sel, sinceText(m.Since))
	if m.Deprecated != "" {
		fmt.Fprintf(b, " Apple deprecated it in macOS %s.", m.Deprecated)
	}
	switch {
	case ret.kind == object && m.Own:
		b.WriteString(" The result is the caller's to release.")
	case ret.kind == object:
		b.WriteString(" The result is borrowed: retain it to keep it past the pool.")
	}
	if e.out != "" {
		fmt.Fprintf(b, " So is the %s.", e.out)
	}
	if e.hasBlock {
		b.WriteString("\n// What the function is passed is borrowed until it returns; it may run on any thread.")
	}
	if g.spec.Checked(c, m) {
		if e.errOut || e.hasBlock {
			b.WriteString("\n// Objects that do not answer it give an error.")
		} else {
			b.WriteString("\n// Objects that do not answer it give zero, and an error from objc.TakeError.")
		}
	}
	b.WriteString("\n")
}

// emitter gathers what a method consists of.
type emitter struct {
	g        *generator
	m        *Method
	params   []string
	words    []string
	before   bytes.Buffer
	errOut   bool
	out      string // type of an object that comes back through a pointer
	hasBlock bool
	scratch  bool
	counted  map[int]string // arguments that count a slice
}

func (e *emitter) arg(i int, a Arg) error {
	if slice, ok := e.counted[i]; ok {
		e.words = append(e.words, "uintptr(len("+slice+"))")
		return nil
	}
	t, err := e.g.spec.argType(a)
	if err != nil {
		return err
	}
	n := argName(a.Name)
	last := i == len(e.m.Args)-1
	switch t.kind {
	case boolean:
		e.param(n, "bool")
		e.words = append(e.words, "word("+n+")")
	case integer:
		e.param(n, t.name)
		e.words = append(e.words, "uintptr("+n+")")
	case float64Kind:
		e.param(n, "float64")
		e.words = append(e.words, "uintptr(math.Float64bits("+n+"))")
	case object:
		e.param(n, t.name)
		e.words = append(e.words, "uintptr("+n+".id)")
	case str:
		e.param(n, "string")
		fmt.Fprintf(&e.before, "%sID := objc.NSString(%s)\ndefer %sID.Release()\n", n, n, n)
		e.words = append(e.words, "uintptr("+n+"ID)")
	case structure:
		e.param(n, t.name)
		words, err := e.g.spec.words(t.st)
		if err != nil {
			return err
		}
		for _, w := range words {
			e.words = append(e.words, "uintptr("+n+w.path+")")
		}
	case pointer:
		if e.m.Hand {
			e.param(n, "uintptr")
			e.words = append(e.words, n)
			break
		}
		e.param(n, "unsafe.Pointer")
		fmt.Fprintf(&e.before, "defer runtime.KeepAlive(%s)\n", n)
		e.words = append(e.words, "objc.Pointer("+n+")")
	case rawPointer:
		if !e.m.Hand {
			return fmt.Errorf("argument %s of type %s needs a method written by hand", a.Name, a.Type)
		}
		e.param(n, "uintptr")
		e.words = append(e.words, n)
	case array:
		if e.m.Hand {
			e.param(n, "uintptr")
			e.words = append(e.words, n)
			break
		}
		if a.Count == 0 {
			return fmt.Errorf("argument %s is an array that nothing counts", a.Name)
		}
		e.param(n, "[]"+t.name)
		if e.counted == nil {
			e.counted = map[int]string{}
		}
		e.counted[a.Count] = n
		if !e.scratch {
			e.before.WriteString("scratch := objc.NewScratch()\ndefer scratch.Free()\n")
			e.scratch = true
		}
		fmt.Fprintf(&e.before, "%sWords, %sAddress := scratch.Words(len(%s))\nfor i, o := range %s {\n%sWords[i] = uintptr(o.id)\n}\n", n, n, n, n, n)
		e.words = append(e.words, n+"Address")
	case blockKind:
		e.hasBlock = true
		e.param(n, t.name)
		body, err := e.block(n, a)
		if err != nil {
			return err
		}
		e.before.WriteString(body)
		e.words = append(e.words, "uintptr("+n+"Block)")
	case objectOut:
		if e.out = t.name; i != len(e.m.Args)-2 {
			return fmt.Errorf("argument %s: an object that comes back must stand before the error", a.Name)
		}
	case errorOut:
		if e.errOut = true; !last {
			return fmt.Errorf("argument %s: an NSError** must be the last", a.Name)
		}
	default:
		return fmt.Errorf("argument %s of type %s", a.Name, a.Type)
	}
	return nil
}

func (e *emitter) param(name, typ string) { e.params = append(e.params, name+" "+typ) }

// block turns a Go function into a block.
func (e *emitter) block(n string, a Arg) (string, error) {
	var args []string
	for i, b := range a.Block {
		t, err := e.g.spec.typeOf(b)
		if err != nil {
			return "", err
		}
		w := fmt.Sprintf("w[%d]", i)
		switch t.kind {
		case object:
			args = append(args, t.name+"Of(objc.ID("+w+"))")
		case errorIn:
			args = append(args, "objc.ErrorOf(objc.ID("+w+"))")
		case integer:
			args = append(args, t.name+"("+w+")")
		case pointer:
			args = append(args, "objc.WordPointer("+w+")")
		default:
			return "", fmt.Errorf("a block with an argument of type %s", b)
		}
	}
	failed := "return err"
	if e.m.Ret != "void" {
		t, err := e.g.spec.typeOf(e.m.Ret)
		if err != nil {
			return "", err
		}
		failed = "return " + t.name + "{}, err"
	}
	return fmt.Sprintf("var %[1]sBlock objc.Block\nif %[1]s != nil {\nvar err error\nif %[1]sBlock, err = objc.NewBlock(x.id, %[2]d, func(w []uintptr) { %[1]s(%[3]s) }); err != nil {\n%[4]s\n}\ndefer %[1]sBlock.Release()\n}\n",
		n, len(a.Block), strings.Join(args, ", "), failed), nil
}

// result writes the results of the method and the lines that send the message.
func (e *emitter) result(ret typ, call func(string) string) (results, body string, err error) {
	switch {
	case e.errOut && e.out != "" && ret.kind == object:
		return fmt.Sprintf(" (%s, %s, error)", ret.name, e.out),
			fmt.Sprintf("r, out, err := %s\nreturn %sOf(objc.ID(r)), %sOf(out), err\n", call("SendErrorOut"), ret.name, e.out), nil
	case e.errOut && ret.kind == object:
		return fmt.Sprintf(" (%s, error)", ret.name), fmt.Sprintf("r, err := %s\nreturn %sOf(objc.ID(r)), err\n", call("SendError"), ret.name), nil
	case e.errOut && ret.kind == boolean:
		return " error", fmt.Sprintf("_, err := %s\nreturn err\n", call("SendError")), nil
	case e.errOut || e.out != "":
		return "", "", fmt.Errorf("an error with a result of type %s", e.m.Ret)
	case e.hasBlock && ret.kind == void:
		return " error", "return " + call("SendChecked") + "\n", nil
	case e.hasBlock && ret.kind == object:
		return fmt.Sprintf(" (%s, error)", ret.name), "return " + ret.name + "Of(objc.ID(" + call("Send") + ")), nil\n", nil
	case e.hasBlock:
		return "", "", fmt.Errorf("a block with a result of type %s", e.m.Ret)
	}
	switch ret.kind {
	case void:
		return "", call("Send") + "\n", nil
	case boolean:
		return " bool", "return " + call("SendBool") + "\n", nil
	case integer:
		return " " + ret.name, "return " + ret.name + "(" + call("Send") + ")\n", nil
	case float64Kind:
		return " float64", "return " + call("SendFloat64") + "\n", nil
	case str:
		return " string", "return " + call("SendString") + "\n", nil
	case errorIn:
		return " error", "return " + call("SendNSError") + "\n", nil
	case object:
		return " " + ret.name, "return " + ret.name + "Of(objc.ID(" + call("Send") + "))\n", nil
	case pointer:
		return " unsafe.Pointer", "return objc.WordPointer(" + call("Send") + ")\n", nil
	case structure:
		words, err := e.g.spec.words(ret.st)
		if err != nil || len(words) > 3 {
			return "", "", fmt.Errorf("a result of type %s: %d words, %w", e.m.Ret, len(words), err)
		}
		text := "r := " + call("Send3") + "\nvar s " + ret.name + "\n"
		for i, w := range words {
			text += fmt.Sprintf("s%s = %s(r[%d])\n", w.path, w.typ, i)
		}
		return " " + ret.name, text + "return s\n", nil
	}
	return "", "", fmt.Errorf("a result of type %s", e.m.Ret)
}
