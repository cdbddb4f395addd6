package soft

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"
)

// A storage is one piece of memory that the GPU sees: a buffer's own, or a heap's, which several buffers share. Hazards are
// a matter of storages, not of buffers.
type storage struct {
	mem []byte
	// index is unique among the living storages of the device, for bit sets.
	index int
	// freed is set when the last reference went; commands that hold no reference find out by it.
	freed atomic.Bool
	order ordering
}

// alignment is how buffers are placed: as strictly as any access needs.
const alignment = 256

// allocate makes zeroed memory aligned to 256 bytes.
func allocate(n uint64) []byte {
	raw := make([]byte, n+alignment)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) & (alignment - 1)
	return raw[skip : uint64(skip)+n : uint64(skip)+n]
}

// address is where a slice starts, as a word.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// pointer turns a word that arrived in a message into a pointer. The sender keeps what it points to alive.
func pointer(w uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&w)) }

// bytesAt is n bytes at an address that arrived in a message.
func bytesAt(w uintptr, n uint64) []byte {
	if w == 0 || n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(w)), n)
}

// systemMemory is the machine's memory in bytes, 0 when unknown.
func systemMemory() uint64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemTotal:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(rest, "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// A bitset is a set of small numbers.
type bitset []uint64

func (s bitset) has(i int) bool {
	w := i >> 6
	return w < len(s) && s[w]&(1<<(i&63)) != 0
}

func (s *bitset) add(i int) {
	for i>>6 >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[i>>6] |= 1 << (i & 63)
}
