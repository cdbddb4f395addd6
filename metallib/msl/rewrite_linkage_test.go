package msl

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// none is a nil context, which is like context.Background.
var none context.Context

// What is static or inline beside a kernel does not hide it.
func TestKernelsThatAreThere(t *testing.T) {
	requireTools(t)
	lib, err := Compile(none, `
static inline int f() { return 1; }
constant int c = 2;
namespace { int g() { return 3; } }
namespace named { kernel void a(device int* x [[buffer(0)]]) { x[0] = f() + g() + c; } }
template <typename T> inline kernel void b(device T* x [[buffer(0)]]) { x[0] = 1; }
template [[host_name("b_int")]] kernel void b<int>(device int*);
struct S { static int h() { return 4; } };
[[kernel]] void d(device int* x [[buffer(0)]]) { static const constant int s = 1; x[0] = S::h() + s; }
`, Options{})
	require.NoError(t, err)
	var names []string
	for _, f := range lib.Functions {
		names = append(names, f.Name)
	}
	require.ElementsMatch(t, []string{"a", "b_int", "d"}, names)
}

func TestNilContext(t *testing.T) {
	requireTools(t)
	v, err := ToolVersions(none)
	require.NoError(t, err)
	require.NotEmpty(t, v.Clang)
}

// A mark of the byte order that says UTF-8 is no error.
func TestByteOrderMark(t *testing.T) {
	requireTools(t)
	lib, err := Compile(t.Context(), "\ufeffkernel void k(device int* x [[buffer(0)]]) { x[0] = 1; }", Options{})
	require.NoError(t, err)
	require.Len(t, lib.Functions, 1)
}

func TestNilError(t *testing.T) {
	var e *Error
	require.Equal(t, "<nil>", e.Error())
	require.Empty(t, (&Error{}).Error())
}
