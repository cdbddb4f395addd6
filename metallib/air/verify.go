package air

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
)

// Verify checks that a module is well formed: that symbols are what they say, that blocks end in terminators, that
// operands have the types that their instructions need and are defined on every way to their use, that phis agree with
// the blocks that come before, and that calls agree with what they call. [Write] verifies what it writes.
func Verify(m *Module) (err error) {
	if m == nil {
		return errors.New("air: invalid module: it is nil")
	}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case runtime.Error: // something in a module made by hand is nil
			err = fmt.Errorf("air: invalid module: %w: %w", errInternal, e)
		default:
			panic(e)
		}
	}()
	v := &verifier{m: m, symbols: map[Value]bool{}, consts: map[*Const]bool{}}
	if err := v.module(); err != nil {
		return fmt.Errorf("air: invalid module: %w", err)
	}
	return nil
}

// A verifier checks one module.
type verifier struct {
	m       *Module
	symbols map[Value]bool
	// consts are the constants found good; false while one is being checked.
	consts map[*Const]bool

	f     *Function
	flow  *flow
	place map[*Instr]int // the position of an instruction in its block
}

func (v *verifier) module() error {
	names := map[string]bool{}
	symbol := func(x Value, s *Symbol, valueType *Type, space int) error {
		if v.symbols[x] {
			return fmt.Errorf("%s is there twice", symbolName(x))
		}
		v.symbols[x] = true
		if s.Name != "" && names[s.Name] {
			return fmt.Errorf("two symbols are named %s", s.Name)
		}
		names[s.Name] = true
		if valueType == nil || s.Ty == nil {
			return fmt.Errorf("%s has no type", symbolName(x))
		}
		if t := s.Ty; t.Kind != PointerKind || t.Space != space || t.Elem != nil && t.Elem != valueType {
			return fmt.Errorf("%s holds a %s in address space %d and is of type %s", symbolName(x), valueType, space, t)
		}
		return nil
	}
	switch {
	case slices.Contains(v.m.Globals, nil):
		return errors.New("a global is nil")
	case slices.Contains(v.m.Functions, nil):
		return errors.New("a function is nil")
	case slices.Contains(v.m.Aliases, nil):
		return errors.New("an alias is nil")
	}
	for _, g := range v.m.Globals {
		if err := symbol(g, &g.Symbol, g.ValueType, g.Space); err != nil {
			return err
		}
	}
	for _, f := range v.m.Functions {
		if err := symbol(f, &f.Symbol, f.FuncType, f.Space); err != nil {
			return err
		}
	}
	for _, a := range v.m.Aliases {
		if err := symbol(a, &a.Symbol, a.ValueType, a.Space); err != nil {
			return err
		}
	}
	for _, g := range v.m.Globals {
		if err := v.global(g); err != nil {
			return fmt.Errorf("@%s: %w", g.Name, err)
		}
	}
	for _, a := range v.m.Aliases {
		if err := v.constant(a.Aliasee, nil); err != nil {
			return fmt.Errorf("@%s: %w", a.Name, err)
		}
	}
	for _, n := range v.m.NamedMD {
		for _, op := range n.Ops {
			if _, ok := op.(*MDNode); !ok {
				if _, ok := op.(*MDOther); !ok {
					return fmt.Errorf("!%s has an operand that is no node", n.Name)
				}
			}
		}
	}
	for _, f := range v.m.Functions {
		if err := v.function(f); err != nil {
			return fmt.Errorf("@%s: %w", f.Name, err)
		}
	}
	return nil
}

func powerOfTwo(a uint64) bool { return a&(a-1) == 0 }

func (v *verifier) global(g *Global) error {
	switch g.ValueType.Kind {
	case VoidKind, FunctionKind, LabelKind, MetadataKind, TokenKind:
		return fmt.Errorf("a global of type %s", g.ValueType)
	}
	if !powerOfTwo(g.Align) {
		return fmt.Errorf("an alignment of %d", g.Align)
	}
	if g.Init == nil {
		return nil
	}
	return v.constant(g.Init, g.ValueType)
}

// constant checks a constant, which must be of type t if that is not nil.
func (v *verifier) constant(x Value, t *Type) error {
	if x == nil {
		return errors.New("a constant is missing")
	}
	if t != nil && x.Type() != t {
		return fmt.Errorf("a constant of type %s where %s is needed", x.Type(), t)
	}
	c, ok := x.(*Const)
	if !ok {
		if !isConstant(x) {
			return fmt.Errorf("%T where a constant is needed", x)
		}
		if !v.symbols[x] {
			return fmt.Errorf("%s is used and not in the module", symbolName(x))
		}
		return nil
	}
	if good, seen := v.consts[c]; seen {
		if !good {
			return errors.New("a constant contains itself")
		}
		return nil
	}
	v.consts[c] = false
	if err := v.constContent(c); err != nil {
		return err
	}
	v.consts[c] = true
	return nil
}

