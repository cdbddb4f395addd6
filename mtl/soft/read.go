package soft

import (
	"math"

	"github.com/ingot-metal/ingot/objc"
)

// Descriptors are read by messages, whoever made them. Their results are borrowed: each is read inside a pool of its own.

func readUint(id objc.ID, sel string) uint64 {
	return uint64(objc.Send(id, objc.RegisterName(sel)))
}

func readBool(id objc.ID, sel string) bool {
	return byte(objc.Send(id, objc.RegisterName(sel))) != 0
}

func readString(id objc.ID, sel string) string {
	defer objc.NewPool().Drain()
	return objc.GoString(objc.ID(objc.Send(id, objc.RegisterName(sel))))
}

// readID is an object that the descriptor holds, and that the caller sees to it stays.
func readID(id objc.ID, sel string) objc.ID {
	defer objc.NewPool().Drain()
	return objc.ID(objc.Send(id, objc.RegisterName(sel)))
}

var requiredSize = objc.NewMessage("requiredThreadsPerThreadgroup", "{MTLSize=QQQ}@:")

// readSize is requiredThreadsPerThreadgroup, 0 where a descriptor does not have it.
func readSize(id objc.ID) (s [3]uint64) {
	if !id.RespondsTo(requiredSize.SEL()) {
		return s
	}
	for i, w := range requiredSize.Send3(id) {
		s[i] = uint64(w)
	}
	return s
}

func clampInt(v uint64) int { return int(min(v, math.MaxInt32)) }
