package msl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const sampleIR = `
@.str = private unnamed_addr addrspace(2) constant [11 x i8] c"msl:buffer\00", section "llvm.metadata"
@.str.1 = private unnamed_addr addrspace(2) constant [13 x i8] c"rewritten.cl\00", section "llvm.metadata"
@.args = private unnamed_addr addrspace(1) constant { i32 } zeroinitializer, section "llvm.metadata"
@.args.2 = private unnamed_addr addrspace(1) constant { i32 } { i32 7 }, section "llvm.metadata"
@.str.3 = private unnamed_addr addrspace(2) constant [11 x i8] c"msl:kernel\00", section "llvm.metadata"
@.str.4 = private unnamed_addr addrspace(2) constant [18 x i8] c"msl:host_name:a\22b\00", section "llvm.metadata"
@llvm.global.annotations = appending addrspace(1) global [2 x { ptr }] [{ ptr } { ptr addrspace(1) addrspacecast (ptr @_Z1kv to ptr addrspace(1)), ptr addrspace(2) @.str.3, ptr addrspace(2) @.str.1, i32 23, ptr addrspace(2) null }, { ptr } { ptr addrspace(1) addrspacecast (ptr @_Z1kv to ptr addrspace(1)), ptr addrspace(2) @.str.4, ptr addrspace(2) @.str.1, i32 23, ptr addrspace(2) null }], section "llvm.metadata"
define weak_odr spir_func void @_Z1kv(ptr addrspace(1) noundef %0, ptr addrspace(2) %1) #0 comdat !dbg !4 {
  %2 = alloca ptr addrspace(1), align 8
    #dbg_declare(ptr %2, !5, !DIExpression(), !9)
  call void @llvm.var.annotation.p0.p2(ptr %2, ptr addrspace(2) @.str, ptr addrspace(2) @.str.1, i32 10, ptr addrspace(1) @.args)
    #dbg_declare(ptr %3, !6, !DIExpression(), !9)
  call void @llvm.var.annotation.p0.p2(ptr %3, ptr addrspace(2) @.str, ptr addrspace(2) @.str.1, i32 10, ptr addrspace(1) @.args.2)
    #dbg_declare(ptr %4, !7, !DIExpression(), !9)
  ret void
}
!4 = distinct !DISubprogram(name: "k<a, b>", linkageName: "_Z1kv", line: 12, type: !8)
!5 = !DILocalVariable(name: "x", arg: 1, scope: !4, type: !10)
!6 = !DILocalVariable(name: "y", arg: 2, scope: !4, type: !11)
!7 = !DILocalVariable(name: "local", scope: !4, type: !10)
!10 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !12, size: 64)
!11 = !DIDerivedType(tag: DW_TAG_reference_type, baseType: !20, size: 64)
!12 = !DIDerivedType(tag: DW_TAG_const_type, baseType: !13)
!13 = !DIDerivedType(tag: DW_TAG_typedef, name: "float3", baseType: !14)
!14 = !DICompositeType(tag: DW_TAG_array_type, baseType: !15, size: 128, flags: DIFlagVector, elements: !16)
!15 = !DIBasicType(name: "float", size: 32, encoding: DW_ATE_float)
!16 = !{!17}
!17 = !DISubrange(count: 3)
!20 = distinct !DICompositeType(tag: DW_TAG_structure_type, name: "P", size: 64, elements: !21)
!21 = !{!22, !23, null}
!22 = !DIDerivedType(tag: DW_TAG_member, name: "n", baseType: !24, size: 32)
!23 = !DIDerivedType(tag: DW_TAG_member, name: "next", baseType: !25, size: 64, offset: 64)
!24 = !DIBasicType(name: "unsigned int", size: 32, encoding: DW_ATE_unsigned)
!25 = !DIDerivedType(tag: DW_TAG_pointer_type, baseType: !20, size: 64)
`

func TestParseIR(t *testing.T) {
	ir, err := parseIR(sampleIR)
	require.NoError(t, err)
	f := ir.functions["_Z1kv"]
	require.NotNil(t, f)
	require.Equal(t, []annotation{{text: "kernel"}, {text: `host_name:a"b`}}, f.annotations)
	require.Len(t, f.params, 2)
	require.Equal(t, "x", f.params[0].name)
	require.Equal(t, []annotation{{text: "buffer", number: 0, hasNumber: true}}, f.params[0].annotations)
	require.Equal(t, []annotation{{text: "buffer", number: 7, hasNumber: true}}, f.params[1].annotations)
	require.Equal(t, map[string]string{"": "DISubprogram", "name": "k<a, b>", "linkageName": "_Z1kv", "line": "12", "type": "!8"}, ir.node("!4"))
	require.Empty(t, ir.node("!99"))
	require.Equal(t, []string{"!22", "!23", "null"}, ir.list("!21"))

	x := ir.debugType(f.params[0].typ)
	require.Equal(t, pointerType, x.kind)
	require.True(t, x.constant)
	require.Equal(t, "float3", x.elem.name)
	require.Equal(t, 16, x.elem.size)
	require.Equal(t, 16, x.elem.align)
	y := ir.debugType(f.params[1].typ)
	require.Equal(t, referenceType, y.kind)
	require.False(t, y.constant)
	require.Equal(t, "P", y.elem.name)
	require.Equal(t, "uint", y.elem.members[0].typ.name)
	require.Equal(t, 8, y.elem.members[1].offset)
	require.Equal(t, voidType, ir.debugType("null").kind)
}

