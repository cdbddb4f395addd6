package air_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib/air"
)

func source(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return string(text)
}

// TestEverything takes a module with every instruction, form of constant, attribute and linkage through the reader and the
// writer, and through the printer, and compares what LLVM makes of it.
func TestEverything(t *testing.T) {
	code := assemble(t, source(t, "all.ll"), "llvm-as-14")
	want := disassemble(t, code, "llvm-dis-14")
	m, err := air.Read(code)
	require.NoError(t, err)
	require.Empty(t, m.Skipped)
	require.NoError(t, air.Verify(m))
	out, err := air.Write(m)
	require.NoError(t, err)
	require.Zero(t, len(out)%16)
	require.Equal(t, want, disassemble(t, out, "llvm-dis-14"))
	require.Equal(t, countOps(want), ownCounts(m))
	require.Equal(t, want, disassemble(t, assemble(t, m.String(), "llvm-as-14"), "llvm-dis-14"))

	again, err := air.Read(out)
	require.NoError(t, err)
	require.Equal(t, m.String(), again.String())
	twice, err := air.Write(again)
	require.NoError(t, err)
	require.Equal(t, out, twice)

	for _, op := range allOps() {
		require.NotZero(t, ownCounts(m)[op], "the test module has no %s", op)
	}
}

// allOps names the operations that a module can contain.
func allOps() []string {
	var ops []string
	for op := air.OpRet; op < air.OpUnknown; op++ {
		ops = append(ops, op.String())
	}
	return ops
}

// TestNewLLVM reads what current LLVM writes.
func TestNewLLVM(t *testing.T) {
	code := assemble(t, source(t, "new.ll"), "opt-22")
	m, err := air.Read(code)
	require.NoError(t, err)
	require.NoError(t, air.Verify(m))
	require.Contains(t, m.Skipped, "debug information: DEBUG_LOC")
	require.Contains(t, m.Skipped, "debug information: METADATA record 21")
	text := m.String()
	for _, want := range []string{"zext nneg i32 %x to i64", "uitofp nneg i32 %x to float", "or disjoint i32 %x, 1",
		"trunc nuw nsw i64 %zext to i16", "icmp samesign ult i32 %x, %or",
		"getelementptr nusw nuw %pair, ptr addrspace(1) %p, i64 %zext, i32 1", "getelementptr inbounds nuw i8, ptr addrspace(1) %gep, i64 4",
		"fpext fast float %y to double", "fptrunc nnan double %ext to float", `atomicrmw fmax ptr addrspace(1) %gep, float %y syncscope("agent") monotonic, align 4`,
		"atomicrmw uinc_wrap ptr", "%a = alloca i32, align 4, addrspace(5)", "@next = global ptr @f",
		"getelementptr nuw (i8, ptr addrspace(1) @g, i64 4)", "phi i32 [ %x, %entry ], [ %dec, %entry2 ]"} {
		require.Contains(t, text, want)
	}
	f := m.Function("f")
	a, ok := f.Attrs.Ret.Get("range")
	require.True(t, ok)
	require.Equal(t, []uint64{7, 92, 32, 0, 10}, a.Raw)
	_, ok = f.Attrs.Fn.Get("memory")
	require.True(t, ok)
	_, err = air.Write(m)
	require.ErrorContains(t, err, "opaque pointers cannot be written for LLVM 14")
}

// TestClang reads what clang makes of ordinary code, with and without optimisation and debug information.
func TestClang(t *testing.T) {
	for _, flags := range []string{"-O0", "-O2", "-O1 -g", "-O3 -mavx2"} {
		args := append(strings.Fields(flags), "-w", "-emit-llvm", "-c", "-x", "c", "-o", "-", "-")
		m, err := air.Read(run(t, []byte(source(t, "code.c")), "clang-22", args...))
		require.NoError(t, err, flags)
		require.NoError(t, air.Verify(m), flags)
		require.NotNil(t, m.Function("work"))
	}
}

func TestStripDebug(t *testing.T) {
	code := assemble(t, source(t, "debug.ll"), "llvm-as-14")
	m, err := air.Read(code)
	require.NoError(t, err)
	_, err = air.Write(m)
	require.ErrorContains(t, err, "StripDebug")
	m.StripDebug()
	out, err := air.Write(m)
	require.NoError(t, err)
	text := disassemble(t, out, "llvm-dis-14")
	require.NotContains(t, text, "dbg")
	require.NotContains(t, text, "Debug Info Version")
	require.Contains(t, text, "define")
	assemble(t, text, "llvm-as-14") // which verifies
}
