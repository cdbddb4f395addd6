package runtime

import "github.com/ingot-metal/ingot/mtl"

func bestDevice() (mtl.Device, error) { return mtl.SystemDefaultDevice() }
