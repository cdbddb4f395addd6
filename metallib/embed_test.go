package metallib_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ingot-metal/ingot/metallib"
	"github.com/ingot-metal/ingot/metallib/air"
)

func ExampleDefault() {
	lib, err := metallib.Read(metallib.Default())
	if err != nil {
		panic(err)
	}
	info := metallib.DefaultInfo()
	fmt.Println("kernels:", len(lib.Functions) == len(info.Kernels))
	fmt.Println("Metal", info.MetalVersion, "for macOS", info.MinMacOS, "and later")
	// Output:
	// kernels: true
	// Metal 3.1 for macOS 14.0 and later
}

func hash(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func TestDefault(t *testing.T) {
	info := metallib.DefaultInfo()
	require.Equal(t, info.SHA256, hash(metallib.Default()))
	require.Equal(t, info.SourceSHA256, hash([]byte(metallib.Source())))
	require.Equal(t, "clang", info.Route)
	require.NotEmpty(t, info.Compiler)
	lib, err := metallib.Read(metallib.Default())
	require.NoError(t, err)
	var names []string
	for i := range lib.Functions {
		f := &lib.Functions[i]
		names = append(names, f.Name)
		require.Equal(t, metallib.Kernel, f.Type)
		require.Equal(t, info.AIRVersion, f.AIR.String())
		require.Equal(t, info.MetalVersion, f.Metal.String())
		m, err := f.Module()
		require.NoError(t, err)
		require.NoError(t, air.Verify(m))
		kernels, err := m.Kernels()
		require.NoError(t, err)
		require.Len(t, kernels, 1)
		require.Equal(t, f.Name, kernels[0].Name)
	}
	slices.Sort(names)
	require.Equal(t, info.Kernels, names)
}

// What callers get is theirs.
func TestDefaultIsCopied(t *testing.T) {
	metallib.Default()[0] ^= 0xff
	require.Equal(t, "MTLB", string(metallib.Default()[:4]))
	info := metallib.DefaultInfo()
	info.Kernels[0] = "changed"
	info.Compiler["clang"] = "changed"
	require.NotEqual(t, info.Kernels[0], metallib.DefaultInfo().Kernels[0])
	require.NotEqual(t, info.Compiler["clang"], metallib.DefaultInfo().Compiler["clang"])
}

// A device compiles one string: it may include nothing but the standard library.
func TestSource(t *testing.T) {
	includes := 0
	for _, line := range strings.Split(metallib.Source(), "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "#include") {
			require.Contains(t, line, "<metal_")
			includes++
		}
	}
	require.Positive(t, includes)
	for _, k := range metallib.DefaultInfo().Kernels {
		require.Contains(t, metallib.Source(), k)
	}
}
