package air

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReadPart reads one function's body: it is what Read makes of it, and the others are declarations.
func TestReadPart(t *testing.T) {
	data, err := os.ReadFile("testdata/all.bc")
	require.NoError(t, err)
	whole, err := Read(data)
	require.NoError(t, err)
	bodies := 0
	for _, f := range whole.Functions {
		if f.Declaration() {
			continue
		}
		bodies++
		// The address of one of its blocks is held elsewhere.
		const jumps = "jumps"
		part, err := ReadPart(data, func(name string) bool { return name == f.Name || name == jumps })
		require.NoError(t, err)
		require.Len(t, part.Functions, len(whole.Functions))
		for i, g := range part.Functions {
			require.Equal(t, whole.Functions[i].Name, g.Name)
			require.Equal(t, whole.Functions[i].Declaration() || g.Name != f.Name && g.Name != jumps, g.Declaration(), g.Name)
		}
		require.Equal(t, len(f.Blocks), len(part.Function(f.Name).Blocks))
		for i, b := range f.Blocks {
			require.Equal(t, len(b.Instrs), len(part.Function(f.Name).Blocks[i].Instrs))
		}
	}
	require.Greater(t, bodies, 1)
	_, err = ReadPart(data, func(string) bool { return false })
	require.ErrorContains(t, err, "address of block")
	_, err = ReadPart(data[:len(data)/2], func(string) bool { return false })
	require.Error(t, err)
}
