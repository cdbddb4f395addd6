//go:build !darwin

package runtime

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft" // importing it registers the software device
)

// bestDevice is the software device: no other system has Metal. The caller releases it.
func bestDevice() (mtl.Device, error) { return mtl.SystemDefaultDevice() }

// checkingDevice is a software device with checks; the caller releases it.
func checkingDevice() (mtl.Device, error) { return soft.New(soft.Options{Checks: true}), nil }
