package quant

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A nil pointer in an error, or an error without a sentinel, must not become a panic where it is printed.
func TestNilError(t *testing.T) {
	var e *Error
	require.Equal(t, "<nil>", e.Error())
	require.NoError(t, e.Unwrap())
	require.Equal(t, "quant.f: a: have 1, need 2", (&Error{Func: "f", Arg: "a", Have: "1", Need: "2"}).Error())
}
