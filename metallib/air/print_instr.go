package air

import "fmt"

var orderings = [...]string{"", "unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"}

var rmwNames = [...]string{"xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin", "fadd", "fsub", "fmax",
	"fmin", "uinc_wrap", "udec_wrap", "usub_cond", "usub_sat", "fmaximum", "fminimum", "fmaximumnum", "fminimumnum"}

// flagNames are the flags that are printed by name, in LLVM's order.
var flagNames = [...]struct {
	flag Flags
	name string
}{{Reassoc, "reassoc"}, {NNaN, "nnan"}, {NInf, "ninf"}, {NSZ, "nsz"}, {ARCP, "arcp"}, {Contract, "contract"}, {AFN, "afn"}, {NUW, "nuw"},
	{NSW, "nsw"}, {Exact, "exact"}, {Disjoint, "disjoint"}, {NNeg, "nneg"}, {SameSign, "samesign"}, {InBounds, "inbounds"},
	{GEPNUSW, "nusw"}, {GEPNUW, "nuw"}}

// flags prints flags, with a space after each.
func (p *printer) flags(f Flags) {
	if f&Fast == Fast {
		p.add("fast ")
		f &^= Fast
	}
	if f&InBounds != 0 {
		f &^= GEPNUSW // follows from it
	}
	for _, n := range flagNames {
		if f&n.flag != 0 {
			p.add(n.name + " ")
		}
	}
}

func (p *printer) instr(in *Instr) {
	if in.Ty != nil && in.Ty.Kind != VoidKind {
		p.add(p.valueName(in) + " = ")
	}
	switch in.Op {
	case OpCall:
		p.call(in)
		return
	case OpLoad, OpStore, OpAlloca, OpFence, OpCmpXchg, OpAtomicRMW:
		p.memory(in)
		return
	}
	p.add(in.Op.String() + " ")
	p.flags(in.Flags)
	switch op := in.Op; {
	case op >= OpAdd && op <= OpFRem && len(in.Args) > 0:
		p.typed(in.Args[0])
		for _, a := range in.Args[1:] {
			p.add(", ")
			p.value(a)
		}
	case op >= OpTrunc && op <= OpAddrSpaceCast:
		p.operands(in.Args)
		p.print(" to %s", in.Ty)
	case (op == OpICmp || op == OpFCmp) && len(in.Args) == 2:
		p.add(in.Pred.String() + " ")
		p.typed(in.Args[0])
		p.add(", ")
		p.value(in.Args[1])
	case op == OpPhi:
		p.print("%s ", in.Ty)
		p.list(len(in.Args), func(i int) {
			p.add("[ ")
			p.value(in.Args[i])
			if i < len(in.Blocks) {
				p.add(", " + p.valueName(in.Blocks[i]))
			}
			p.add(" ]")
		})
	case op == OpGetElementPtr:
		p.print("%s, ", in.SourceType)
		p.operands(in.Args)
	case op == OpExtractValue || op == OpInsertValue:
		p.operands(in.Args)
		for _, i := range in.Indices {
			p.print(", %d", i)
		}
	case op == OpVAArg:
		p.operands(in.Args)
		p.print(", %s", in.Ty)
	case op == OpRet && len(in.Args) == 0:
		p.add("void")
	case op == OpSwitch && len(in.Args) == len(in.Blocks) && len(in.Args) > 0:
		p.typed(in.Args[0])
		p.print(", label %s [\n", p.valueName(in.Blocks[0]))
		for i, a := range in.Args[1:] {
			p.add("    ")
			p.typed(a)
			p.print(", label %s\n", p.valueName(in.Blocks[i+1]))
		}
		p.add("  ]")
	case op == OpIndirectBr:
		p.operands(in.Args)
		p.add(", [")
		p.list(len(in.Blocks), func(i int) { p.add("label " + p.valueName(in.Blocks[i])) })
		p.add("]")
	case op == OpBr:
		p.operands(in.Args)
		for i, b := range in.Blocks {
			if i > 0 || len(in.Args) > 0 {
				p.add(", ")
			}
			p.add("label " + p.valueName(b))
		}
	case op == OpUnreachable:
	default:
		p.operands(in.Args)
	}
}

