package air

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// oldModule writes a module as LLVM 3.5 did: names in symbol tables, types of memory accesses and calls implied by
// pointers, metadata nodes that contain values, old numbers of linkages. With relative unset, operands are numbered
// absolutely, as in still older files (module version 0).
func oldModule(relative bool) []byte {
	w := newBitWriter()
	w.buf = append(w.buf, "BC\xC0\xDE"...)
	w.enter(moduleBlock, 3)
	if relative {
		w.record(modVersion, 1)
	}
	w.enter(typeBlock, 4)
	w.record(typNumEntry, 13)
	w.record(typInteger, 32)             // 0
	w.record(typPointer, 0, 1)           // 1: i32 addrspace(1)*
	w.record(typVoid)                    // 2
	w.record(typFunction, 0, 2, 1, 0)    // 3: void (i32 addrspace(1)*, i32)
	w.record(typPointer, 3, 0)           // 4
	w.record(typMetadata)                // 5
	w.record(typFunctionOld, 0, 0, 0, 0) // 6: i32 (i32)
	w.record(typPointer, 6, 0)           // 7
	w.record(typFloat)                   // 8
	w.record(typArray, 4, 0)             // 9: [4 x i32]
	w.record(typPointer, 9, 2)           // 10: [4 x i32] addrspace(2)*
	w.record(typInteger, 1)              // 11
	w.record(typPointer, 0, 0)           // 12: i32*
	w.end()
	w.enter(paramAttrGroupBlock, 3)
	w.record(3, 1, functionPlace, attrEnum, attrIDs["nounwind"], attrKey, 'x', 0, attrKeyValue, 'k', 0, 'v', 0)
	w.record(3, 2, 1, attrInt, attrIDs["align"], 4)
	w.end()
	w.enter(paramAttrBlock, 3)
	w.record(2, 1, 2)
	w.end()
	w.text(modTriple, "air64-apple-macosx10.11.0")
	w.text(modSectionName, "air.data")
	// Globals, functions and aliases name a pointer type;.
	w.record(modGlobalVar, 10, 1, 11+1, 3, 5, 1)   // value 0: table
	w.record(modFunction, 4, 0, 0, 10, 1, 0, 0, 0) // value 1: kernel, old weak_odr
	w.record(modFunction, 7, 0, 1, 0, 0, 0, 0, 0)  // value 2: callee
	w.record(modAliasOld, 4, 1, 3)                 // value 3: internal alias of the kernel
	w.enter(constantsBlock, 4)
	w.record(cstSetType, 0)
	for _, v := range []uint64{1, 2, 3, 4} { // values 4 to 7
		w.record(cstInteger, v<<1)
	}
	w.record(cstSetType, 10)
	w.record(cstNull) // value 8
	w.record(cstSetType, 0)
	w.record(cstInteger, 100<<1|1) // value 9: -100
	w.record(cstNull)              // value 10
	w.record(cstSetType, 9)
	w.record(cstAggregate, 4, 5, 6, 7) // value 11
	w.end()
	w.enter(metadataBlock, 3)
	w.text(mdKind, "tbaa", 1)
	w.text(mdKind, "custom", 40)
	w.text(mdStringOld, "omnipotent char") // md 0
	w.record(mdOldNode, 5, 0, 0, 5, 2, 0)  // md 1: {text, i32 2, null}
	w.record(mdOldNode, 4, 1, 5, 1)        // md 2: {kernel, md 1}
	w.text(mdName, "air.kernel")
	w.record(mdNamedNode, 2)
	w.end()
	w.enter(valueSymtabBlock, 4)
	for i, name := range []string{"table", "kernel", "callee", "alias"} {
		w.text(vstEntry, name, uint64(i))
	}
	w.end()

	w.enter(functionBlock, 4)
	next := uint64(14) // 12 and 13 are the arguments
	at := func(v uint64) uint64 {
		if relative {
			return uint64(uint32(next) - uint32(v))
		}
		return v
	}
	result := func() uint64 { next++; return next - 1 }
	w.record(fnDeclareBlocks, 3)
	w.record(fnAlloca, 12, 0, 4, 3) // counted by value 4 (one), aligned to 4
	slot := result()
	w.record(fnInBoundsGEPOld, at(12), at(13))
	p := result()
	w.record(fnLoad, at(p), 3, 0)
	x := result()
	w.record(fnStoreOld, at(slot), at(x), 3, 1)
	w.record(fnGEPOld, at(0), at(10), at(13))
	q := result()
	w.record(fnLoad, at(q), 0, 0)
	y := result()
	w.record(fnCmpXchgOld, at(p), at(x), at(y), 0, 6, 1)
	old := result()
	w.record(fnAtomicRMWOld, at(p), at(old), 1, 0, 2, 1)
	result()
	w.record(fnStoreAtomicOld, at(p), at(4), 3, 0, 4, 1)
	w.record(fnCall, 0, 1, at(2), at(old)) // a tail call
	z := result()
	w.record(fnCmp, at(z), at(9), uint64(ICmpSLT))
	less := result()
	w.record(fnSelectOld, at(z), at(4), at(less))
	s := result()
	w.record(fnBr, 1, 2, at(less))
	w.record(fnSwitch, 0, at(s), 2, 5, 2)
	phi := []uint64{0}
	for i, v := range []uint64{s, 4, 4} {
		if relative {
			phi = append(phi, encodeSigned(uint64(int64(next)-int64(v))), uint64(min(i, 1)))
		} else {
			phi = append(phi, v, uint64(min(i, 1)))
		}
	}
	w.record(fnPhi, phi...)
	merged := result()
	w.record(fnStoreOld, at(p), at(merged), 3, 0)
	w.record(fnRet)
	w.enter(valueSymtabBlock, 4)
	w.text(vstEntry, "p", 12)
	w.text(vstEntry, "merged", merged)
	w.text(vstBBEntry, "exit", 2)
	w.end()
	w.enter(metadataAttachmentBlock, 3)
	w.record(mdAttachment, 2, 1, 1)  // the load
	w.record(mdAttachment, 7, 40, 1) // the atomicrmw: the exchange and its extractvalue count as one
	w.end()
	w.end()
	w.end()
	return w.buf
}

