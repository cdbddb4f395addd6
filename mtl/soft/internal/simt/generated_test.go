package simt

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// TestGenerated makes the generated file anew and finds it as it is.
func TestGenerated(t *testing.T) {
	tool := testenv.Tool(t, "go")
	file := filepath.Join(t.TempDir(), "zz_ops.go")
	text, err := exec.Command(tool, "run", "./internal/genops", "-o", file).CombinedOutput()
	require.NoError(t, err, "%s", text)
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	got, err := os.ReadFile("zz_ops.go")
	require.NoError(t, err)
	require.True(t, string(want) == string(got), `zz_ops.go is out of date: run "go generate" in its folder`)
}

// TestProgramFacts is what a pipeline says of itself.
func TestProgramFacts(t *testing.T) {
	p := copyKernel(0).compile(t)
	require.Equal(t, "test", p.Kernel().Name)
	require.Equal(t, MaxThreads, p.MaxThreadsPerThreadgroup())
	require.Equal(t, 32, p.ThreadExecutionWidth())
	require.Zero(t, p.StaticThreadgroupMemory())
}
