package objc

import (
	"fmt"
	"runtime"
	"unsafe"
)

// goData is a dispatch_data of Go bytes.
type goData struct{ bytes []byte }

var goDataClass = NewGoClass("NSData", map[string]Method{
	"length": func(c *Call) { c.Return(uintptr(len(c.Self().(*goData).bytes))) },
	"bytes": func(c *Call) {
		if b := c.Self().(*goData).bytes; len(b) > 0 {
			c.ReturnPointer(unsafe.Pointer(&b[0]))
		}
	},
})

// Data makes a dispatch_data object with a copy of the bytes, to be handed to receiver; the caller owns it (+1). For
// a Go receiver it is a Go object that keeps b itself: do not change b while the object lives.
func Data(receiver ID, b []byte) (ID, error) {
	if receiver.IsGo() || Available() != nil {
		return goDataClass.New(&goData{b}), nil
	}
	var p unsafe.Pointer
	if len(b) > 0 {
		p = unsafe.Pointer(&b[0])
	}
	// The default destructor (null) makes dispatch copy the bytes.
	id, err := CallC(System, "dispatch_data_create", Pointer(p), uintptr(len(b)), 0, 0)
	runtime.KeepAlive(b)
	if err == nil && id == 0 {
		err = fmt.Errorf("objc: dispatch_data_create made nothing of %d bytes", len(b))
	}
	return ID(id), err
}

var (
	msgLength      = NewMessage("length", "Q@:")
	msgBytes       = NewMessage("bytes", "^v@:")
	msgFileURLPath = NewMessage("fileURLWithPath:", "@@:@")
)

// GoBytes copies the bytes of an NSData. Nil gives none.
func GoBytes(id ID) []byte {
	n := msgLength.Send(id)
	p := toPointer(msgBytes.Send(id))
	if n == 0 || p == nil {
		return nil
	}
	b := make([]byte, n)
	copy(b, unsafe.Slice((*byte)(p), n))
	return b
}

// DataBytes are the bytes of a data object made by [Data] for a Go receiver; false for every other object. They belong
// to the object: do not change them.
func DataBytes(id ID) ([]byte, bool) {
	d, ok := Value(id).(*goData)
	if !ok {
		return nil, false
	}
	return d.bytes, true
}

var goURLClass = NewGoClass("NSURL", map[string]Method{
	"path": func(c *Call) { c.ReturnString(c.Self().(string)) },
})

// FileURL makes an NSURL of a file, to be handed to receiver; the caller owns it (+1). For a Go receiver it is a Go object
// that answers path.
func FileURL(receiver ID, path string) (ID, error) {
	if path == "" {
		return 0, fmt.Errorf("objc: a file without a name has no URL")
	}
	if receiver.IsGo() || Available() != nil {
		return goURLClass.New(path), nil
	}
	defer NewPool().Drain()
	text := NSString(path)
	defer text.Release()
	// Borrowed from the pool, until it is retained.
	url := ID(msgFileURLPath.Send(GetClass("NSURL").ID(), uintptr(text))).Retain()
	if url == 0 {
		return 0, fmt.Errorf("objc: %q is no file that a URL can name", path)
	}
	return url, nil
}