func TestOldForms(t *testing.T) {
	for _, relative := range []bool{true, false} {
		m, err := Read(oldModule(relative))
		require.NoError(t, err)
		require.NoError(t, Verify(m))
		f := m.Function("kernel")
		require.NotNil(t, f)
		require.Equal(t, WeakODRLinkage, f.Linkage)
		require.Equal(t, "p", f.Args[0].Name)
		text := m.String()
		for _, want := range []string{
			`@table = internal addrspace(2) constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], section "air.data", align 16`,
			"@alias = internal alias void (i32 addrspace(1)*, i32), void (i32 addrspace(1)*, i32)* @kernel",
			"define weak_odr void @kernel(i32 addrspace(1)* align 4 %p, i32 %0) #0 {",
			"%2 = alloca i32, align 4",
			"%3 = getelementptr inbounds i32, i32 addrspace(1)* %p, i32 %0",
			"%4 = load i32, i32 addrspace(1)* %3, align 4, !tbaa !",
			"store volatile i32 %4, i32* %2, align 4",
			"%5 = getelementptr [4 x i32], [4 x i32] addrspace(2)* @table, i32 0, i32 %0",
			"%7 = cmpxchg i32 addrspace(1)* %3, i32 %4, i32 %6 seq_cst seq_cst",
			"%8 = extractvalue { i32, i1 } %7, 0",
			"%9 = atomicrmw add i32 addrspace(1)* %3, i32 %8 monotonic, !custom !",
			"store atomic i32 1, i32 addrspace(1)* %3 release, align 4",
			"%10 = tail call i32 @callee(i32 %8)",
			"%11 = icmp slt i32 %10, -100",
			"%12 = select i1 %11, i32 %10, i32 1",
			"%merged = phi i32 [ %12, %1 ], [ 1, %13 ], [ 1, %13 ]",
			`!{!"omnipotent char", i32 2, null}`,
			`!air.kernel = !{!`,
			`attributes #0 = { nounwind "x" "k"="v" }`,
		} {
			require.Contains(t, text, want)
		}
		out, err := Write(m)
		require.NoError(t, err)
		require.Equal(t, disassembled(t, oldModule(relative)), disassembled(t, out))
	}
}

// disassembled is LLVM's text of a module.
func disassembled(t *testing.T, code []byte) string {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "llvm-dis-14"), "-o", "-", "-")
	cmd.Stdin = bytes.NewReader(code)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, errs.String())
	return string(out)
}
