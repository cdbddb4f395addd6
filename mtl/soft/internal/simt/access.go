package simt

// Access is a kind of access to a buffer.
type Access uint8

// The kinds of accesses that [Dispatch.Access] hears of.
const (
	Read Access = iota
	Write
	Atomic // an atomic operation of any kind
)

// note tells the dispatch's listener of an access to a buffer.
func (w *warp) note(region int, off, size uint64, write bool) {
	kind := Read
	switch {
	case w.atomic:
		kind = Atomic
	case write:
		kind = Write
	}
	w.access(region-1, off, size, kind)
}
