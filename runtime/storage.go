package runtime

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
)

// Storage says who sees the memory of a slice.
type Storage uint8

const (
	// Shared memory is seen by host and device alike: copies cost what copying memory costs. It is the default, on
	// devices with memory of their own too, which then read it over the bus.
	Shared Storage = iota
	// Private memory is the device's alone, which may keep it where it is fastest. [Slice.Read] and [Slice.Write] go
	// through a copy that the device makes, and [Slice.Map] is refused.
	Private
	// Managed memory has a copy on each side, which reads and writes bring up to date. Only wrapped buffers have it.
	Managed
)

// String is the name of the storage.
func (s Storage) String() string {
	switch s {
	case Shared:
		return "shared"
	case Private:
		return "private"
	case Managed:
		return "managed"
	}
	return fmt.Sprintf("Storage(%d)", uint8(s))
}

func (s Storage) options() mtl.ResourceOptions {
	if s == Private {
		return mtl.ResourceStorageModePrivate
	}
	return mtl.ResourceStorageModeShared
}

// storageOf is the storage that the options of NewSlice ask for.
func storageOf(fn string, storage []Storage) (Storage, error) {
	switch {
	case len(storage) == 0:
		return Shared, nil
	case len(storage) > 1:
		return 0, &Error{Func: fn, Arg: "storage", Have: fmt.Sprintf("%d", len(storage)), Need: "at most one", Err: ErrMisuse}
	case storage[0] > Private:
		return 0, &Error{Func: fn, Arg: "storage", Have: storage[0].String(), Need: "Shared or Private", Err: ErrMisuse}
	}
	return storage[0], nil
}
