package msl

import (
	"bytes"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

// LowerText makes a library of a kernel written as LLVM assembly, k(device uint*, device uint*, thread_position_in_grid),
// without optimising it: the way to test what the optimiser makes only now and then.
func LowerText(t testing.TB, text string) *metallib.Library {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, optName), "-passes=verify", "-o", "-", "-")
	cmd.Stdin = bytes.NewReader([]byte(text))
	bitcode, err := cmd.Output()
	require.NoError(t, err)
	word := &debugType{kind: scalarType, name: "uint", size: 4, align: 4}
	pointer := &debugType{kind: pointerType, elem: word, size: 8, align: 8}
	k := &kernelInfo{symbol: "k", name: "k", params: []paramInfo{
		{name: "in", typ: pointer, slot: 0}, {name: "out", typ: pointer, slot: 1}, {name: "i", typ: word, slot: -1, builtin: "thread_position_in_grid"},
	}}
	m, _, err := lower(bitcode, &unit{kernels: []*kernelInfo{k}}, k)
	require.NoError(t, err)
	code, err := air.Write(m)
	require.NoError(t, err)
	return &metallib.Library{Functions: []metallib.Function{{Name: "k", Type: metallib.Kernel, Bitcode: code}}}
}