func (v *verifier) constContent(c *Const) error {
	if c.Ty == nil {
		return errors.New("a constant has no type")
	}
	wrong := func() error { return fmt.Errorf("a constant of kind %d cannot be of type %s", c.Kind, c.Ty) }
	count := func() int {
		switch c.Ty.Kind {
		case StructKind:
			return len(c.Ty.Fields)
		case ArrayKind, VectorKind:
			return int(c.Ty.Len)
		}
		return -1
	}
	switch c.Kind {
	case NullConst, UndefConst, PoisonConst:
		switch c.Ty.Kind {
		case VoidKind, FunctionKind, LabelKind, MetadataKind:
			return wrong()
		}
	case IntConst:
		if c.Ty.Kind != IntKind || c.Ty.Bits > 64 && len(c.Words) != (c.Ty.Bits+63)/64 {
			return wrong()
		}
		if c.Ty.Bits < 64 && c.Bits>>c.Ty.Bits != 0 {
			return fmt.Errorf("the constant %#x does not fit %s", c.Bits, c.Ty)
		}
	case FloatConst:
		if !c.Ty.IsFloat() && c.Ty.Kind != OtherKind {
			return wrong()
		}
		if n := c.Ty.ScalarBits(); c.Ty.IsFloat() && n < 64 && c.Bits>>n != 0 {
			return fmt.Errorf("the constant %#x does not fit %s", c.Bits, c.Ty)
		}
	case AggregateConst:
		if n := count(); n != len(c.Elems) {
			return fmt.Errorf("a constant of type %s has %d elements", c.Ty, len(c.Elems))
		}
		for i, e := range c.Elems {
			if err := v.constant(e, elementType(c.Ty, i)); err != nil {
				return err
			}
		}
	case DataConst:
		if c.Ty.Kind != ArrayKind && c.Ty.Kind != VectorKind || count() != len(c.Data) || !c.Ty.Elem.IsFloat() && c.Ty.Elem.Kind != IntKind {
			return wrong()
		}
	case StringConst:
		if c.Ty.Kind != ArrayKind || count() != len(c.Str) || c.Ty.Elem != v.m.Int(8) {
			return wrong()
		}
	case ExprConst:
		for _, e := range c.Elems {
			if err := v.constant(e, nil); err != nil {
				return err
			}
		}
		if c.Mask != nil {
			if err := v.constant(c.Mask, nil); err != nil {
				return err
			}
		}
		return v.constExpr(c)
	case BlockAddressConst:
		if len(c.Elems) != 2 {
			return wrong()
		}
		f, ok := c.Elems[0].(*Function)
		b, ok2 := c.Elems[1].(*Block)
		if !ok || !ok2 || b.Parent != f {
			return errors.New("the address of a block that is not in its function")
		}
	case OtherConst:
		if len(c.Elems) != 1 {
			return wrong()
		}
		return v.constant(c.Elems[0], nil)
	}
	return nil
}

// constExpr checks a constant expression as the instruction that it stands for.
func (v *verifier) constExpr(c *Const) error {
	in := &Instr{Op: c.Op, Ty: c.Ty, Args: c.Elems, Pred: c.Pred, Flags: c.Flags, SourceType: c.SourceType}
	if c.Op == OpShuffleVector {
		if c.Mask == nil {
			return errors.New("a constant shuffle without a mask")
		}
		in.Args = append(in.Args[:len(in.Args):len(in.Args)], c.Mask)
	}
	switch {
	case c.Op >= OpAdd && c.Op <= OpFCmp, c.Op == OpGetElementPtr, c.Op == OpSelect, c.Op >= OpExtractElement && c.Op <= OpInsertValue:
		if err := v.types(in); err != nil {
			return fmt.Errorf("constant %s: %w", c.Op, err)
		}
		return nil
	}
	return fmt.Errorf("a constant expression of %s", c.Op)
}

func (v *verifier) function(f *Function) error {
	if f.FuncType.Kind != FunctionKind || len(f.Args) != len(f.FuncType.Params) {
		return fmt.Errorf("%d arguments for type %s", len(f.Args), f.FuncType)
	}
	for i, a := range f.Args {
		if a.Ty != f.FuncType.Params[i] || a.Parent != f || a.Index != i {
			return fmt.Errorf("argument %d does not fit type %s", i, f.FuncType)
		}
	}
	for _, c := range []Value{f.Prefix, f.Prologue, f.Personality} {
		if c != nil {
			if err := v.constant(c, nil); err != nil {
				return err
			}
		}
	}
	if f.Declaration() {
		return nil
	}
	if err := v.shape(f); err != nil {
		return err
	}
	v.f, v.flow = f, newFlow(f)
	if len(v.flow.preds[0]) > 0 {
		return errors.New("a branch leads to the entry block")
	}
	for i, b := range f.Blocks {
		for _, in := range b.Instrs {
			err := v.operands(i, in)
			if err == nil {
				err = v.types(in)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", in, err)
			}
		}
	}
	return nil
}

