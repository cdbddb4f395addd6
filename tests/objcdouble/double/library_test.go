//go:build linux && objcdouble

// Package double tests the purego end of package objc, and the bindings of mtl through it, against a C double of the
// Objective-C runtime. Its tests are run by the package above.
package double

import (
	"os"
	"testing"
	"time"
	"unsafe"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	if err := objc.Available(); err != nil {
		println("the double is not here:", err.Error())
		os.Exit(1)
	}
	// The software device, which other packages bring along, lives as long as the process once it has been asked for.
	for _, d := range mtl.Devices() {
		d.Release()
	}
	os.Exit(m.Run())
}

// call calls a function of the double.
func call(t testing.TB, name string, words ...uintptr) uintptr {
	t.Helper()
	r, err := objc.CallC(objc.System, name, words...)
	require.NoError(t, err)
	return r
}

// structure is the address of one of the double's structures.
func structure[T any](t testing.TB, name string) *T {
	t.Helper()
	w := call(t, name)
	return *(**T)(unsafe.Pointer(&w))
}

// ledger fails the test if objects, blocks or pools are left that were not there before.
func ledger(t *testing.T) {
	t.Helper()
	count := func() [3]uintptr {
		return [3]uintptr{call(t, "objcdouble_live_objects"), call(t, "objcdouble_live_blocks"), uintptr(objc.LiveObjects())}
	}
	before := count()
	t.Cleanup(func() {
		// A thread that called a block lets go of it, and of the command buffer, a moment later.
		for late := time.Now().Add(time.Minute); count() != before && time.Now().Before(late); {
			time.Sleep(time.Millisecond)
		}
		require.Equal(t, before, count(), "live objects, blocks and Go objects")
		require.NoError(t, objc.TakeError())
	})
}
