package runtime

import (
	"errors"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// bestDevice is the system's default device or, where the system names none, the first it has; the caller releases it.
func bestDevice() (mtl.Device, error) {
	dev, err := mtl.SystemDefaultDevice()
	if err == nil {
		return dev, nil
	}
	// A sandboxed process may be told of no default device and still see the list, and the other way round.
	all := mtl.Devices()
	if len(all) == 0 {
		return mtl.Device{}, err
	}
	for _, d := range all[1:] {
		d.Release()
	}
	return all[0], nil
}

// declarer is nil: package mtl/soft, whose devices check what a dispatch is meant to use, is not imported here.
func declarer(mtl.Device) func(objc.ID, int, uint64) bool { return nil }

// checkingDevice is an error: a GPU has no checks, and programs for macOS do not carry the software device unless they
// import it.
func checkingDevice() (mtl.Device, error) {
	return mtl.Device{}, errors.New("a GPU has no checks; open soft.New(soft.Options{Checks: true}) with WithDevice")
}