// shape checks what must hold before control flow can be worked out.
func (v *verifier) shape(f *Function) error {
	v.place = map[*Instr]int{}
	in := map[*Block]bool{}
	for i, b := range f.Blocks {
		if b == nil || b.Parent != f || in[b] {
			return fmt.Errorf("block %d is missing, there twice, or of another function", i)
		}
		in[b] = true
	}
	for i, b := range f.Blocks {
		phis := true
		for j, x := range b.Instrs {
			switch last := j == len(b.Instrs)-1; {
			case x == nil || x.Parent != b:
				return fmt.Errorf("instruction %d of block %d is missing or of another block", j, i)
			case x.Ty == nil:
				return fmt.Errorf("instruction %d of block %d has no type", j, i)
			case x.IsTerminator() != last:
				return fmt.Errorf("block %d: its last instruction, and no other, must be a terminator", i)
			case x.Op == OpPhi && !phis:
				return fmt.Errorf("block %d: a phi after other instructions", i)
			}
			if _, ok := v.place[x]; ok {
				return fmt.Errorf("instruction %d of block %d is there twice", j, i)
			}
			v.place[x] = j
			phis = phis && x.Op == OpPhi
			for _, t := range x.Blocks {
				if !in[t] {
					return fmt.Errorf("block %d: a branch leaves the function", i)
				}
			}
		}
		if len(b.Instrs) == 0 {
			return fmt.Errorf("block %d is empty", i)
		}
	}
	return nil
}

// operands checks that the operands of an instruction in block b exist where it uses them.
func (v *verifier) operands(b int, in *Instr) error {
	if in.Op == OpPhi {
		return v.phi(b, in)
	}
	for i, a := range in.Args {
		if err := v.operand(a, b, in); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	if in.Callee != nil {
		if err := v.operand(in.Callee, b, in); err != nil {
			return fmt.Errorf("callee: %w", err)
		}
	}
	for _, bundle := range in.Bundles {
		for _, a := range bundle.Args {
			if err := v.operand(a, b, in); err != nil {
				return fmt.Errorf("bundle %q: %w", bundle.Tag, err)
			}
		}
	}
	return nil
}

// operand checks one operand of an instruction in block b; user is nil if the use is at the block's end.
func (v *verifier) operand(a Value, b int, user *Instr) error {
	switch a := a.(type) {
	case nil:
		return errors.New("it is missing")
	case *Arg:
		if a.Parent != v.f {
			return errors.New("it is an argument of another function")
		}
	case *Instr:
		at, ok := v.place[a]
		if !ok {
			return errors.New("it is an instruction of another function")
		}
		if a.Ty.Kind == VoidKind {
			return errors.New("it is an instruction without a result")
		}
		if !v.flow.reached(b) {
			return nil
		}
		def := v.flow.index[a.Parent]
		if def == b && user != nil && at >= v.place[user] || def != b && !v.flow.dominates(def, b) {
			return fmt.Errorf("%s is not defined on every way to it", v.name(a))
		}
	case *Block:
		if a.Parent != v.f {
			return errors.New("it is a block of another function")
		}
	case *MetadataValue, *InlineAsm:
	default:
		return v.constant(a, nil)
	}
	return nil
}

func (v *verifier) name(a Value) string {
	return newPrinter(v.m).inFunction(v.f).valueName(a)
}

// phi checks that a phi has one value for each edge to its block.
func (v *verifier) phi(b int, in *Instr) error {
	if len(in.Args) != len(in.Blocks) {
		return fmt.Errorf("%d values and %d blocks", len(in.Args), len(in.Blocks))
	}
	edges := map[int]int{}
	for _, p := range v.flow.preds[b] {
		edges[p]++
	}
	value := map[int]Value{}
	for i, p := range in.Blocks {
		from := v.flow.index[p]
		if edges[from]--; edges[from] < 0 {
			return errors.New("it has a value for a block that does not lead to it, or too many")
		}
		if old, ok := value[from]; ok && old != in.Args[i] && !sameConst(old, in.Args[i]) {
			return errors.New("it has two values for one block")
		}
		value[from] = in.Args[i]
		if in.Args[i] == nil || in.Args[i].Type() != in.Ty {
			return fmt.Errorf("value %d is not of its type", i)
		}
		if err := v.operand(in.Args[i], from, nil); err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
	}
	if len(in.Args) != len(v.flow.preds[b]) {
		return fmt.Errorf("%d values, %d edges lead to its block", len(in.Args), len(v.flow.preds[b]))
	}
	return nil
}

// sameConst tells whether two values are simple constants of one value.
func sameConst(a, b Value) bool {
	x, ok := a.(*Const)
	y, ok2 := b.(*Const)
	return ok && ok2 && x.Ty == y.Ty && (isZero(x) && isZero(y) || x.Kind == y.Kind && x.Bits == y.Bits && len(x.Elems)+len(x.Data)+len(x.Words)+len(y.Elems)+len(y.Data)+len(y.Words) == 0)
}
