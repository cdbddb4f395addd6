//go:build !darwin

package runtime

import (
	"github.com/ingot-metal/ingot/mtl"
	_ "github.com/ingot-metal/ingot/mtl/soft" // registers the software device
)

// bestDevice is the software device: no other system has Metal. The caller releases it.
func bestDevice() (mtl.Device, error) { return mtl.SystemDefaultDevice() }
