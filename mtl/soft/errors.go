package soft

import (
	"fmt"

	"github.com/ingot-metal/ingot/mtl"
	"github.com/ingot-metal/ingot/objc"
)

// The domains of Metal's errors that the device reports.
const (
	commandBufferDomain = "MTLCommandBufferErrorDomain"
	libraryDomain       = "MTLLibraryErrorDomain"
	counterDomain       = "MTLCounterErrorDomain"
	deviceDomain        = "MTLDeviceErrorDomain"

	encoderInfoKey = "MTLCommandBufferEncoderInfoErrorKey"
)

// A refusal is why a library, a function or a pipeline was not made.
type refusal struct {
	code mtl.LibraryError
	text string
}

func refuse(code mtl.LibraryError, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// nsError is the refusal as a borrowed NSError.
func (r *refusal) nsError() objc.ID {
	return objc.NewError(libraryDomain, int(r.code), r.text).Autorelease()
}

// give answers a message with a new object, or with the refusal through the NSError** in word i.
func give(c *objc.Call, id objc.ID, r *refusal, i int) {
	if r != nil {
		c.Fail(i, libraryDomain, int(r.code), r.text)
		return
	}
	c.ReturnNew(id)
}

// A failure is why a command buffer failed.
type failure struct {
	code    mtl.CommandBufferError
	text    string
	encoder int // which encoder it happened in, -1 if in none
}

func removedFailure() *failure {
	return &failure{code: mtl.CommandBufferErrorDeviceRemoved, text: "the device was removed", encoder: -1}
}

// name is how error texts call an encoder.
func (e *encoding) name(i int) string {
	if e.label != "" {
		return fmt.Sprintf("%s encoder %q", e.kind, e.label)
	}
	return fmt.Sprintf("%s encoder %d", e.kind, i)
}

// nsError makes the error of a command buffer. Nothing has been given back yet.
func (cb *commandBuffer) nsError(f *failure) objc.ID {
	text := f.text
	if l := cb.label(); l != "" {
		text = fmt.Sprintf("command buffer %q: %s", l, text)
	}
	e := &bufferError{code: int(f.code), text: text}
	if cb.options&mtl.CommandBufferErrorOptionEncoderExecutionStatus != 0 {
		var infos []objc.ID
		for i, enc := range cb.rec.encodings {
			info := &encoderInfo{name: enc.label, posts: enc.posts, state: mtl.CommandEncoderErrorStateCompleted}
			switch {
			case i == f.encoder:
				info.state = mtl.CommandEncoderErrorStateFaulted
			case f.encoder < 0:
				info.state = mtl.CommandEncoderErrorStateUnknown
			case i > f.encoder:
				info.state = mtl.CommandEncoderErrorStatePending
			}
			infos = append(infos, encoderInfoClass.New(info))
		}
		d := &dictionary{keys: []objc.ID{objc.NSString(encoderInfoKey)}, values: []objc.ID{objc.NSArray(infos...)}}
		for _, id := range infos {
			id.Release()
		}
		e.info = dictionaryClass.New(d)
	}
	return bufferErrorClass.New(e)
}

// A bufferError is the NSError of a command buffer, which may say more in its userInfo.
type bufferError struct {
	code int
	text string
	info objc.ID
}

// Dealloc lets go of the dictionary.
func (e *bufferError) Dealloc() { e.info.Release() }

var bufferErrorClass = objc.NewGoClass("NSError", map[string]objc.Method{
	"domain":               func(c *objc.Call) { c.ReturnString(commandBufferDomain) },
	"code":                 func(c *objc.Call) { c.Return(uintptr(c.Self().(*bufferError).code)) },
	"localizedDescription": func(c *objc.Call) { c.ReturnString(c.Self().(*bufferError).text) },
	"description":          func(c *objc.Call) { c.ReturnString(c.Self().(*bufferError).text) },
	"userInfo":             func(c *objc.Call) { c.ReturnBorrowed(c.Self().(*bufferError).info) },
})

// An encoderInfo is MTLCommandBufferEncoderInfo.
type encoderInfo struct {
	name  string
	posts []string
	state mtl.CommandEncoderErrorState
}

var encoderInfoClass = objc.NewGoClass("MTLCommandBufferEncoderInfo", map[string]objc.Method{
	"label":      func(c *objc.Call) { c.ReturnString(c.Self().(*encoderInfo).name) },
	"errorState": func(c *objc.Call) { c.Return(uintptr(c.Self().(*encoderInfo).state)) },
	"debugSignposts": func(c *objc.Call) {
		var posts []objc.ID
		for _, s := range c.Self().(*encoderInfo).posts {
			posts = append(posts, objc.NSString(s))
		}
		list := objc.NSArray(posts...)
		for _, id := range posts {
			id.Release()
		}
		c.ReturnBorrowed(list.Autorelease())
	},
})

// describe is how error texts call an object that is not what it should be.
func describe(id objc.ID) string {
	if id == 0 {
		return "nil"
	}
	return fmt.Sprintf("an object of class %s", id.ClassName())
}