func (p *printer) operands(vs []Value) {
	p.list(len(vs), func(i int) { p.typed(vs[i]) })
}

func (p *printer) memory(in *Instr) {
	arg := func(i int) {
		if i < len(in.Args) {
			p.typed(in.Args[i])
		} else {
			p.add("<missing>")
		}
	}
	p.add(in.Op.String() + " ")
	if in.Ordering != 0 && (in.Op == OpLoad || in.Op == OpStore) {
		p.add("atomic ")
	}
	for _, f := range []struct {
		flag Flags
		name string
	}{{Weak, "weak "}, {Volatile, "volatile "}, {InAlloca, "inalloca "}, {SwiftError, "swifterror "}} {
		if in.Flags&f.flag != 0 {
			p.add(f.name)
		}
	}
	switch in.Op {
	case OpAlloca:
		p.print("%s", in.SourceType)
		if c, ok := in.Args[0].(*Const); !ok || c.Kind != IntConst || c.Bits != 1 || c.Ty.Bits != 32 {
			p.add(", ")
			arg(0)
		}
	case OpLoad:
		p.print("%s, ", in.Ty)
		arg(0)
	case OpStore:
		arg(0)
		p.add(", ")
		arg(1)
	case OpCmpXchg:
		p.operands(in.Args)
	case OpAtomicRMW:
		p.add(at(rmwNames[:], int(in.RMW)) + " ")
		p.operands(in.Args)
	}
	if in.Ordering != 0 {
		if scope := p.syncScope(in.SyncScope); scope != "" {
			if in.Op != OpFence {
				p.add(" ")
			}
			p.print("syncscope(%s)", quote(scope))
			if in.Op == OpFence {
				p.add(" ")
			}
		}
		if in.Op != OpFence {
			p.add(" ")
		}
		p.add(at(orderings[:], int(in.Ordering)))
		if in.Op == OpCmpXchg {
			p.add(" " + at(orderings[:], int(in.FailureOrdering)))
		}
	}
	if in.Align != 0 {
		p.print(", align %d", in.Align)
	}
	if in.Op == OpAlloca && in.Ty.Space != 0 {
		p.print(", addrspace(%d)", in.Ty.Space)
	}
}

// syncScope names a synchronisation scope; the system's has no name.
func (p *printer) syncScope(n uint32) string {
	if p.m != nil && len(p.m.SyncScopes) > 0 {
		return at(p.m.SyncScopes, int(n))
	}
	switch n {
	case 0:
		return "singlethread"
	case 1:
		return ""
	}
	return fmt.Sprintf("<%d>", n)
}

func (p *printer) call(in *Instr) {
	switch {
	case in.Flags&MustTail != 0:
		p.add("musttail ")
	case in.Flags&NoTail != 0:
		p.add("notail ")
	case in.Flags&TailCall != 0:
		p.add("tail ")
	}
	p.add("call ")
	p.flags(in.Flags)
	p.add(callConv(in.CallConv))
	p.attrs(in.Attrs.Ret, "", " ")
	if in.FuncType != nil && in.FuncType.Variadic {
		p.print("%s ", in.FuncType)
	} else {
		p.print("%s ", in.Ty)
	}
	p.value(in.Callee)
	p.add("(")
	p.list(len(in.Args), func(i int) {
		p.add(in.Args[i].Type().String())
		p.attrs(in.Attrs.Param(i), " ", "")
		p.add(" ")
		p.value(in.Args[i])
	})
	p.add(")")
	p.attrGroup(in.Attrs.Fn)
	if len(in.Bundles) > 0 {
		p.add(" [ ")
		p.list(len(in.Bundles), func(i int) {
			p.add(quote(in.Bundles[i].Tag) + "(")
			p.operands(in.Bundles[i].Args)
			p.add(")")
		})
		p.add(" ]")
	}
}