func TestScalarName(t *testing.T) {
	for _, c := range []struct {
		name, encoding string
		bits           int
		want           string
	}{
		{"bool", "DW_ATE_boolean", 8, "bool"}, {"char", "DW_ATE_signed_char", 8, "char"}, {"unsigned char", "DW_ATE_unsigned_char", 8, "uchar"},
		{"short", "DW_ATE_signed", 16, "short"}, {"unsigned long", "DW_ATE_unsigned", 64, "ulong"}, {"__bf16", "DW_ATE_float", 16, "bfloat"},
		{"half", "DW_ATE_float", 16, "half"}, {"float", "DW_ATE_float", 32, "float"},
	} {
		require.Equal(t, c.want, scalarName(c.name, c.encoding, c.bits))
	}
}

func TestFoldGeneric(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"  %1 = load float, ptr addrspace(4) %0, align 4", "  %1 = load float, ptr %0, align 4"},
		{"  %1 = addrspacecast ptr %0 to ptr addrspace(4)", "  %1 = bitcast ptr %0 to ptr"},
		{"  %1 = addrspacecast ptr addrspace(1) %0 to ptr addrspace(4)", "  %1 = addrspacecast ptr addrspace(1) %0 to ptr"},
		{"  store ptr addrspace(4) addrspacecast (ptr @x to ptr addrspace(4)), ptr %1", "  store ptr bitcast (ptr @x to ptr), ptr %1"},
		{"  call void @f(ptr addrspace(1) addrspacecast (ptr null to ptr addrspace(1)))", "  call void @f(ptr addrspace(1) null)"},
		{"  call void @llvm.memcpy.p4.p4.i64(ptr addrspace(4) %0, ptr addrspace(4) %1, i64 4, i1 false)", "  call void @llvm.memcpy.p0.p0.i64(ptr %0, ptr %1, i64 4, i1 false)"},
		{"attributes #3 = { convergent nounwind memory(none) }", "attributes #3 = { nounwind memory(none) }"},
		{"attributes #3 = { convergent nounwind }", "attributes #3 = { convergent nounwind }"},
		{"  %1 = load float, ptr addrspace(2) %0, align 4, !dbg !3", "  %1 = load float, ptr addrspace(2) %0, align 4, !dbg !3, !invariant.load !0"},
		{"  %1 = load i32, ptr addrspace(2) @_ZL1x, align 4", "  %1 = load i32, ptr addrspace(2) @_ZL1x, align 4"},
		{`!3 = !{!"ptr addrspace(4)"}`, `!3 = !{!"ptr addrspace(4)"}`},
	} {
		got := foldGeneric(c.in)
		node := "!0 = !{}\n"
		if c.in[0] == '!' {
			node = "!4 = !{}\n"
		}
		require.Equal(t, c.want+"\n"+node, got)
	}
	// The overloads of an intrinsic for both spaces are one afterwards; annotations are gone.
	got := foldGeneric("declare void @llvm.memcpy.p4.p1.i64(ptr addrspace(4))\ndeclare void @llvm.memcpy.p0.p1.i64(ptr)\n@llvm.global.annotations = x\n; note\n  call void @llvm.var.annotation.p0(ptr %1)")
	require.Equal(t, "declare void @llvm.memcpy.p0.p1.i64(ptr)\n!0 = !{}\n", got)
}

func FuzzParseIR(f *testing.F) {
	f.Add(sampleIR)
	f.Add("define void @\"a b\"(ptr %0) !dbg !1 {\n}\n!1 = !DISubprogram(name: \"")
	f.Add("!1 = !DIDerivedType(tag: DW_TAG_typedef, baseType: !1)")
	f.Fuzz(func(t *testing.T, module string) {
		ir, err := parseIR(module)
		if err != nil {
			return
		}
		for ref := range ir.meta {
			ir.debugType(ref)
		}
		_, _ = newUnit(ir, &rewriter{})
		foldGeneric(module)
	})
}
