//go:build !darwin

package runtime

import (
	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/mtl/soft" // importing it registers the software device
	"github.com/ingot-metal/ingot/objc"
)

// bestDevice is the software device: no other system has Metal. The caller releases it.
func bestDevice() (mtl.Device, error) { return mtl.SystemDefaultDevice() }

// declarer is what tells a device with checks how many bytes a dispatch is meant to use, nil for devices without.
func declarer(dev mtl.Device) func(objc.ID, int, uint64) bool {
	if soft.Checking(dev) {
		return soft.DeclareBytes
	}
	return nil
}

// checkingDevice is a software device with checks; the caller releases it.
func checkingDevice() (mtl.Device, error) { return soft.New(soft.Options{Checks: true}), nil }
